"""What a request creates lives only if its caller receives it, wherever the request is stalled or cancelled.

Each effect of each kind of request stalls, until the deadline or until the host cancels the request; the commit that
creates something may land long after the answer. Then no lease, token or wrapped answer lives that no one received.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final, TypeAlias

import pytest
from attrs import frozen

from cloudid_core import Request
from cloudid_core.catalog import CATALOG
from cloudid_core.tokens import find_token
from tests.installation import ROOT
from tests.logins import configure_logins, login_form
from tests.sampling import Sample

from .invariants import check_in_the_end, leases
from .nodes import Nodes
from .operations import copy_of, furnished, login_method
from .recorded import RecordedInstallation
from .stalled import CARRIERS, STORE, Stalling, StallingInstallation, Stalls, stalls_of

DEADLINE: Final = 20.0
CANCELLED_AFTER: Final = 1.0
LATE: Final = 7.0
"""Seconds after which the commit of a request lands that was closed."""

Make: TypeAlias = Callable[[RecordedInstallation], Request]


class StallingNodes(Stalls, Nodes):
    """Several nodes, of which the one that a request was sent to stalls."""

    @classmethod
    def like(cls, original: RecordedInstallation) -> StallingNodes:
        twin = cls.over(original, original.seed + 1)
        assert isinstance(twin, StallingNodes)
        return twin


World: TypeAlias = StallingInstallation | StallingNodes
WORLDS: Final[Mapping[str, Callable[[RecordedInstallation], World]]] = {
    "one node": StallingInstallation.like,
    "several nodes": StallingNodes.like,
}


def world_like(nodes: str, original: RecordedInstallation) -> World:
    world = WORLDS[nodes](original)
    world.files.update(original.files)
    return world


@frozen
class Kind:
    """A kind of request that creates something: its route, the installation that it is sent to, and the request."""

    route: str
    start: Callable[[], RecordedInstallation]
    make: Make


def asks(method: str, path: str, body: object = None, token: str = ROOT, **headers: str) -> Make:
    deadline = str(int(DEADLINE))
    return lambda world: world.request(method, path, body, token, x_service_deadline=deadline, **headers)


def logins() -> RecordedInstallation:
    installation = copy_of(login_method())
    configure_logins(installation)
    return installation


def with_token_role() -> RecordedInstallation:
    installation = copy_of(furnished())
    installation.must("POST", "auth/token/roles/some", {"orphan": True})
    return installation


def with_wrapped(path: str, body: object = None) -> RecordedInstallation:
    """An installation with a wrapped answer, whose token is known as `held`."""
    installation = copy_of(furnished())
    method = "GET" if body is None else "POST"
    wrapped = installation.must(method, path, body, x_vault_wrap_ttl="3000")
    installation.files["held"] = wrapped.body["wrap_info"]["token"]
    return installation


def asks_with_wrapped(path: str) -> Make:
    return lambda world: asks("POST", path, {"token": world.files["held"]}, token="")(world)


def log_in(world: RecordedInstallation, **headers: str) -> Request:
    form = login_form(world, world.scene["machines"][0])
    return asks("POST", "auth/cloud/login", form, token="", **headers)(world)


WRAPPED_LEASE: Final = partial(with_wrapped, "cloud/creds/existing")
WRAPPED_TOKEN: Final = partial(with_wrapped, "auth/token/create", {"ttl": "2h"})
CHILD: Final = {"policies": ["default"], "ttl": "1h"}

KINDS: Final[Mapping[str, Kind]] = {
    "credentials of a new principal": Kind("creds/:name", furnished, asks("GET", "cloud/creds/fresh")),
    "credentials of an application": Kind("creds/:name", furnished, asks("GET", "cloud/creds/existing")),
    "wrapped credentials": Kind("creds/:name", furnished, asks("GET", "cloud/creds/existing", x_vault_wrap_ttl="3000")),
    "a login": Kind("login", logins, log_in),
    "a wrapped login": Kind("login", logins, partial(log_in, x_vault_wrap_ttl="3000")),
    "a token": Kind("create", furnished, asks("POST", "auth/token/create", CHILD)),
    "a wrapped token": Kind("create", furnished, asks("POST", "auth/token/create", CHILD, x_vault_wrap_ttl="3000")),
    "an orphan": Kind("create-orphan", furnished, asks("POST", "auth/token/create-orphan", CHILD)),
    "a token of a role": Kind("create/:role", with_token_role, asks("POST", "auth/token/create/some", CHILD)),
    "a batch token": Kind("create", furnished, asks("POST", "auth/token/create", {**CHILD, "type": "batch"})),
    "a wrapped batch token": Kind(
        "create", furnished, asks("POST", "auth/token/create", {**CHILD, "type": "batch"}, x_vault_wrap_ttl="3000")
    ),
    "a wrapped body": Kind(
        "wrapping/wrap", furnished, asks("POST", "sys/wrapping/wrap", {"a": "b"}, x_vault_wrap_ttl="3000")
    ),
    "a wrapped reading": Kind("", furnished, asks("GET", "sys/mounts", x_vault_wrap_ttl="3000")),
    "an unwrapped lease": Kind("wrapping/unwrap", WRAPPED_LEASE, asks_with_wrapped("sys/wrapping/unwrap")),
    "an unwrapped token": Kind("wrapping/unwrap", WRAPPED_TOKEN, asks_with_wrapped("sys/wrapping/unwrap")),
    "a lease wrapped again": Kind("wrapping/rewrap", WRAPPED_LEASE, asks_with_wrapped("sys/wrapping/rewrap")),
    "a token wrapped again": Kind("wrapping/rewrap", WRAPPED_TOKEN, asks_with_wrapped("sys/wrapping/rewrap")),
}

CREATES_NOTHING: Final = {
    "renew": "the token is there already",
    "renew-self": "the token is there already",
    "renew-accessor": "the token is there already",
    "leases/renew": "the lease is there already",
    "leases/renew/*lease_id": "the lease is there already",
    "renew/*lease_id": "the lease is there already",
}


def test_every_route_that_gives_a_token_or_a_lease_is_a_kind() -> None:
    giving = {
        route.path
        for component in CATALOG
        for route in component.routes.routes
        if route.gives_token or route.answers.token or route.answers.lease or route.path.startswith("wrapping/")
    }
    tried = {kind.route for kind in KINDS.values()} - {""}
    assert giving - tried - CREATES_NOTHING.keys() - {"wrapping/lookup"} == set()
    assert tried <= giving


def living(world: World) -> set[str]:
    """The entries of leases, of tokens that live, and of wrapped answers."""
    alive = {lease.key for lease in leases(world) if lease.is_alive(world.clock)}
    for key in world.keys("token/"):
        token = world.peek(find_token(world.service.context, key.removeprefix("token/")))
        if token is not None and token.record.is_alive(world.clock):
            alive.add(key)
    return alive | set(world.keys("wrapped/")) | set(world.keys("wrapped-by/"))


def every_stall(make_world: Callable[[], World], make: Make) -> Iterator[Stalling]:
    world = make_world()
    first = len(world.trace)
    world.next_turn()
    world.perform(world.service.handle(make(world)))
    for at, (_, effect) in enumerate(world.trace[first:], first):
        if not isinstance(effect, CARRIERS):
            for how in stalls_of(effect):
                yield Stalling(at, how)
                yield Stalling(at, how, STORE if isinstance(effect, STORE) else (type(effect),))


def send(world: World, make: Make, stalling: Stalling, *, is_cancelled: bool) -> bool:
    """Send a request that stalls, and let everything end; whether it was answered with what it asked for."""
    world.next_turn()
    request = make(world)
    world.stalling = stalling
    task = world.spawn(world.service.handle(request), "asking")
    if is_cancelled:
        world.advance(CANCELLED_AFTER)
        if not task.is_done:
            task.close()
        world.stalling = None
    else:
        world.advance(DEADLINE + 2)
        world.stalling = None
    world.advance(LATE)
    world.perform_late()
    world.heal()
    for service in world.services if isinstance(world, StallingNodes) else (world.service,):
        world.perform(service.upkeep())
    world.converge()
    is_closed = is_cancelled and not hasattr(task, "_answer")
    return not is_closed and task.result().status == 200


@pytest.mark.parametrize("is_cancelled", [False, True], ids=["deadline", "cancelled"])
@pytest.mark.parametrize("nodes", WORLDS)
@pytest.mark.parametrize("name", KINDS)
def test_nothing_lives_that_no_one_received(name: str, nodes: str, is_cancelled: bool, sample: Sample) -> None:
    kind = KINDS[name]
    make_world = partial(world_like, nodes, kind.start())
    for stalling in sample(every_stall(make_world, kind.make)):
        world = make_world()
        before = living(world)
        if send(world, kind.make, stalling, is_cancelled=is_cancelled):
            continue
        assert living(world) - before == set(), f"{stalling}: created, and received by no one"
        if before - living(world) == set() and "held" in world.files:
            unwrapped = world.ask("POST", "sys/wrapping/unwrap", {"token": world.files["held"]}, token="")
            assert unwrapped.status == 200, f"{stalling}: what was wrapped lives, but no one can unwrap it"
        check_in_the_end(world)
