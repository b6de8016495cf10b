"""A store of commit 62ebdf13, from before rules became stricter for policies, applied folders and quotas.

`store-4.sqlite` was made by that commit's own code beside the simulated cloud: a policy whose allowed value has a `*`
inside, another that grants `sys/applied` without `sudo`, a list of applied paths, a quota that blocks for a month, two
audit devices on one file, and leases of four roles, one of which shares an existing application.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest

from cloudid_core.store import keys
from cloudid_core.system.stored_rules import LOOK_PAUSE
from tests.installation import Installation

from .old_stores import installation_over, made

MADE: Final = made("store-4")
PROBLEMS: Final = {
    "applied_record_unadopted": 1,
    "applied_without_sudo": 1,
    "policy_star_literal": 1,
    "quota_block_clamped": 1,
}
"""How often health reports each of these rules. The store may break others too."""


@pytest.fixture
def world() -> Installation:
    return installation_over("store-4")


def problems(world: Installation) -> Counter[str]:
    world.advance(LOOK_PAUSE)
    world.perform(world.service.upkeep())
    health = world.must("GET", "sys/health")
    assert health.status == 200, "a stricter rule stops no running service"
    return Counter(detail["code"] for detail in health.body["problem_details"])


def test_health_names_what_is_stored_until_it_is_corrected(world: Installation) -> None:
    found = problems(world)
    assert {code: found[code] for code in PROBLEMS} == PROBLEMS
    world.must("POST", "sys/quotas/rate-limit/lock", {"block_interval": 3600})
    world.must("DELETE", "sys/applied/shop")
    for policy in ("inner-glob", "applier"):
        world.must("DELETE", f"sys/policies/acl/{policy}")
    assert not problems(world).keys() & PROBLEMS.keys()


@pytest.mark.parametrize("token", ["root_token", "machine_token", "default_token", "batch_token"])
def test_its_tokens_are_valid(world: Installation, token: str) -> None:
    world.must("GET", "auth/token/lookup-self", token=MADE[token])


def test_a_list_of_applied_paths_makes_the_server_delete_nothing(world: Installation) -> None:
    assert world.must("GET", "sys/applied/shop").data["paths"] == ["cloud/roles/fresh", "sys/policies/acl/team"]
    world.pass_time(3600)
    world.must("GET", "sys/policies/acl/team")
    world.must("GET", "cloud/roles/fresh")


def test_a_value_with_a_star_inside_stays_literal(world: Installation) -> None:
    token = world.must("POST", "auth/token/create", {"policies": ["inner-glob"]}).auth["client_token"]
    assert world.refused("POST", "auth/token/create", {"policies": ["axb"]}, token) == (403, "permission_denied")


def test_its_wrapped_answer_is_shown_once(world: Installation) -> None:
    token = {"token": MADE["wrapping_token"]}
    assert world.must("POST", "sys/wrapping/unwrap", token).data == {"a": "b"}
    assert world.ask("POST", "sys/wrapping/unwrap", token).status == 400


def test_its_leases_end(world: Installation) -> None:
    """Their objects are unknown to this cloud, whichever application they belong to."""
    for lease in MADE["leases"].values():
        assert world.must("POST", "sys/leases/lookup", {"lease_id": lease}).data["ttl"] > 0
    world.must("PUT", "sys/leases/revoke-prefix/cloud", {"sync": False})
    world.pass_time(3 * 3600)
    assert world.store.list(keys.LEASES, "", 10) == ()
