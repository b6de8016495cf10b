"""Trouble that health tells while it goes on: credentials at risk, revocations that fail, signing keys grown old."""

from __future__ import annotations

from typing import Any

from cloudid_core.provider.signing_keys import REFRESH_AGE
from cloudid_core.store import keys
from cloudid_core.system.stored_rules import LOOK_PAUSE, RULES, TROUBLES
from tests.engines import ROLE, SecretsEngine
from tests.installation import Installation
from tests.logins import configure_logins, log_in


def told(world: Installation) -> list[tuple[str, str]]:
    """Codes and texts of what health says is wrong, after a look; it serves all the same."""
    world.advance(LOOK_PAUSE)
    world.perform(world.service.upkeep())
    health = world.must("GET", "sys/health")
    assert health.status == 200
    return [(detail["code"], detail["text"]) for detail in health.body["problem_details"]]


def test_no_problem_has_two_rows() -> None:
    problems = [row.problem for row in (*RULES, *TROUBLES)]
    assert len(set(problems)) == len(problems)


def test_a_rotation_that_fails_is_told_until_it_has_worked() -> None:
    world = SecretsEngine()
    world.must("POST", "cloud/config", {**world.config, "rotation_period": 3600})
    assert told(world) == []
    world.fail("graph")
    world.pass_time(3700)
    text = dict(told(world))["credential_at_risk"]
    assert text.startswith("the root credential of cloud: the last automated rotation failed")
    world.heal()
    world.pass_time(3600)
    assert told(world) == []


def test_a_root_secret_that_ends_soon_is_told() -> None:
    world = SecretsEngine()
    world.must("POST", "cloud/config", {**world.config, "root_password_ttl": "30d"})
    world.must("POST", "cloud/rotate-root", {})
    world.pass_time(600)
    assert told(world) == []
    world.pass_time(25 * 86_400)
    [(code, text)] = told(world)
    assert (code, "expires at" in text) == ("credential_at_risk", True)


def test_revocations_that_fail_again_and_again_are_counted_for_each_mount() -> None:
    """One attempt that failed is no trouble yet, and entries that cannot be read are passed over."""
    world = SecretsEngine()
    world.must("POST", "cloud/config", world.config)
    world.must("POST", ROLE, {"azure_roles": world.grants(), "ttl": "1h"})
    leases: list[Any] = [world.must("GET", "cloud/creds/web").body["lease_id"] for _ in range(3)]
    world.fail("graph")
    for lease in leases[:2]:
        world.must("POST", "sys/leases/revoke", {"lease_id": lease, "sync": False})
    world.tick()
    assert told(world) == []
    world.pass_time(1800)
    text = "cloud has leases that could not be revoked after several attempts: 2"
    assert dict(told(world))["revocations_failing"] == text
    world.store.commit({}, {keys.lease(leases[0]): b"damaged"}, ())
    assert dict(told(world))["revocations_failing"] == text.replace("2", "1")
    world.heal()
    world.pass_time(3600)
    assert told(world) == []


def test_signing_keys_that_cannot_be_refreshed_are_told_while_logins_still_work() -> None:
    world = Installation()
    machine = configure_logins(world)
    log_in(world, machine)
    world.fail("login")
    world.advance(REFRESH_AGE)
    assert told(world) == []
    problems = dict(told(world))
    assert (
        f"signing keys of the tenant {world.scene['tenant']} could not be fetched" in problems["signing_keys_outdated"]
    )
    world.heal()
    assert told(world) == []
