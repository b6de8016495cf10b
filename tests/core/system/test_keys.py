"""The data key: its state, and a new one."""

from __future__ import annotations

from contextlib import suppress

from cloudid_core import open_service
from cloudid_core.errors import CloudidError
from cloudid_core.events import KeysChanged
from cloudid_core.store.keyring import PUBLISHED_AHEAD, open_keyring
from cloudid_core.store.sealing import RESERVE
from cloudid_core.testing import Crashed, every_fault
from cloudid_core.tokens.authenticate import find_by_text

from ..service_world import ROOT, ServiceWorld


def test_the_state_of_the_data_key_is_told() -> None:
    """At the top level too, where old clients look."""
    world = ServiceWorld()
    told = world.must("GET", "sys/key-status")
    assert told["data"]["term"] == told["term"] == 1
    assert told["data"]["install_time"].startswith("2023-11-14T22:13:20")
    before = told["encryptions"]
    world.child()
    assert world.must("GET", "sys/key-status")["encryptions"] > before


def test_the_data_key_is_replaced_and_all_is_still_read() -> None:
    world = ServiceWorld()
    token = world.child()
    assert world.ask("POST", "sys/rotate") == (204, None)
    told = world.must("GET", "sys/key-status")["data"]
    assert (told["term"], told["encryptions"]) == (2, 0)
    assert world.is_good(token)
    assert world.is_good(world.child())
    assert KeysChanged(kind="data", term=2) in world.events


def test_seals_that_other_nodes_have_reserved_count_as_used() -> None:
    world = ServiceWorld()
    world.perform(open_keyring(world.settings))
    world.perform(world.service.upkeep())
    assert world.must("GET", "sys/key-status")["encryptions"] >= RESERVE


def test_a_new_data_key_needs_sudo() -> None:
    world = ServiceWorld()
    token = world.child(policies=[world.policy("rotator", ("sys/rotate", ["update"]))])
    assert world.code("POST", "sys/rotate", token=token) == (403, "permission_denied")
    token = world.child(policies=[world.policy("rotator", ("sys/rotate", ["update", "sudo"]))])
    assert world.ask("POST", "sys/rotate", token=token)[0] == 204


def test_a_reserve_is_not_counted_as_used() -> None:
    assert ServiceWorld().must("GET", "sys/key-status")["encryptions"] < RESERVE


def test_tokens_live_on_when_their_keys_are_replaced() -> None:
    """Of every kind: made by us or chosen, service and batch; by their texts and by their accessors."""
    world = ServiceWorld()
    old = [world.create(policies=["default"]), world.create(id="chosen", policies=["default"])]
    old_batch = world.create(type="batch", policies=["default"])["client_token"]
    told = world.must("POST", "sys/rotate/tokens")["data"]
    assert told["term"] == 2
    for pause in (0.0, PUBLISHED_AHEAD):
        world.advance(pause)
        new = [world.create(policies=["default"]), world.create(id=f"other-{pause:g}", policies=["default"])]
        new_batch = world.create(type="batch", policies=["default"])["client_token"]
        for auth in (*old, *new):
            assert world.look_up(auth["client_token"])["accessor"] == auth["accessor"]
            world.must("POST", "auth/token/lookup-accessor", {"accessor": auth["accessor"]})
        assert world.is_good(old_batch)
        assert world.is_good(new_batch)
        listed = world.must("LIST", "auth/token/accessors")["data"]["keys"]
        assert {auth["accessor"] for auth in (*old, *new)} <= set(listed)
    assert world.code("POST", "auth/token/create", {"id": "chosen"}) == (400, "field_invalid")
    world.must("POST", "auth/token/revoke-accessor", {"accessor": old[0]["accessor"]})
    assert not world.is_good(old[0]["client_token"])


def test_new_keys_make_other_tokens() -> None:
    """What was stolen with the old keys forges nothing that the new ones make, and a node that was away learns them."""
    world = ServiceWorld()
    behind = world.perform(open_service(world.settings))
    world.must("POST", "sys/rotate/tokens")
    world.advance(PUBLISHED_AHEAD)
    auth = world.create(policies=["default"])
    token = world.perform(find_by_text(world.service.context, auth["client_token"]))
    assert token is not None
    assert token.key_term == 2
    world.service = behind
    assert world.is_good(auth["client_token"])


def test_no_fault_while_keys_are_replaced_ends_a_token() -> None:
    def scenario(world: ServiceWorld) -> None:
        world.ask("POST", "sys/rotate/tokens")
        world.ask("POST", "sys/rotate")

    for world in every_fault(scenario, ServiceWorld):
        with suppress(Crashed, CloudidError):
            scenario(world)
        world.service = world.perform(open_service(world.settings))
        assert world.is_good(ROOT)
        world.advance(PUBLISHED_AHEAD)
        assert world.is_good(world.child())
