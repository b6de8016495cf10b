"""Verdicts: what an application answers with them."""

from __future__ import annotations

import pytest

from cloudid_core.errors import Code
from cloudid_core.verify import RefusalCode, Refused


@pytest.mark.parametrize("code", RefusalCode)
def test_a_status_is_401_403_or_503_and_the_text_fits_into_a_header(code: RefusalCode) -> None:
    refused = Refused(code)
    assert refused.status in (401, 403, 503)
    assert refused.reason == code.text
    assert code.text.isascii()
    assert not set(code.text) & set('"\\')
    assert bool(refused.challenge) == (refused.status != 503)


def test_a_name_that_the_service_has_too_is_about_the_token_there() -> None:
    shared = set(RefusalCode.__members__) & set(Code.__members__)
    assert len(shared) > 20
    assert {Code[name].status for name in shared} <= {400, 403}


def test_what_newer_keys_could_change_is_known() -> None:
    assert {code for code in RefusalCode if Refused(code).lacks_key} == {
        RefusalCode.KEY_UNKNOWN,
        RefusalCode.KEYS_UNAVAILABLE,
    }
