"""A store of version 0.1.0 from before its release, with every kind of entry that there was by then.

`store-2.sqlite` was made by that version's own code beside the simulated cloud. Besides what the first store has, it
holds a wrapped answer, quotas, an audit device, data and token keys of two terms, a plan of rotations, signing keys of
identity tokens, a role with a limit of leases, and a node.
"""

from __future__ import annotations

from typing import Final

import pytest

from cloudid_core.store import keys
from tests.installation import Installation

from .old_stores import installation_over, made

MADE: Final = made("store-2")
TOKENS = ("root_token", "login_token", "new_token", "child_token", "batch_token", "limited_token")


@pytest.fixture
def world() -> Installation:
    return installation_over("store-2")


@pytest.mark.parametrize("token", TOKENS)
def test_its_tokens_are_good(world: Installation, token: str) -> None:
    """Of either term of the token keys."""
    world.must("GET", "auth/token/lookup-self", token=MADE[token])


def test_its_tokens_are_found_by_their_accessors_and_renewed(world: Installation) -> None:
    accessor = {"accessor": MADE["login_accessor"]}
    assert world.must("POST", "auth/token/lookup-accessor", accessor).data["policies"] == ["default", "team"]
    assert world.must("POST", "auth/token/renew-self", {}, MADE["login_token"]).auth["renewable"]


def test_a_number_of_uses_counts_on(world: Installation) -> None:
    statuses = [world.ask("GET", "auth/token/lookup-self", token=MADE["limited_token"]).status for _ in range(6)]
    assert statuses == [200] * 5 + [403]


def test_a_wrapped_answer_is_shown_once(world: Installation) -> None:
    token = {"token": MADE["wrapping_token"]}
    assert world.must("POST", "sys/wrapping/unwrap", token).data["client_secret"]
    assert world.ask("POST", "sys/wrapping/unwrap", token).status == 400


def test_its_configurations_and_roles_are_read(world: Installation) -> None:
    assert world.must("GET", "auth/cloud/role/dev").data["token_ttl"] == 30 * 86_400
    assert world.must("GET", "cloud/config").data["root_password_ttl"] == 60 * 86_400
    fresh = world.must("GET", "cloud/roles/fresh").data
    assert (fresh["max_leases"], fresh["permanently_delete"]) == (10, True)
    assert world.must("GET", "cloud/roles/kept").data["application_object_id"]
    assert world.must("GET", "auth/token/roles/ci").data["orphan"] is True


def test_its_mounts_quotas_and_audit_devices_are_there(world: Installation) -> None:
    mounts = world.must("GET", "sys/mounts").data
    assert mounts["team/d/"]["config"]["max_leases"] == 5
    assert "leaving/" in mounts
    assert world.must("GET", "sys/quotas/rate-limit/all").data["rate"] == 1000
    assert world.must("GET", "sys/quotas/config").data["enable_rate_limit_response_headers"] is False
    assert world.ask("LIST", "sys/quotas/lease-count").status == 404
    world.must("POST", "sys/quotas/lease-count/all", {"max_leases": 1000})
    assert world.must("GET", "sys/quotas/rate-limit/all").data["rate"] == 1000
    assert world.must("GET", "sys/audit").data["file/"]["options"]["file_path"] == "/var/log/audit.log"


def test_its_keys_are_known(world: Installation) -> None:
    assert world.must("GET", "sys/key-status").data["term"] == 2
    for issuer in ("identity/oidc/plugins", "identity/oidc"):
        assert len(world.must("GET", f"{issuer}/.well-known/keys").body["keys"]) == 1


def test_its_leases_are_known_and_renewed(world: Installation) -> None:
    stuck, kept, existing = MADE["leases"]
    assert world.must("POST", "sys/leases/lookup", {"lease_id": kept}).data["renewable"]
    assert world.must("POST", "sys/leases/renew", {"lease_id": existing}).body["lease_duration"]
    [listed] = world.must("GET", "sys/leases").data["leases"]
    assert listed["lease_id"] == stuck
    assert "403" in listed["error"]


def test_its_rotation_goes_on_as_planned(world: Installation) -> None:
    rotation = world.must("GET", "cloud/rotation").data
    assert rotation["phase"] == "overlapping"
    assert rotation["next_rotation"].startswith("2023-12-14")


def test_what_is_due_is_worked_off(world: Installation) -> None:
    """The cloud knows none of its objects, so leases and intents end when the settle time has passed."""
    root = world.scene["applications"][0]
    world.must("POST", "cloud/config", {name: root[name] for name in ("client_id", "client_secret")})
    world.must("DELETE", "sys/mounts/leaving")
    world.must("PUT", "sys/leases/revoke-prefix/cloud", {"sync": False})
    world.pass_time(3 * 3600)
    assert world.store.list(keys.LEASES, "", 10) == ()
    assert [key for key in world.store.list("mount/", "", 100) if "/intent/" in key] == []
