"""The page of the policy language says what the parser and the decision do."""

from __future__ import annotations

from typing import Any

import pytest

from .policy_language import FIELDS, PARAMETERS, PATTERNS, RANKS, acl, capabilities


@pytest.mark.parametrize("pattern, meaning, path, other", PATTERNS)
def test_a_pattern_matches_what_the_page_says(pattern: str, meaning: str, path: str, other: str) -> None:
    assert capabilities(path, (pattern, "read")) == {"read"}
    assert capabilities(other, (pattern, "read")) == {"deny"}


@pytest.mark.parametrize("why, decides, other, path", RANKS)
def test_the_pattern_decides_that_the_page_says(why: str, decides: str, other: str, path: str) -> None:
    assert capabilities(path, (other, "update")) == {"update"}
    both = ((decides, "read"), (other, "update"))
    assert capabilities(path, *both) == capabilities(path, *both[::-1]) == {"read"}


@pytest.mark.parametrize("rule, given, passes", PARAMETERS)
def test_parameters_pass_as_the_page_says(rule: str, given: dict[str, Any], passes: bool) -> None:
    policy = f'path "a" {{ capabilities = ["update"] {rule} }}'
    assert acl(policy).allows("update", "a", given, fields=FIELDS) is passes
