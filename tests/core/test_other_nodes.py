"""What one node changes counts at another one with its next request, whatever that has read before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pytest

from tests.engines import SecretsEngine, engine_with_roles
from tests.logins import CONFIG, LOGIN, ROLE, configure_logins, log_in, login_form
from tests.tokens import is_valid, new_token, write_policy

Observe: TypeAlias = Callable[[], object]
Plan: TypeAlias = Callable[[SecretsEngine], tuple[Observe, Callable[[], object]]]
"""What a node sees, and what another node changes."""


def status_of(world: SecretsEngine, *asked: Any, **options: Any) -> Observe:
    return lambda: world.ask(*asked, **options).status


def login(world: SecretsEngine) -> Observe:
    form = login_form(world, configure_logins(world))
    return status_of(world, "POST", LOGIN, form, token="")


def a_role_that_binds_something_else(world: SecretsEngine) -> tuple[Observe, Callable[[], object]]:
    change = {"bound_subscription_ids": world.scene["subscriptions"][1]}
    return login(world), lambda: world.must("POST", ROLE, change)


def a_role_that_ends(world: SecretsEngine) -> tuple[Observe, Callable[[], object]]:
    return login(world), lambda: world.must("DELETE", ROLE)


def another_audience(world: SecretsEngine) -> tuple[Observe, Callable[[], object]]:
    return login(world), lambda: world.must("POST", CONFIG, {"resource": "https://elsewhere"})


def a_policy(world: SecretsEngine) -> tuple[Observe, Callable[[], object]]:
    token = new_token(world, policies=[write_policy(world, "reader", ("sys/mounts", ["read"]))])
    return status_of(world, "GET", "sys/mounts", token=token), lambda: write_policy(world, "reader")


def a_role_of_the_engine(world: SecretsEngine) -> tuple[Observe, Callable[[], object]]:
    return status_of(world, "GET", "cloud/creds/existing"), lambda: world.must("DELETE", "cloud/roles/existing")


def a_role_of_tokens(world: SecretsEngine) -> tuple[Observe, Callable[[], object]]:
    world.must("POST", "auth/token/roles/app", {"allowed_policies": "default"})
    create = status_of(world, "POST", "auth/token/create/app", {"policies": ["default"]})
    return create, lambda: world.must("DELETE", "auth/token/roles/app")


def a_mount(world: SecretsEngine) -> tuple[Observe, Callable[[], object]]:
    return status_of(world, "GET", "cloud/config"), lambda: world.must("DELETE", "sys/mounts/cloud")


def a_tuned_mount(world: SecretsEngine) -> tuple[Observe, Callable[[], object]]:
    machine = configure_logins(world)
    return (
        lambda: log_in(world, machine)["lease_duration"] > 77,
        lambda: world.must("POST", "sys/auth/cloud/tune", {"default_lease_ttl": 77, "max_lease_ttl": 77}),
    )


def a_token(world: SecretsEngine) -> tuple[Observe, Callable[[], object]]:
    token = new_token(world)
    return lambda: is_valid(world, token), lambda: world.must("POST", "auth/token/revoke", {"token": token})


def a_parent(world: SecretsEngine) -> tuple[Observe, Callable[[], object]]:
    parent = new_token(world, policies=["root"])
    child = new_token(world, parent)
    return lambda: is_valid(world, child), lambda: world.must("POST", "auth/token/revoke", {"token": parent})


def tokens_of_a_mount(path: str) -> Plan:
    def plan(world: SecretsEngine) -> tuple[Observe, Callable[[], object]]:
        token = log_in(world, configure_logins(world))["client_token"]
        method, target = path.split()
        return lambda: is_valid(world, token), lambda: world.must(method, target)

    return plan


def a_batch_token(world: SecretsEngine) -> tuple[Observe, Callable[[], object]]:
    token = log_in(world, configure_logins(world, token_type="batch"))["client_token"]
    return lambda: is_valid(world, token), lambda: world.must("DELETE", "sys/auth/cloud")


def a_lease(world: SecretsEngine) -> tuple[Observe, Callable[[], object]]:
    lease = {"lease_id": world.issue()}
    return status_of(world, "PUT", "sys/leases/lookup", lease), lambda: world.must("PUT", "sys/leases/revoke", lease)


PLANS: Final[dict[str, tuple[Plan, object, object]]] = {
    # what is changed: how, what the other node sees before, and after
    "bounds of a role": (a_role_that_binds_something_else, 200, 403),
    "end of a role": (a_role_that_ends, 200, 400),
    "audience of logins": (another_audience, 200, 403),
    "policy": (a_policy, 200, 403),
    "role of the engine": (a_role_of_the_engine, 200, 400),
    "role of tokens": (a_role_of_tokens, 200, 400),
    "end of a mount": (a_mount, 200, 404),
    "lifetimes of a mount": (a_tuned_mount, True, False),
    "revocation of a token": (a_token, True, False),
    "revocation of its parent": (a_parent, True, False),
    "revocation of a mount's tokens": (tokens_of_a_mount("PUT sys/leases/revoke-prefix/auth/cloud"), True, False),
    "end of the mount of a token": (tokens_of_a_mount("DELETE sys/auth/cloud"), True, False),
    "end of the mount of a batch token": (a_batch_token, True, False),
    "revocation of a lease": (a_lease, 200, 400),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_change_counts_at_another_node_at_once(name: str) -> None:
    plan, before, after = PLANS[name]
    world = engine_with_roles()
    other = world.open_node()
    observe, change = plan(world)
    with world.requests_to(other):
        assert (observe(), observe()) == (before, before)
    change()
    with world.requests_to(other):
        assert observe() == after
