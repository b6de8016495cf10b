"""The data key: its state, and a new one."""

from __future__ import annotations

from cloudid_core.events import KeysChanged
from cloudid_core.store.keyring import open_keyring
from cloudid_core.store.sealing import RESERVE

from ..service_world import ServiceWorld


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
    assert KeysChanged(key="data", term=2) in world.events


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
