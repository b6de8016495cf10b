"""The table of the provider's codes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cloudid_core.errors import Code, ProviderProblem
from cloudid_core.provider.client import refusal_of
from cloudid_core.provider.codes import PROVIDER_CODES
from cloudid_core.provider.responses import NONSENSE

PAGE = Path(__file__).parents[3] / "docs/how-to/workload-identity.md"


def test_each_code_stands_once_and_has_a_reason() -> None:
    names = [row.name for row in PROVIDER_CODES]
    assert len(names) == len(set(names))
    assert all(row.code.status == 502 and row.reason for row in PROVIDER_CODES)


@pytest.mark.parametrize("row", PROVIDER_CODES, ids=lambda row: row.name)
def test_a_code_is_refused_with_ours_and_named_only_to_those_who_may_know_it(row: object) -> None:
    assert isinstance(row, type(PROVIDER_CODES[0]))
    problem = ProviderProblem(400, row.name, "request")
    assert (refusal_of(problem).code, str(refusal_of(problem))) == (row.code, row.code.text)
    assert str(refusal_of(problem, names_code=True)) == f"{row.code.text}: {row.name}"


@pytest.mark.parametrize(
    "problem, told",
    [
        (ProviderProblem(429, "TooManyRequests"), Code.PROVIDER_THROTTLED),
        (ProviderProblem(500, "InternalServerError"), Code.PROVIDER_FAILED),
        (ProviderProblem(403, "AuthorizationFailed"), Code.PROVIDER_PERMISSION_DENIED),
        (ProviderProblem(404, "ResourceNotFound"), Code.PROVIDER_REFUSED),
    ],
)
def test_a_code_that_is_not_in_the_table_is_named_too(problem: ProviderProblem, told: Code) -> None:
    assert str(refusal_of(problem, names_code=True)) == f"{told.text}: {problem.code}"


def test_what_we_call_an_answer_is_no_code_of_the_provider() -> None:
    for code in (NONSENSE, ""):
        problem = ProviderProblem(200, code)
        assert str(refusal_of(problem, names_code=True)) == Code.PROVIDER_REFUSED.text


def test_the_page_about_identity_tokens_has_every_code_of_one_that_is_refused() -> None:
    told = set(re.findall(r"`(AADSTS[0-9]+)`", PAGE.read_text()))
    assert {row.name for row in PROVIDER_CODES if row.code is Code.PROVIDER_ASSERTION_REFUSED} <= told
