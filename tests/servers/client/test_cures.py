"""Cures: every refusal of a login has one."""

from __future__ import annotations

from typing import Final

import pytest

from cloudid_core.auth_method.explain import UNVERIFIED
from cloudid_core.auth_method.explanation import RULES
from cloudid_core.errors import Code
from cloudid_servers.client import CURES, cure_of

REFUSALS: Final[set[Code]] = {*UNVERIFIED, *(rule.code for rule in RULES), Code.ROLE_NOT_FOUND, Code.CONFIG_MISSING}


@pytest.mark.parametrize("code", sorted(REFUSALS, key=str))
def test_every_refusal_of_a_login_has_a_cure(code: Code) -> None:
    assert code in CURES


@pytest.mark.parametrize("code", CURES)
def test_a_cure_is_in_sentences_and_names_a_command(code: Code) -> None:
    cure = CURES[code]
    assert cure_of(code.wire) == cure
    assert all(text.endswith(".") and text[0].isupper() for text in (cure.cause, cure.cure))
    assert cure.command.split()[0] in ("cloudid", "GET", "LIST")


def test_other_codes_have_none() -> None:
    assert cure_of("of another service") is None
    assert cure_of("internal_error") is None
