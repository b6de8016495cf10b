"""The work that refusing an unknown token does."""

from __future__ import annotations

from cloudid_core.tokens import decoy
from tests.installation import Installation


def test_nothing_is_the_token_that_a_decoy_stands_for() -> None:
    term_keys = Installation().context.records.sealer.keyring.token_keys[-1]
    assert not decoy.open_and_compare("", term_keys)
    assert not decoy.open_and_compare(decoy.open_record().mac, term_keys)
