"""Lease counts: exact however many ask at the same time, and nothing is made at the provider beyond them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import pytest

from cloudid_core.errors import CloudidError
from cloudid_core.store import keys
from cloudid_core.testing import Crashed, every_fault
from tests.engines import SecretsEngine, engine_config, engine_with_roles

LIMIT = 3
CREDS = "cloud/creds/existing"
QUOTA: Final = "sys/quotas/lease-count/few"
REFUSED: Final = (429, "lease_count_exceeded")


def limited(limit: int = LIMIT) -> SecretsEngine:
    world = engine_with_roles()
    world.must("POST", "cloud/roles/existing", {"max_leases": limit})
    return world


def test_a_role_has_so_many_leases_and_no_more() -> None:
    world = limited()
    leases = [world.issue() for _ in range(LIMIT)]
    calls = len(world.calls())
    reply = world.ask("GET", CREDS)
    assert (reply.status, reply.codes) == (429, ["lease_count_exceeded"])
    assert int(reply.response.headers["retry-after"]) > 0
    assert len(world.calls()) == calls
    world.must("POST", "sys/leases/revoke", {"lease_id": leases[0]})
    world.issue()
    assert world.ask("GET", CREDS).status == 429


def test_other_roles_are_not_concerned() -> None:
    world = limited(1)
    world.issue()
    for _ in range(2):
        world.issue("fresh")


@pytest.mark.parametrize("seed", range(6))
def test_the_count_is_exact_when_many_ask_at_the_same_time(seed: int) -> None:
    ready = limited()
    world = SecretsEngine.copy_of(ready, seed)
    tasks = [world.spawn(world.asking("GET", CREDS)) for _ in range(12)]
    world.settle()
    statuses = sorted(task.result().status for task in tasks)
    assert statuses == [200] * LIMIT + [429] * (12 - LIMIT)
    assert len(world.leases()) == LIMIT


def test_a_mount_has_so_many_leases_of_all_roles() -> None:
    world = engine_with_roles()
    world.must("POST", "sys/mounts/cloud/tune", {"max_leases": 2})
    assert world.must("GET", "sys/mounts/cloud/tune").data["max_leases"] == 2
    world.issue("fresh")
    world.issue("existing")
    for role in ("fresh", "existing"):
        reply = world.ask("GET", f"cloud/creds/{role}")
        assert (reply.status, reply.body["errors"]) == (429, ["lease count quota exceeded: of the mount"])


def test_what_cannot_be_removed_still_counts() -> None:
    """It is still in the directory, as a lease that is revoking or as an intent."""
    world = limited(1)
    lease_id = world.issue()
    world.fail("graph")
    world.ask("POST", "sys/leases/revoke", {"lease_id": lease_id})
    assert world.ask("GET", CREDS).status == 429
    world.heal()
    world.pass_time(3600)
    world.issue()


def test_what_was_dropped_counts_until_it_is_removed() -> None:
    world = limited(1)
    world.issue()
    world.fail("graph")
    world.must("PUT", "sys/leases/revoke-force/cloud")
    world.tick()
    assert (world.leases(), world.ask("GET", CREDS).status) == ([], 429)
    world.heal()
    world.pass_time(3600)
    world.issue()


@pytest.mark.parametrize("status", [403, 409, 429])
def test_a_password_that_was_refused_does_not_count(status: int) -> None:
    world = limited(1)
    world.fail("graph", status=status)
    world.must("POST", "sys/mounts/cloud/tune", {"max_leases": 1})
    assert [world.ask("GET", CREDS).status >= 500 for _ in range(3)] == [True] * 3
    world.heal()
    world.issue()


def test_an_application_that_did_not_get_its_rights_counts_until_it_is_removed() -> None:
    """Its role assignment, which the provider refused, is looked for until the directory has settled."""
    world = limited(1)
    world.must("POST", "cloud/roles/fresh", {"max_leases": 1})
    world.fail("arm", method="PUT", status=403)
    assert [world.ask("GET", "cloud/creds/fresh").status for _ in range(2)] == [502, 429]
    world.heal()
    world.pass_time(60)
    assert (len(world.intents()), world.alive()) == (1, [])
    world.issue("fresh")


def test_what_failed_half_way_counts_until_it_is_undone() -> None:
    world = limited(1)
    world.fail("graph", status=500)
    assert world.ask("GET", CREDS).status >= 500
    assert world.ask("GET", CREDS).status == 429
    world.heal()
    world.pass_time(3600)
    world.issue()


@pytest.mark.parametrize("value", [-1, "many", 2**40])
def test_a_limit_is_a_number(value: Any) -> None:
    assert engine_with_roles().ask("POST", "cloud/roles/existing", {"max_leases": value}).status == 400


def test_no_fault_uses_room_up_for_ever() -> None:
    """And none lets more leases in than there is room for."""

    def scenario(world: SecretsEngine) -> None:
        for _ in range(2):
            world.ask("GET", CREDS)

    for world in every_fault(scenario, lambda: limited(1)):
        with suppress(Crashed, CloudidError):
            scenario(world)
        world.restart()
        assert len(world.leases()) <= 1
        world.pass_time(2 * 3600)
        assert world.ask("GET", CREDS).status == 200


def test_without_a_limit_nothing_is_counted() -> None:
    world = engine_with_roles()
    world.issue()
    assert not [key for key in world.keys("") if "lease-guard" in key]


# Quotas


def with_quota(**fields: object) -> SecretsEngine:
    world = engine_with_roles()
    world.must("POST", QUOTA, {"max_leases": 2, **fields})
    return world


def with_another_engine(world: SecretsEngine) -> SecretsEngine:
    """With a second engine at `team/`, whose role `existing` is that of the first."""
    world.must("POST", "sys/mounts/team", {"type": "cloud"})
    world.must("POST", "team/config", engine_config(world))
    other = world.other_application["object_id"]
    world.must("POST", "team/roles/existing", {"application_object_id": other, "ttl": "1h"})
    return world


@pytest.mark.parametrize(
    "fields, creds, text",
    [
        ({"path": "cloud", "role": "existing"}, ("existing", "existing", "existing"), "of the role"),
        ({"path": "cloud"}, ("existing", "fresh", "existing"), "of the mount"),
        ({}, ("existing", "fresh", "existing"), "of all mounts"),
    ],
)
def test_a_quota_allows_so_many_leases(fields: dict[str, str], creds: tuple[str, ...], text: str) -> None:
    world = with_quota(**fields)
    replies = [world.ask("GET", f"cloud/creds/{role}") for role in creds]
    assert [reply.status for reply in replies] == [200, 200, 429]
    assert replies[2].body["errors"] == [f"lease count quota exceeded: {text}"]
    assert replies[2].codes == ["lease_count_exceeded"]
    assert int(replies[2].response.headers["retry-after"]) > 0


def test_a_quota_of_all_mounts_counts_all_mounts() -> None:
    world = with_another_engine(with_quota())
    statuses = [world.ask("GET", f"{path}/creds/existing").status for path in ("cloud", "team", "cloud", "team")]
    assert statuses == [200, 200, 429, 429]


def test_a_quota_of_all_mounts_counts_what_a_disabled_mount_has_left() -> None:
    world = with_another_engine(with_quota(max_leases=1))
    world.must("GET", "team/creds/existing")
    world.fail("graph")
    world.ask("DELETE", "sys/mounts/team")
    assert world.refused("GET", CREDS) == REFUSED
    world.heal()
    world.pass_time(2 * 3600)
    world.issue()


def test_other_roles_and_mounts_are_not_counted_by_a_quota() -> None:
    world = with_another_engine(with_quota(path="cloud", role="existing", max_leases=1))
    world.issue()
    assert world.refused("GET", CREDS) == REFUSED
    for path in ("cloud/creds/fresh", "team/creds/existing"):
        world.must("GET", path)


def test_a_quota_of_a_mount_goes_before_that_of_all_mounts() -> None:
    world = with_another_engine(with_quota(max_leases=1))
    world.must("POST", "sys/quotas/lease-count/more", {"path": "cloud", "max_leases": 3})
    assert [world.ask("GET", CREDS).status for _ in range(4)] == [200, 200, 200, 429]
    assert world.refused("GET", "team/creds/existing") == REFUSED


@pytest.mark.parametrize("path", ["cloud/roles/existing", "sys/mounts/cloud/tune"])
@pytest.mark.parametrize("quota, own", [(1, 2), (2, 1)])
def test_the_limits_of_role_and_mount_count_beside_a_quota(path: str, quota: int, own: int) -> None:
    world = with_quota(path="cloud", max_leases=quota)
    world.must("POST", path, {"max_leases": own})
    assert [world.ask("GET", CREDS).status for _ in range(2)] == [200, 429]


def test_a_quota_of_a_moved_mount_counts_on() -> None:
    world = with_quota(path="cloud", max_leases=1)
    world.issue()
    world.must("POST", "sys/remount", {"from": "cloud", "to": "moved"})
    assert world.refused("GET", "moved/creds/existing") == REFUSED


def test_a_lower_quota_ends_no_lease() -> None:
    world = engine_with_roles()
    for _ in range(3):
        world.issue()
    world.must("POST", QUOTA, {"max_leases": 1})
    assert world.refused("GET", CREDS) == REFUSED
    assert len(world.leases()) == 3
    world.must("DELETE", QUOTA)
    world.issue()


@pytest.mark.parametrize("seed", range(6))
def test_a_quota_is_exact_over_two_mounts_and_two_nodes(seed: int) -> None:
    world = SecretsEngine.copy_of(with_another_engine(with_quota(max_leases=LIMIT)), seed)
    nodes = (world.service, world.open_node())
    requests = [world.request("GET", f"{path}/creds/existing") for path in ("cloud", "team")]
    tasks = [world.spawn(nodes[number % 2].handle(requests[number // 2 % 2])) for number in range(12)]
    world.settle()
    assert sorted(task.result().status for task in tasks) == [200] * LIMIT + [429] * (12 - LIMIT)
    assert len(world.leases()) == LIMIT


class Overtaken(SecretsEngine):
    """Another node writes some entries just before the first commit of an intent."""

    entries: Mapping[str, bytes] | None = None

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        if self.entries is not None and any("/intent/" in key for key in puts):
            entries, self.entries = self.entries, None
            self.store.commit({}, entries, ())
        return await super().commit(expects, puts, deletes)


def new_quota(world: SecretsEngine) -> None:
    world.must("POST", QUOTA, {"max_leases": 1})


def changed_quota(world: SecretsEngine) -> None:
    world.must("POST", "sys/quotas/lease-count/many", {"max_leases": 1})


def tuned_mount(world: SecretsEngine) -> None:
    world.must("POST", "sys/mounts/cloud/tune", {"max_leases": 1})


@pytest.mark.parametrize(
    "change, key", [(new_quota, keys.QUOTAS), (changed_quota, keys.QUOTAS), (tuned_mount, keys.MOUNTS)]
)
def test_a_limit_that_another_node_sets_meanwhile_counts(change: Callable[[SecretsEngine], None], key: str) -> None:
    world = Overtaken.copy_of(engine_with_roles())
    if change is changed_quota:
        world.must("POST", "sys/quotas/lease-count/many", {"max_leases": 1000})
    world.issue()
    other = SecretsEngine.copy_of(world)
    change(other)
    written = other.store.read(key)
    assert written is not None
    world.entries = {key: written.value}
    assert world.refused("GET", CREDS) == REFUSED
    assert world.entries is None


def test_with_a_damaged_record_of_quotas_nothing_is_issued_until_it_is_replaced() -> None:
    world = with_quota()
    world.store.commit({}, {keys.QUOTAS: b"junk"}, ())
    assert world.refused("GET", CREDS) == (503, "entry_damaged")
    world.must("POST", QUOTA, {"max_leases": 1})
    assert [world.ask("GET", CREDS).status for _ in range(2)] == [200, 429]


def test_no_fault_uses_the_room_of_a_quota_up_for_ever() -> None:
    """And none lets more leases in than there is room for."""

    def scenario(world: SecretsEngine) -> None:
        for path in ("cloud", "team"):
            world.ask("GET", f"{path}/creds/existing")

    ready = with_another_engine(with_quota(max_leases=1))
    for world in every_fault(scenario, ready.copy):
        with suppress(Crashed, CloudidError):
            scenario(world)
        world.restart()
        assert len(world.leases()) <= 1
        world.pass_time(2 * 3600)
        assert world.ask("GET", CREDS).status == 200
