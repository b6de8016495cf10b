"""No role lends credentials of an application that the service proves itself with, whatever its mount and node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any

import pytest

from cloudid_core import Secret
from cloudid_core.provider.identities import lending
from cloudid_core.rotation.identities import keep_identities, self_targets
from cloudid_core.store import keys
from tests.core.secrets_engine.interleaving import interleaved, raced
from tests.engines import DAY, SecretsEngine
from tests.logins import configure_logins, log_in

from .rotating import Rotating, rotating

SELF_TARGET = (403, "self_target")


@pytest.fixture
def world() -> Rotating:
    """The engine at `cloud/` has a role for another application; there is a second engine that is not configured."""
    world = rotating()
    world.must("POST", "sys/mounts/second", {"type": "cloud"})
    return world


def role_of(application: Any) -> dict[str, str]:
    return {"application_object_id": application["object_id"]}


def promote(world: Rotating, path: str = "second", credentials: Mapping[str, str] | None = None) -> None:
    """Let a mount prove itself with the application that the role `existing` points at."""
    credentials = credentials or world.promoted_application()
    given = (
        world.config if path != "auth/cloud" else {"tenant_id": world.scene["tenant"], "resource": "https://service"}
    )
    world.must("POST", f"{path}/config", {**given, **credentials})


def warned(world: Rotating, path: str) -> bool:
    warnings = world.must("GET", f"{path}/config").body["warnings"] or []
    return any("roles that use the app registration of this mount: 1;" in warning for warning in warnings)


@pytest.mark.parametrize("path", ["second", "auth/cloud"])
def test_an_application_of_another_mount_is_no_target(world: Rotating, path: str) -> None:
    world.must("DELETE", "cloud/roles/existing")
    promote(world, path)
    assert world.refused("POST", "cloud/roles/steal", role_of(world.other_application)) == SELF_TARGET
    assert world.refused("POST", "cloud/roles/steal", role_of(world.root_application)) == SELF_TARGET


@pytest.mark.parametrize("path", ["second", "auth/cloud", "cloud"])
def test_a_configuration_that_makes_such_roles_is_taken_with_a_warning(world: Rotating, path: str) -> None:
    """They are refused at use; what they lent can be revoked."""
    promoted = world.promoted_application()
    world.must("GET", "cloud/creds/existing")
    promote(world, path, promoted)
    assert warned(world, path)
    assert world.refused("GET", "cloud/creds/existing") == SELF_TARGET
    assert world.refused("POST", "cloud/roles/existing", {"ttl": "2h"}) == SELF_TARGET
    assert world.refused("POST", f"{path}/rotate-root") == SELF_TARGET
    assert world.ask("GET", "cloud/creds/fresh").status == 200
    (target,) = world.perform(self_targets(world.context))
    assert (target.mount.path, target.role) == ("cloud", "existing")
    world.revoke_all()
    assert world.is_over()
    world.must("DELETE", "cloud/roles/existing")
    assert not warned(world, path)
    assert world.perform(self_targets(world.context)) == []


def test_an_application_that_a_role_keeps_can_become_one(world: Rotating) -> None:
    world.must("POST", "cloud/roles/kept", {"azure_roles": world.grants(), "persist_app": True})
    client_id = world.must("GET", "cloud/creds/kept").data["client_id"]
    world.must("POST", "second/config", {**world.config, "client_id": client_id})
    assert world.refused("GET", "cloud/creds/kept") == SELF_TARGET
    assert world.refused("POST", "cloud/roles/kept", {"ttl": "1h"}) == SELF_TARGET
    world.must("DELETE", "cloud/roles/kept")


def test_what_a_mount_no_longer_proves_itself_with_is_a_target_again(world: Rotating) -> None:
    promote(world)
    world.must("POST", "second/config", world.config)
    assert world.ask("GET", "cloud/creds/existing").status == 200
    promote(world)
    world.must("DELETE", "second/config")
    assert world.ask("GET", "cloud/creds/existing").status == 200
    promote(world)
    world.must("DELETE", "sys/mounts/second")
    world.converge()
    world.restart()
    assert world.ask("GET", "cloud/creds/existing").status == 200


def test_a_former_application_is_no_target_while_a_key_lives_that_the_service_made(world: Rotating) -> None:
    former = world.root_application
    assert world.rotate() == 204
    world.must("DELETE", "cloud/roles/existing")
    promote(world, "cloud")
    for _ in range(2):
        assert world.refused("POST", "cloud/roles/steal", role_of(former)) == SELF_TARGET
        world.perform(world.service.upkeep())
    world.pass_time(400)  # its old and new key no longer overlap
    world.advance(183 * DAY)
    world.perform(world.service.upkeep())
    world.perform(lending(world.context.records, former["client_id"]))


def test_a_former_application_is_no_target_until_its_keys_are_removed(world: Rotating) -> None:
    """A rotation of the next one has the journal remove them."""
    former = world.root_application
    assert world.rotate() == 204
    world.must("DELETE", "cloud/roles/existing")
    promote(world, "cloud")
    world.simulator.world.writers.clear()
    assert world.rotate() in (202, 502)
    world.advance(61)
    world.perform(world.service.upkeep())
    assert world.refused("POST", "cloud/roles/steal", role_of(former)) == SELF_TARGET


def test_the_variables_of_every_node_count(world: Rotating) -> None:
    variables = {"CLOUD_CLIENT_ID": Secret(world.other_application["client_id"].upper())}
    node = world.open_node(environment=variables)
    assert world.refused("GET", "cloud/creds/existing") == SELF_TARGET
    world.perform(node.upkeep())
    world.perform(world.service.upkeep())
    assert world.refused("GET", "cloud/creds/existing") == SELF_TARGET


def of_both_nodes(world: Rotating) -> Iterator[Callable[[], object]]:
    """The configuration that makes the role such a one, at this node and at another one."""
    yield lambda: promote(world)
    node = world.open_node()

    def elsewhere() -> None:
        with world.requests_to(node):
            promote(world)

    yield elsewhere


@pytest.mark.parametrize("number", [0, 1])
def test_no_secret_is_lent_while_the_configuration_is_written(world: Rotating, number: int) -> None:
    """Whenever it comes between two effects of an issue."""
    origin = world
    for at in count(0, 3):
        world = Rotating.copy_of(origin)
        happen = list(of_both_nodes(world))[number]
        configured: list[int] = []

        def change(happen: Callable[[], object] = happen, configured: list[int] = configured) -> None:
            happen()
            configured.append(1)

        issue = world.program(world.request("GET", "cloud/creds/existing"))
        response, effects = interleaved(world, issue, {at: [change]})
        if at >= effects:
            break
        lent = world.keys(keys.LEASES)
        assert (response.status == 200) == bool(lent)
        if at < effects - 4:  # before the commit of the lease
            assert (response.status, lent) == (403, []), at
        world.converge()
        assert bool(world.alive("password")) == bool(lent)


def test_a_lease_conflicts_with_a_configuration_that_comes_before_it(world: Rotating) -> None:
    issue = world.program(world.request("GET", "cloud/creds/existing"))
    response, conflicts = raced(world, issue, "lease/", lambda: promote(world))
    assert (response.status, conflicts) == (403, 1)


def test_a_role_and_a_configuration_do_not_overtake_each_other(world: Rotating) -> None:
    world.must("DELETE", "cloud/roles/existing")
    body = role_of(world.other_application)
    writing = world.program(world.request("POST", "cloud/roles/new", body))
    response, conflicts = raced(world, writing, "/role/new", lambda: promote(world))
    assert (response.status, conflicts) == (403, 1)
    assert world.perform(self_targets(world.context)) == []


def test_a_configuration_counts_a_role_that_comes_before_it(world: Rotating) -> None:
    world.must("DELETE", "cloud/roles/existing")
    given = {**world.config, **world.promoted_application()}
    writing = world.program(world.request("POST", "second/config", given))
    role = role_of(world.other_application)
    response, conflicts = raced(world, writing, "/config", lambda: world.must("POST", "cloud/roles/new", role))
    assert (response.status, conflicts) == (200, 1)
    assert b"use the app registration of this mount: 1" in response.body


def test_a_store_from_before_gets_its_record_when_it_is_opened(world: Rotating) -> None:
    """Roles that were written before the rule are refused and found."""
    promote(world)
    made_since = [keys.IDENTITIES, *world.keys("target/")]
    assert len(made_since) > 1
    world.store.commit({}, {}, made_since)
    world.restart()
    assert world.refused("GET", "cloud/creds/existing") == SELF_TARGET
    assert [target.role for target in world.perform(self_targets(world.context))] == ["existing"]
    world.perform(world.service.upkeep())
    health = world.must("GET", "sys/health").body
    assert "self_target" in health["problems"]
    (detail,) = (each for each in health["problem_details"] if each["code"] == "self_target")
    assert detail["remedy"] == "cloudid delete cloud/roles/existing"
    world.must("DELETE", "cloud/roles/existing")
    world.advance(61)
    world.perform(world.service.upkeep())
    assert "self_target" not in world.must("GET", "sys/health").body["problems"]


def test_a_damaged_record_is_made_anew(world: Rotating) -> None:
    promote(world)
    world.store.commit({}, {keys.IDENTITIES: b"damaged"}, ())
    assert world.refused("GET", "cloud/creds/existing") == (503, "entry_damaged")
    world.perform(keep_identities(world.context))
    assert world.refused("GET", "cloud/creds/existing") == SELF_TARGET


def test_roles_are_found_without_reading_others(world: Rotating) -> None:
    for number in range(20):
        world.must("POST", f"cloud/roles/other-{number}", {"azure_roles": world.grants()})
    promote(world)
    begin = len(world.trace)
    world.perform(self_targets(world.context))
    assert len(world.trace) - begin <= 8


def test_a_role_that_points_elsewhere_now_leaves_the_index(world: Rotating) -> None:
    world.must("POST", "cloud/roles/existing", {"application_object_id": "", "azure_roles": world.grants()})
    assert world.keys("target/") == []
    world.must("POST", "cloud/roles/existing", {"persist_app": True})
    assert len(world.keys("target/")) == 1
    world.must("DELETE", "sys/mounts/cloud")
    world.converge()
    assert world.keys("target/") == []


def test_a_login_reads_nothing_of_it(world: SecretsEngine) -> None:
    machine = configure_logins(world)
    log_in(world, machine)
    begin = len(world.trace)
    log_in(world, machine)
    assert not [effect for _, effect in world.trace[begin:] if keys.IDENTITIES in repr(effect)]
