"""Advice: every code has a cause and a fix."""

from __future__ import annotations

import re
from typing import Final

import pytest

from cloudid_core import auth_method, secrets_engine
from cloudid_core.advice import ADVICE, advice_on
from cloudid_core.auth_method.checks import CHECKS
from cloudid_core.auth_method.explain import UNVERIFIED
from cloudid_core.errors import Code

REFUSALS: Final[set[Code]] = {*UNVERIFIED, *(check.code for check in CHECKS), Code.ROLE_NOT_FOUND, Code.CONFIG_MISSING}


@pytest.mark.parametrize("code", sorted(REFUSALS, key=str))
def test_every_refusal_of_a_login_has_a_command_that_shows_more(code: Code) -> None:
    assert ADVICE[code].command.split()[0] == "cloudid"


@pytest.mark.parametrize("code", Code)
def test_every_code_has_a_cause_and_a_fix_in_sentences(code: Code) -> None:
    advice = ADVICE[code]
    assert all(text.endswith(".") and text[0].isupper() for text in (advice.cause, advice.fix))
    assert advice_on([code.wire]) == advice


@pytest.mark.parametrize("code", Code)
def test_what_advice_shows_is_a_command_and_not_a_request(code: Code) -> None:
    advice = ADVICE[code]
    assert advice.command.split()[:1] in ([], ["cloudid"])
    assert not re.search(r"\b(GET|POST|PUT|PATCH|DELETE|LIST) [a-zM]", f"{advice.cause} {advice.fix} {advice.command}")


def test_advice_is_on_the_first_code_that_has_a_row() -> None:
    assert advice_on(["of another service", Code.SEALED.wire, Code.NOT_FOUND.wire]) == ADVICE[Code.SEALED]
    assert advice_on(["of another service"]) is None
    assert advice_on([]) is None


def test_a_mount_without_configuration_is_told_all_that_its_kind_needs() -> None:
    """Of either kind, since the code does not say which it is."""
    for name in {*auth_method.config.Config().missing, *secrets_engine.config.Config().missing}:
        assert f"`{name}`" in ADVICE[Code.CONFIG_MISSING].fix
