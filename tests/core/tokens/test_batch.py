"""Batch tokens: sealed, stateless, bound to their ring."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from string import ascii_letters

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cloudid_core.context.keyring import KEYRING_BYTES, make_keyring
from cloudid_core.errors import Code, Refused
from cloudid_core.tokens import batch, encoding
from cloudid_core.tokens.authenticate import find_by_text
from tests.installation import Installation
from tests.tokens import create_token, is_valid, look_up_self, new_token, write_policy

from .test_record import token

RING = make_keyring(0.0, bytes(range(256))[:KEYRING_BYTES])
TOKEN = token(type="batch", mac="", renewable=False, metadata={"role": "dev"}, policies=("default", "dev"))
SEALED = batch.seal(TOKEN, RING, bytes(batch.RANDOM_SIZE))


def test_a_batch_token_is_all_in_its_text() -> None:
    assert SEALED.startswith("cb.")
    assert batch.unseal(SEALED, RING) == TOKEN


def test_the_text_reveals_nothing_of_the_token() -> None:
    raw = urlsafe_b64decode(SEALED.removeprefix("cb.") + "==")
    assert b"default" not in raw
    assert batch.seal(TOKEN, RING, b"\x01" * batch.RANDOM_SIZE) != SEALED


@given(st.data())
def test_a_text_with_one_bit_changed_is_no_token(data: st.DataObject) -> None:
    raw = bytearray(urlsafe_b64decode(SEALED.removeprefix("cb.") + "=="))
    bit = data.draw(st.integers(0, len(raw) * 8 - 1))
    raw[bit // 8] ^= 1 << bit % 8
    assert batch.unseal("cb." + urlsafe_b64encode(raw).decode().rstrip("="), RING) is None


@given(st.text(max_size=80))
def test_any_other_text_is_no_token(shown: str) -> None:
    assert batch.unseal(shown, RING) is None
    assert batch.unseal(f"cb.{shown}", RING) is None


@pytest.mark.parametrize("shown", ["", "cb.", "cb.AQ", SEALED[3:], SEALED + "A" * batch.TEXT_LIMIT, SEALED + "\n"])
def test_a_text_that_only_looks_like_a_batch_token_is_none(shown: str) -> None:
    assert batch.unseal(shown, RING) is None


def test_a_batch_token_of_another_installation_is_not_accepted() -> None:
    assert batch.unseal(SEALED, make_keyring(0.0, bytes(KEYRING_BYTES))) is None


def test_a_token_that_would_not_travel_in_a_header_is_refused() -> None:
    large = replace(TOKEN, metadata={"x": "y" * batch.TEXT_LIMIT})
    with pytest.raises(Refused) as refusal:
        batch.seal(large, RING, bytes(batch.RANDOM_SIZE))
    assert refusal.value.code is Code.BATCH_TOKEN_UNSUPPORTED


def test_the_longest_batch_token_is_sealed_and_unsealed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of exactly the limit works; one that is longer by a character is refused, and is no token."""
    monkeypatch.setattr(batch, "TEXT_LIMIT", len(SEALED))
    assert batch.unseal(batch.seal(TOKEN, RING, bytes(batch.RANDOM_SIZE)), RING) == TOKEN
    monkeypatch.setattr(batch, "TEXT_LIMIT", len(SEALED) - 1)
    assert batch.unseal(SEALED, RING) is None
    with pytest.raises(Refused):
        batch.seal(TOKEN, RING, bytes(batch.RANDOM_SIZE))


def test_every_batch_token_has_an_id_of_its_own() -> None:
    """It sorts by the time of the token, and leases name the token by it."""
    world = Installation()
    ids = []
    for _ in range(3):
        token = world.perform(find_by_text(world.context, new_token(world, type="batch", policies=["default"])))
        assert token is not None
        ids.append(token.id)
        world.advance(1)
    assert len(set(ids)) == 3
    assert ids == sorted(ids)
    assert all(map(encoding.is_id, ids))


def test_a_batch_token_is_nowhere_in_the_store_and_works() -> None:
    world = Installation()
    before = world.keys("")
    auth = create_token(world, type="batch", policies=["default"], no_parent=True, ttl="1h")
    assert world.keys("") == before
    assert (auth["accessor"], auth["renewable"], auth["orphan"], auth["token_type"]) == ("", False, True, "batch")
    reply = look_up_self(world, auth["client_token"])
    assert (reply["type"], reply["accessor"], reply["ttl"], reply["renewable"]) == ("batch", "", 3600, False)
    world.advance(3600)
    assert not is_valid(world, auth["client_token"])


def test_the_life_of_a_batch_token_is_capped() -> None:
    world = Installation(max_lease_ttl=600)
    reply = world.must("POST", "auth/token/create", {"type": "batch", "ttl": "1h", "policies": "default"}).body
    assert reply["auth"]["lease_duration"] == 600
    assert "exceeded the effective maximum" in reply["warnings"][0]


@pytest.mark.parametrize("path", ["renew-self", "revoke-self", "create", "create-orphan"])
def test_a_batch_token_cannot_be_renewed_revoked_or_have_children(path: str) -> None:
    world = Installation()
    write_policy(world, "all", ("auth/token/*", ["update", "sudo"]))
    token = new_token(world, type="batch", policies=["all"])
    assert world.refused("POST", f"auth/token/{path}", {}, token) == (400, "batch_token_unsupported")


@pytest.mark.parametrize("path", ["renew", "revoke", "revoke-orphan"])
def test_no_other_token_can_renew_or_revoke_a_batch_token(path: str) -> None:
    world = Installation()
    token = new_token(world, type="batch", policies=["default"])
    assert world.refused("POST", f"auth/token/{path}", {"token": token}) == (400, "batch_token_unsupported")
    assert is_valid(world, token)


@pytest.mark.parametrize(
    "fields",
    [{"num_uses": 1}, {"period": "1h"}, {"explicit_max_ttl": 60}, {"id": "mine"}, {"policies": ["root"]}, {}],
)
def test_a_batch_token_with_fields_of_service_tokens_is_refused(fields: dict[str, object]) -> None:
    """Without any policies it would have those of its parent: root."""
    body = {"type": "batch", "policies": ["default"], **fields} if fields else {"type": "batch"}
    assert Installation().refused("POST", "auth/token/create", body) == (400, "batch_token_unsupported")


def test_a_batch_token_dies_with_its_parent() -> None:
    world = Installation()
    write_policy(world, "maker", ("auth/token/create", ["update"]))
    parent = new_token(world, policies=["maker"])
    auth = create_token(world, parent, type="batch")
    assert not auth["orphan"]
    assert is_valid(world, auth["client_token"])
    world.must("POST", "auth/token/revoke", {"token": parent})
    assert not is_valid(world, auth["client_token"])


def test_a_batch_token_does_not_outlive_its_parent_as_an_orphan() -> None:
    """It has no entry that could record that it is one, so it dies with its parent."""
    world = Installation()
    write_policy(world, "maker", ("auth/token/create", ["update"]))
    parent = new_token(world, policies=["maker"])
    service, token = new_token(world, parent), new_token(world, parent, type="batch")
    world.must("POST", "auth/token/revoke-orphan", {"token": parent})
    assert (is_valid(world, service), is_valid(world, token)) == (True, False)


def test_the_life_of_a_batch_token_is_not_given_back_by_a_parent_of_the_same_text() -> None:
    world = Installation()
    write_policy(world, "maker", ("auth/token/create", ["update"]))
    parent = new_token(world, id="chosen", policies=["maker"])
    token = new_token(world, parent, type="batch")
    world.must("POST", "auth/token/revoke", {"token": parent})
    world.pass_time(1)
    new_token(world, id="chosen", policies=["maker"])
    assert not is_valid(world, token)


def test_a_parent_of_the_same_text_that_is_made_by_a_slower_clock_does_not_give_it_back_either() -> None:
    world = Installation()
    write_policy(world, "maker", ("auth/token/create", ["update"]))
    parent = new_token(world, id="chosen", policies=["maker"])
    world.pass_time(2)
    token = new_token(world, parent, type="batch")
    assert is_valid(world, token)
    world.must("POST", "auth/token/revoke", {"token": parent})
    world.clock -= 1
    new_token(world, id="chosen", policies=["maker"])
    assert not is_valid(world, token)


@pytest.mark.parametrize("ending", ["=", "==", "\n", " "])
def test_a_batch_token_has_one_text_only(ending: str) -> None:
    shown = batch.seal(TOKEN, RING, bytes(batch.RANDOM_SIZE))
    assert batch.unseal(shown, RING) == TOKEN
    assert batch.unseal(shown + ending, RING) is None


def test_the_bits_that_base64_ignores_count() -> None:
    """The last character of some lengths holds bits that decoders drop."""
    for size in range(3):
        shown = batch.seal(replace(TOKEN, display_name="x" * size), RING, bytes(batch.RANDOM_SIZE))
        others = [shown[:-1] + last for last in ascii_letters + "0123456789-_" if last != shown[-1]]
        assert [other for other in others if batch.unseal(other, RING)] == []
