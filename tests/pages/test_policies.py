"""The page about policies has all of the language."""

from __future__ import annotations

import re
from typing import Final

import pytest

from cloudid_core.policies import Acl, parse
from cloudid_core.policies.document import CAPABILITIES, KEYS, UNSUPPORTED
from cloudid_core.testing import World

from .blocks import ROOT

PAGE: Final = (ROOT / "docs/how-to/policies.md").read_text()
WORDS: Final = frozenset(re.findall(r"\w+", PAGE))
PRECEDENCE: Final = re.findall(r"^\| .+? \| `(\S+)` \| `(\S+)` \| `(\S+)` \|$", PAGE, re.MULTILINE)
"""The pattern that decides, another one that matches, and the path."""


@pytest.mark.parametrize("words", [CAPABILITIES, KEYS, UNSUPPORTED])
def test_every_word_of_the_language_is_on_the_page(words: frozenset[str]) -> None:
    assert sorted(words - WORDS) == []


def capabilities(path: str, *rules: tuple[str, str]) -> frozenset[str]:
    """Of a path, by policies with a pattern and a capability each."""
    text = 'path "{}" {{ capabilities = ["{}"] }}'
    policies = [parse(capability, text.format(pattern, capability)) for pattern, capability in rules]
    return World().perform(Acl.of(policies)).capabilities(path)


@pytest.mark.parametrize("decides, other, path", PRECEDENCE)
def test_the_pattern_decides_that_the_page_says(decides: str, other: str, path: str) -> None:
    assert capabilities(path, (other, "update")) == {"update"}
    both = ((decides, "read"), (other, "update"))
    assert capabilities(path, *both) == capabilities(path, *both[::-1]) == {"read"}


def test_every_rank_has_its_example() -> None:
    assert len(PRECEDENCE) == 6
