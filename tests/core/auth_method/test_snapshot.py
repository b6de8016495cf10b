"""The records that a login rests on are cached; no admission and no refusal relies on an outdated one."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.auth_method.snapshot import MountSnapshot, Snapshot, read_snapshot
from cloudid_core.effects import CallProvider, ListKeys, ReadEntries, ReadEntry
from cloudid_core.errors import Code, Refused
from cloudid_core.mounts import mount_table
from tests.installation import Installation
from tests.logins import configure_logins, login_form

LOGIN = "auth/cloud/login"


class TwoNodes(Installation):
    """Two services over one store. The one that logs in remembers; changes are made at the other."""

    def __init__(self, **role: Any) -> None:
        super().__init__()
        self.machine = configure_logins(self, **role)
        self.there = self.open_node()
        self.body = login_form(self, self.machine)

    def change(self, method: str, path: str, body: object = None) -> None:
        with self.requests_to(self.there):
            self.must(method, path, body)

    def try_login(self) -> object:
        """The policies of the token, or the code of the refusal."""
        reply = self.ask("POST", LOGIN, self.body, "")
        return reply.auth["policies"] if reply.status == 200 else reply.code


CHANGES = {
    "a role gives other policies": ("POST", "auth/cloud/role/dev", {"token_policies": "ops"}, ["default", "ops"]),
    "a role is gone": ("DELETE", "auth/cloud/role/dev", None, "role_not_found"),
    "a role is bound": ("POST", "auth/cloud/role/dev", {"bound_locations": "x"}, "bound_location_mismatch"),
    "a configuration is gone": ("DELETE", "auth/cloud/config", None, "config_missing"),
    "a configuration wants more": ("POST", "auth/cloud/config", {"resource": "x"}, "jwt_audience_mismatch"),
    "a mount is disabled": ("DELETE", "sys/auth/cloud", None, "permission_denied"),
}


@pytest.mark.parametrize("method, path, body, outcome", CHANGES.values(), ids=CHANGES)
def test_a_change_at_another_node_counts_at_once(method: str, path: str, body: object, outcome: object) -> None:
    nodes = TwoNodes()
    assert nodes.try_login() == ["default"]
    nodes.change(method, path, body)
    assert nodes.try_login() == outcome


@pytest.mark.parametrize(
    "path, wrong, right",
    [
        ("auth/cloud/role/dev", {"bound_locations": "x"}, {"bound_locations": ""}),
        ("auth/cloud/config", {"resource": "x"}, {"resource": "https://management.azure.com/"}),
        ("auth/cloud/config", {"client_secret": "wrong"}, None),
    ],
)
def test_no_login_is_refused_because_of_an_outdated_record(path: str, wrong: Any, right: Any) -> None:
    nodes = TwoNodes()
    secret = nodes.scene["applications"][0]["client_secret"]
    nodes.change("POST", path, wrong)
    assert isinstance(nodes.try_login(), str)
    nodes.change("POST", path, right or {"client_secret": secret})
    assert nodes.try_login() == ["default"]


def test_a_login_reads_nothing_that_is_remembered() -> None:
    nodes = TwoNodes()
    nodes.try_login()
    before = len(nodes.trace)
    nodes.try_login()
    effects = [effect for _, effect in nodes.trace[before:]]
    assert not [effect for effect in effects if isinstance(effect, ReadEntry | ReadEntries | ListKeys)]


def test_the_provider_is_never_called_because_of_an_outdated_record() -> None:
    """The old client secret may be the one that had to be replaced."""
    nodes = TwoNodes(bound_locations="westus2")
    nodes.try_login()
    nodes.advance(120)
    nodes.change("POST", "auth/cloud/config", {"client_id": "00000000-0000-0000-0000-000000000000"})
    before = len(nodes.trace)
    assert nodes.try_login() == "provider_application_unknown"
    asked = [effect.request for _, effect in nodes.trace[before:] if isinstance(effect, CallProvider)]
    assert [b"client_id=00000000-" in request.body for request in asked] == [True]


def cached_snapshot(world: Installation, mount_id: str, role_name: str) -> Snapshot | None:
    base: MountSnapshot | None = world.context.caches.login_mounts.peek(mount_id)
    return base.roles.peek(role_name) if base is not None else None


def test_a_role_that_is_not_there_is_not_remembered() -> None:
    world = Installation()
    configure_logins(world)
    mounts = world.perform(mount_table(world.context.records))
    mount = mounts.record.by_path["auth/cloud"]
    for name in ("nobody", "dev"):
        world.perform(read_snapshot(world.context, mounts, mount.id, name))
    assert cached_snapshot(world, mount.id, "nobody") is None
    assert cached_snapshot(world, mount.id, "dev") is not None
    world.must("DELETE", "auth/cloud/role/dev")
    world.perform(read_snapshot(world.context, mounts, mount.id, "dev"))
    assert cached_snapshot(world, mount.id, "dev") is None


def test_a_snapshot_that_is_read_again_is_made_anew_only_where_an_entry_has_changed() -> None:
    world = Installation()
    configure_logins(world)
    mounts = world.perform(mount_table(world.context.records))
    mount = mounts.record.by_path["auth/cloud"]
    first = world.perform(read_snapshot(world.context, mounts, mount.id, "dev"))
    assert world.perform(read_snapshot(world.context, mounts, mount.id, "dev")) is first
    for path, change in (("role/dev", {"token_ttl": 60}), ("config", {"max_retries": 1})):
        known = cached_snapshot(world, mount.id, "dev")
        world.must("POST", f"auth/cloud/{path}", change)
        changed = world.perform(read_snapshot(world.context, mounts, mount.id, "dev"))
        assert changed is not known
        assert cached_snapshot(world, mount.id, "dev") is changed


def test_a_mount_that_is_gone_has_no_basis() -> None:
    world = Installation()
    mounts = world.perform(mount_table(world.context.records))
    with pytest.raises(Refused) as refusal:
        world.perform(read_snapshot(world.context, mounts, "gone", "dev"))
    assert refusal.value.code is Code.NO_HANDLER
