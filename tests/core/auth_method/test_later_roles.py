"""Roles that a later version wrote, while the nodes of a store are upgraded one after the other."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from cloudid_core.events import RenewalUnchecked
from cloudid_core.store import keys
from cloudid_core.store.sealing import NONCE_SIZE
from cloudid_core.system.stored_rules import LOOK_PAUSE
from tests.installation import Installation
from tests.logins import LOGIN, ROLE, configure_logins, log_in, login_form

NEWER: Final = (403, "role_newer_than_node")


def write_as_later_version(world: Installation, **fields: object) -> None:
    """Store the role `dev` with members that this version does not know."""
    key = keys.role(world.mount("auth/cloud").id, "dev")
    entry = world.store.read(key)
    assert entry is not None
    sealer = world.context.records.sealer
    record: dict[str, Any] = json.loads(sealer.open(key, entry.value))
    text = json.dumps({**record, **fields}).encode()
    world.store.commit({}, {key: sealer.seal(key, text, b"n" * NONCE_SIZE)}, ())


def test_a_role_with_a_bound_that_this_node_does_not_know_admits_no_login() -> None:
    world = Installation()
    machine = configure_logins(world)
    form = login_form(world, machine)
    world.must("POST", LOGIN, form, token="")
    write_as_later_version(world, bound_tags=["owner=team"])
    assert world.refused("POST", LOGIN, form, token="") == NEWER
    assert world.refused("POST", "auth/cloud/explain", form) == NEWER
    world.restart()
    assert world.refused("POST", LOGIN, form, token="") == NEWER


@pytest.mark.parametrize("empty", [[], None, "", {}])
def test_a_later_bound_that_binds_nothing_and_any_other_later_field_refuse_nothing(empty: object) -> None:
    """A later version stores all its fields in each role that it writes."""
    world = Installation()
    machine = configure_logins(world)
    write_as_later_version(world, bound_tags=empty, later_setting="x")
    log_in(world, machine)


def test_a_role_of_a_later_version_cannot_be_written_without_its_bound_but_removed() -> None:
    world = Installation()
    machine = configure_logins(world)
    write_as_later_version(world, bound_tags=["owner=team"])
    assert world.refused("POST", ROLE, {"token_ttl": 60}) == NEWER
    write_as_later_version(world, later_setting="x")
    assert world.refused("POST", LOGIN, login_form(world, machine), token="") == NEWER, "the bound is still there"
    world.must("DELETE", ROLE)
    world.must("POST", ROLE, {"bound_subscription_ids": machine["subscription"]})
    log_in(world, machine)


def test_what_this_node_does_not_know_is_not_stored_by_it() -> None:
    world = Installation()
    configure_logins(world)
    key = keys.role(world.mount("auth/cloud").id, "dev")
    entry = world.store.read(key)
    assert entry is not None
    assert "unknown_bounds" not in json.loads(world.context.records.sealer.open(key, entry.value))


def test_a_renewal_goes_on_as_while_nobody_can_tell() -> None:
    world = Installation()
    machine = configure_logins(world, recheck_on_renewal=True)
    token = log_in(world, machine)["client_token"]
    write_as_later_version(world, bound_tags=["owner=team"])
    world.events.clear()
    world.must("POST", "auth/token/renew-self", {}, token)
    [event] = [event for event in world.events if isinstance(event, RenewalUnchecked)]
    assert event.reason == "role_newer_than_node"


def test_health_names_the_role_until_it_can_be_judged() -> None:
    world = Installation()
    machine = configure_logins(world)
    write_as_later_version(world, bound_tags=["owner=team"])
    world.advance(LOOK_PAUSE)
    world.perform(world.service.upkeep())
    health = world.must("GET", "sys/health").body
    assert health["problems"] == ["role_newer_than_node"]
    [detail] = health["problem_details"]
    assert "bound_tags" in str(detail)
    assert detail["remedy"].endswith("cloudid delete auth/cloud/role/dev")
    world.must("DELETE", ROLE)
    world.must("POST", ROLE, {"bound_subscription_ids": machine["subscription"]})
    world.advance(LOOK_PAUSE)
    world.perform(world.service.upkeep())
    assert world.must("GET", "sys/health").body["problems"] == []
