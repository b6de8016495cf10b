"""The data key: its state, and a new one."""

from __future__ import annotations

from contextlib import suppress

import pytest

from cloudid_core.context.keyring import PUBLISHED_AHEAD, open_keyring
from cloudid_core.errors import CloudidError
from cloudid_core.events import KeysChanged
from cloudid_core.store.sealing import RESERVE
from cloudid_core.testing import Crashed, every_fault
from cloudid_core.tokens.authenticate import find_by_text
from tests.installation import ROOT, Installation
from tests.tokens import create_token, is_valid, look_up_self, new_token, write_policy


def test_the_state_of_the_data_key_is_told() -> None:
    """At the top level too, where old clients look."""
    world = Installation()
    told = world.must("GET", "sys/key-status").body
    assert told["data"]["term"] == told["term"] == 1
    assert told["data"]["install_time"] == "2027-01-15T08:00:00Z"
    before = told["encryptions"]
    new_token(world)
    assert world.must("GET", "sys/key-status").body["encryptions"] > before


@pytest.mark.parametrize("path", ["sys/rotate", "sys/rotate/keyring"])
def test_the_data_key_is_replaced_and_all_is_still_read(path: str) -> None:
    """By both paths that command lines use."""
    world = Installation()
    token = new_token(world)
    assert world.ask("POST", path).status == 204
    told = world.must("GET", "sys/key-status").data
    assert (told["term"], told["encryptions"]) == (2, 0)
    assert is_valid(world, token)
    assert is_valid(world, new_token(world))
    assert KeysChanged(kind="data", term=2) in world.events


def test_seals_that_other_nodes_have_reserved_count_as_used() -> None:
    world = Installation()
    world.perform(open_keyring(world.settings))
    world.perform(world.service.upkeep())
    assert world.must("GET", "sys/key-status").body["encryptions"] >= RESERVE


@pytest.mark.parametrize("path", ["sys/rotate", "sys/rotate/keyring"])
def test_a_new_data_key_needs_sudo(path: str) -> None:
    world = Installation()
    token = new_token(world, policies=[write_policy(world, "rotator", (path, ["update"]))])
    assert world.refused("POST", path, token=token) == (403, "permission_denied")
    token = new_token(world, policies=[write_policy(world, "rotator", (path, ["update", "sudo"]))])
    assert world.ask("POST", path, token=token).status == 204


def test_a_reserve_is_not_counted_as_used() -> None:
    assert Installation().must("GET", "sys/key-status").body["encryptions"] < RESERVE


def test_tokens_stay_valid_when_their_keys_are_replaced() -> None:
    """Of every kind: made by us or chosen, service and batch; by their texts and by their accessors."""
    world = Installation()
    old = [create_token(world, policies=["default"]), create_token(world, id="chosen", policies=["default"])]
    old_batch = create_token(world, type="batch", policies=["default"])["client_token"]
    told = world.must("POST", "sys/rotate/tokens").data
    assert told["term"] == 2
    for pause in (0.0, PUBLISHED_AHEAD):
        world.advance(pause)
        new = [
            create_token(world, policies=["default"]),
            create_token(world, id=f"other-{pause:g}", policies=["default"]),
        ]
        new_batch = create_token(world, type="batch", policies=["default"])["client_token"]
        for auth in (*old, *new):
            assert look_up_self(world, auth["client_token"])["accessor"] == auth["accessor"]
            world.must("POST", "auth/token/lookup-accessor", {"accessor": auth["accessor"]})
        assert is_valid(world, old_batch)
        assert is_valid(world, new_batch)
        listed = world.must("LIST", "auth/token/accessors").data["keys"]
        assert {auth["accessor"] for auth in (*old, *new)} <= set(listed)
    assert world.refused("POST", "auth/token/create", {"id": "chosen"}) == (400, "field_invalid")
    world.must("POST", "auth/token/revoke-accessor", {"accessor": old[0]["accessor"]})
    assert not is_valid(world, old[0]["client_token"])


def test_new_keys_make_other_tokens() -> None:
    """What was stolen with the old keys forges nothing that the new ones make, and a node that was away learns them."""
    world = Installation()
    behind = world.open_node()
    world.must("POST", "sys/rotate/tokens")
    world.advance(PUBLISHED_AHEAD)
    auth = create_token(world, policies=["default"])
    token = world.perform(find_by_text(world.context, auth["client_token"]))
    assert token is not None
    assert token.key_term == 2
    with world.requests_to(behind):
        assert is_valid(world, auth["client_token"])


def test_no_fault_while_keys_are_replaced_ends_a_token() -> None:
    def scenario(world: Installation) -> None:
        world.ask("POST", "sys/rotate/tokens")
        world.ask("POST", "sys/rotate")

    for world in every_fault(scenario, Installation):
        with suppress(Crashed, CloudidError):
            scenario(world)
        world.restart()
        assert is_valid(world, ROOT)
        world.advance(PUBLISHED_AHEAD)
        assert is_valid(world, new_token(world))
