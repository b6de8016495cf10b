"""A store that version 0.1.0 made before its modules and records were renamed: it opens, and everything in it works.

`store-1.sqlite` was made by that version's own server beside the simulated cloud: logins, tokens, policies, roles,
leases, a role that keeps its application, a rotation that overlaps, an intent that could not be undone, a moved mount.
The store is tried on a deterministic world that starts a minute after it was made, beside a cloud that knows nothing
of its objects.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.installation import Installation, Reply

from .old_stores import installation_over, made

MADE: Final = made("store-1")
ROOT: Final[str] = MADE["root_token"]


@pytest.fixture
def world() -> Installation:
    return installation_over("store-1")


def must(world: Installation, method: str, path: str, body: object = None, token: str = ROOT) -> Reply:
    """The reply to a request that has to succeed, with the root token of the old store."""
    return world.must(method, path, body, token)


@pytest.mark.parametrize("token", ["root_token", "login_token", "child_token", "batch_token"])
def test_its_tokens_are_good(world: Installation, token: str) -> None:
    must(world, "GET", "auth/token/lookup-self", token=MADE[token])


def test_its_login_token_can_be_renewed(world: Installation) -> None:
    assert must(world, "POST", "auth/token/renew-self", {}, MADE["login_token"]).auth["renewable"]


def test_its_configurations_and_roles_are_read(world: Installation) -> None:
    assert must(world, "GET", "auth/cloud/config").data["tenant_id"] == MADE["tenant_id"]
    role = must(world, "GET", "auth/cloud/role/dev").data
    assert (role["policies"], role["bound_token_types"]) == (["team"], ["app"])
    assert must(world, "GET", "cloud/config").data["tenant_id"] == MADE["tenant_id"]
    assert must(world, "GET", "cloud/roles/fresh").data["azure_roles"][0]["role_name"] == "Reader"
    kept = must(world, "GET", "cloud/roles/kept").data
    assert kept["persist_app"]
    assert kept["application_object_id"]
    assert must(world, "GET", "auth/token/roles/ci").data["token_period"] == 3600
    assert "sys/mounts" not in must(world, "GET", "sys/policies/acl/team").data["policy"]


def test_its_mounts_are_where_they_were(world: Installation) -> None:
    assert {"cloud/", "team/c/"} <= set(must(world, "GET", "sys/mounts").data)


def test_its_leases_are_known_and_renewed(world: Installation) -> None:
    kept, existing = MADE["leases"][1:]
    assert must(world, "POST", "sys/leases/lookup", {"lease_id": kept}).data["renewable"]
    assert must(world, "POST", "sys/leases/renew", {"lease_id": existing}).body["lease_duration"]


def test_a_revocation_that_had_failed_is_still_listed_with_its_reason(world: Installation) -> None:
    [stuck] = must(world, "GET", "sys/leases").data["leases"]
    assert stuck["lease_id"] == MADE["leases"][0]
    assert "403" in stuck["error"]


def test_its_rotation_goes_on(world: Installation) -> None:
    assert must(world, "GET", "cloud/rotation").data["phase"] == "overlapping"


def test_what_is_due_is_worked_off(world: Installation) -> None:
    """The cloud knows none of its objects, so leases and intents end when the settle time has passed."""
    application = world.scene["applications"][0]
    secret = {"client_id": application["client_id"], "client_secret": application["client_secret"]}
    must(world, "POST", "cloud/config", secret)
    for lease in MADE["leases"]:
        must(world, "POST", "sys/leases/revoke", {"lease_id": lease, "sync": False})
    world.pass_time(3 * 3600)
    assert world.leases() == []
    assert [key for key in world.keys("mount/") if "/intent/" in key] == []
