"""Failures: the table of codes, refusals, and what hosts may raise."""

from __future__ import annotations

import re

import pytest

from cloudid_core import errors
from cloudid_core.errors import (
    CloudidError,
    Code,
    Conflict,
    HostFailure,
    Problem,
    ProviderProblem,
    ProviderUnreachable,
    Refused,
    reason_of,
    without_provider_code,
)


def test_no_code_hides_another() -> None:
    """Two rows with the same status and text would silently become one."""
    assert len(Code) == len(Code.__members__)


@pytest.mark.parametrize("code", Code)
def test_a_code_has_a_status_a_text_and_a_name_for_the_wire(code: Code) -> None:
    assert 400 <= code.status <= 599
    assert re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*", code.wire)
    assert code.text
    assert not code.text.endswith(".")


def test_a_problem_tells_its_detail_after_the_text() -> None:
    assert Problem(Code.NAME_INVALID).text == Code.NAME_INVALID.text
    assert Problem(Code.NAME_INVALID, '"role"').text == f'{Code.NAME_INVALID.text}: "role"'


def test_the_first_problem_of_a_refusal_gives_its_code_and_status() -> None:
    refusal = Refused(Code.LOGIN_REFUSED, "", Problem(Code.FIELD_INVALID, '"jwt"'), retry_after=3)
    assert (refusal.code, refusal.status, refusal.retry_after) == (Code.LOGIN_REFUSED, 403, 3)
    assert str(refusal) == f'{Code.LOGIN_REFUSED.text}; {Code.FIELD_INVALID.text}: "jwt"'


def test_a_refusal_can_have_many_problems() -> None:
    problems = [Problem(Code.FIELD_REQUIRED, "a"), Problem(Code.FIELD_INVALID, "b")]
    assert Refused.because(problems).problems == tuple(problems)


@pytest.mark.parametrize("kind", HostFailure.__subclasses__())
def test_what_a_host_raises_is_ours_and_ordinary(kind: type[HostFailure]) -> None:
    """Programs may handle it."""
    assert issubclass(kind, CloudidError)
    assert issubclass(kind, Exception)


def test_the_tree_is_closed() -> None:
    """Every failure of this module is one of ours."""
    kinds = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert [kind for kind in kinds if not issubclass(kind, CloudidError)] == []


def test_an_unreachable_provider_tells_whether_the_request_was_sent() -> None:
    failure = ProviderUnreachable("no answer", sent=True)
    assert failure.sent
    assert str(failure) == "no answer"


def test_the_reason_of_an_unreachable_provider_is_hidden_from_those_who_may_not_see_codes() -> None:
    reason = reason_of(ProviderUnreachable(f"login.test: TLS: {'x' * 300}", sent=False))
    assert reason.startswith("the provider gave no answer (login.test: TLS: x")
    assert without_provider_code(f"application: {reason}") == "application: the provider gave no answer"


def test_a_provider_problem_tells_status_code_and_request() -> None:
    problem = ProviderProblem(429, "TooManyRequests", "r-1", 7.0)
    assert str(problem) == "the provider answered 429 TooManyRequests (request r-1)"
    assert (problem.status, problem.code, problem.retry_after) == (429, "TooManyRequests", 7.0)
    assert str(ProviderProblem(500, "InternalServerError")).endswith("(request unknown)")
    ours = ProviderProblem(403, "Denied", "r-1", None, "c-1")
    assert str(ours).endswith("(request r-1, client request c-1)")
    assert without_provider_code(str(ours)) == "the provider answered 403"


def test_a_conflict_is_no_refusal() -> None:
    """Whoever commits tries again; only then it is the caller's."""
    assert not issubclass(Conflict, Refused)
