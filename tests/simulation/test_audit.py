"""An audit device that fails at each write: nothing gets out that is not on record, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import pytest

from cloudid_core.audit.device import Entries
from cloudid_core.effects import CallProvider
from cloudid_core.errors import RecordFailed
from cloudid_core.events import Event
from cloudid_core.mounts import mount_table
from cloudid_core.store import keys
from cloudid_core.store.memory import MemoryStore
from cloudid_core.tokens.record import Token

from ..installation import ROOT, Reply
from ..logins import login_form
from .invariants import check_always, check_in_the_end
from .operations import furnished, with_leases
from .recorded import RecordedInstallation
from .test_login import configured

FILE: Final = {"type": "file", "options": {"file_path": "/var/log/audit.log"}}
REQUEST: Final = 1
RESPONSE: Final = 2
"""What the first and the second entry of a request are."""


class Asked(NamedTuple):
    """A request."""

    method: str
    path: str
    body: object = None
    token: str = ROOT
    wrap_ttl: str = ""


class Audited(RecordedInstallation):
    """Its one device takes some entries only."""

    def __init__(self, store: MemoryStore, original: RecordedInstallation) -> None:
        self.taken: list[Entries] = []
        self.fails: Callable[[int], bool] = lambda number: False
        """Whether the device fails to write an entry, by the entry's number."""
        self.tried = 0
        self.given_before: set[str] = set()
        super().__init__(0, store, original.simulator, original.clock)
        self.answered = dict(original.answered)

    async def record(self, event: Event) -> None:
        if event.audit is not None:
            self.tried += 1
            if self.fails(self.tried):
                raise RecordFailed("disk full")
            self.taken.append(event.audit)
        await super().record(event)

    def send(self, asked: Asked) -> Reply:
        wrap = {"x_service_wrap_ttl": asked.wrap_ttl} if asked.wrap_ttl else {}
        return self.ask(asked.method, asked.path, asked.body, asked.token, **wrap)

    def content(self) -> dict[str, object]:
        """All entries of the store."""
        return {key: self.store.read(key) for key in self.keys("")}

    def given(self) -> set[str]:
        """The keys of leases and wrapped answers that are there, and of tokens that are alive."""
        held = {key for key in self.content() if key.startswith((keys.LEASES, keys.wrapped("")))}
        return held | {key for key in self.content() if key.startswith(keys.TOKENS) and self._is_alive(key)}

    def _is_alive(self, key: str) -> bool:
        found = self.peek(self.service.context.records.find_fresh(key, Token))
        return found is not None and found.record.is_alive(self.clock)

    @property
    def told(self) -> str:
        """The entries that were taken."""
        return b"\n".join(text for entries in self.taken for text in entries.texts).decode()


Plan: TypeAlias = Callable[[Audited], Asked]
"""What is done while the device works, and the request that is looked at then."""


def audited(original: RecordedInstallation) -> Audited:
    """A copy of an installation in which a device is enabled."""
    twin = Audited(original.store.copy(), original)
    twin.advance(150.0)
    twin.tick()
    twin.must("PUT", "sys/audit/file", FILE)
    return twin


def planned(start: Callable[[], RecordedInstallation], plan: Plan) -> tuple[Audited, Asked]:
    """An installation that waits for the request."""
    world = audited(start())
    world.given_before = world.given()
    asked = plan(world)
    world.taken.clear()
    world.tried = 0
    return world, asked


def simple(*asked: Any, **members: Any) -> Plan:
    return lambda world: Asked(*asked, **members)


def login(wrap_ttl: str = "", **changes: object) -> Plan:
    def plan(world: Audited) -> Asked:
        form = login_form(world, world.scene["machines"][0])
        return Asked("POST", "auth/cloud/login", {**form, **changes}, "", wrap_ttl)

    return plan


def wrapping(asked: Asked, path: str) -> Plan:
    """Wraps the answer of one request, and hands the wrapping token to another."""

    def plan(world: Audited) -> Asked:
        wrapped = world.send(asked).body["wrap_info"]
        return Asked("POST", f"sys/wrapping/{path}", {"token": wrapped["token"]}, "")

    return plan


def a_lease(path: str, **members: object) -> Plan:
    def plan(world: Audited) -> Asked:
        lease_id = next(lease_id for lease_id in world.answered if "/fresh/" in lease_id)
        world.give_back(lease_id)
        return Asked("PUT", path, {"lease_id": lease_id, **members})

    return plan


def a_token(path: str) -> Plan:
    def plan(world: Audited) -> Asked:
        made = world.must("POST", "auth/token/create", {"policies": ["default"], "ttl": "1h"})
        return Asked("POST", path, {"token": made.auth["client_token"]})

    return plan


def revoked(world: Audited) -> bool:
    return not [key for key in world.content() if key.startswith(keys.LEASES) and "/fresh/" in key]


CREDENTIALS: Final = Asked("GET", "cloud/creds/fresh", wrap_ttl="10m")
TOKEN: Final = Asked("POST", "auth/token/create", {"policies": ["default"], "ttl": "1h"}, wrap_ttl="10m")
GIVING: Final[dict[str, tuple[Callable[[], RecordedInstallation], Plan]]] = {
    "login": (configured, login()),
    "wrapped login": (configured, login("10m")),
    "token": (furnished, simple(*TOKEN[:3])),
    "wrapped token": (furnished, simple(*TOKEN)),
    "batch token": (furnished, simple("POST", "auth/token/create", {"type": "batch", "policies": ["default"]})),
    "credentials": (furnished, simple(*CREDENTIALS[:2])),
    "wrapped credentials": (furnished, simple(*CREDENTIALS)),
    "wrapped body": (furnished, simple("POST", "sys/wrapping/wrap", {"a": "b"}, wrap_ttl="10m")),
    "unwrapped token": (furnished, wrapping(TOKEN, "unwrap")),
    "unwrapped credentials": (furnished, wrapping(CREDENTIALS, "unwrap")),
    "rewrapped token": (furnished, wrapping(TOKEN, "rewrap")),
    "rewrapped credentials": (furnished, wrapping(CREDENTIALS, "rewrap")),
}
"""Requests whose answers give something: a token, a lease, or what stands for one."""

CHANGING: Final[dict[str, tuple[Callable[[], RecordedInstallation], Plan, Callable[[Audited], bool]]]] = {
    "role": (
        furnished,
        simple("POST", "auth/cloud/role/x", {"bound_group_ids": "g"}),
        lambda world: world.ask("GET", "auth/cloud/role/x").status == 200,
    ),
    "end of a role": (
        configured,
        simple("DELETE", "auth/cloud/role/dev"),
        lambda world: world.ask("GET", "auth/cloud/role/dev").status == 404,
    ),
    "configuration": (
        furnished,
        simple("POST", "cloud/config", {"root_password_ttl": "100h"}),
        lambda world: world.must("GET", "cloud/config").data["root_password_ttl"] == 360_000,
    ),
    "policy": (
        furnished,
        simple("PUT", "sys/policies/acl/x", {"policy": 'path "x" { capabilities = ["read"] }'}),
        lambda world: world.ask("GET", "sys/policies/acl/x").status == 200,
    ),
    "mount": (
        furnished,
        simple("POST", "sys/mounts/other", {"type": "cloud"}),
        lambda world: "other/" in world.must("GET", "sys/mounts").data,
    ),
    "renewal of a lease": (with_leases, a_lease("sys/leases/renew", increment=7200), lambda world: True),
    "revocation of a lease": (with_leases, a_lease("sys/leases/revoke"), revoked),
    "renewal of a token": (furnished, a_token("auth/token/renew"), lambda world: True),
    "revocation of a token": (furnished, a_token("auth/token/revoke"), lambda world: True),
    "rotation of a root secret": (
        furnished,
        simple("POST", "cloud/rotate-root"),
        lambda world: world.ask("GET", "cloud/creds/existing").status == 200,
    ),
    "rotation of the keys": (
        furnished,
        simple("PUT", "sys/rotate"),
        lambda world: world.must("GET", "sys/key-status").data["term"] == 2,
    ),
    "end of the device": (
        furnished,
        simple("DELETE", "sys/audit/file"),
        lambda world: not world.must("GET", "sys/audit").data,
    ),
}
"""Requests that change something, and whether the change is there."""

READING: Final[dict[str, tuple[Callable[[], RecordedInstallation], Plan]]] = {
    "configuration": (furnished, simple("GET", "cloud/config")),
    "explanation": (
        configured,
        lambda world: login()(world)._replace(path="auth/cloud/explain", token=ROOT),
    ),
}
"""Requests that only read."""

ALL: Final = {
    **{f"{name} given": planned for name, planned in GIVING.items()},
    **{f"{name} changed": (start, plan) for name, (start, plan, _) in CHANGING.items()},
    **{f"{name} read": planned for name, planned in READING.items()},
}


def once(at: int) -> Callable[[int], bool]:
    return lambda number: number == at


def from_then_on(at: int) -> Callable[[int], bool]:
    return lambda number: number >= at


def assert_not_available(reply: Reply) -> None:
    assert (reply.status, reply.code) == (503, "audit_unavailable")


@pytest.mark.parametrize("name", ALL)
def test_a_request_has_two_entries_and_what_gets_out_is_in_them(name: str) -> None:
    """Two: so failures of the first and of the second, below, are failures at each write."""
    world, asked = planned(*ALL[name])
    reply = world.send(asked)
    assert reply.status in (200, 204), reply.body
    assert (world.tried, len(world.taken)) == (2, 2)
    (device, *_) = world.taken[0].devices
    body: Any = reply.body or {}
    for secret in (body.get("auth") or {}).get("client_token"), (body.get("wrap_info") or {}).get("token"):
        assert not secret or device.hasher.text(secret) in world.told
    lease_id = body.get("lease_id") or ""
    assert lease_id in world.told or device.hasher.text(lease_id) in world.told


@pytest.mark.parametrize("mode", [once, from_then_on])
@pytest.mark.parametrize("name", ALL)
def test_nothing_happens_when_the_request_is_not_on_record(
    name: str, mode: Callable[[int], Callable[[int], bool]]
) -> None:
    """Not in the store, and not at the provider."""
    world, asked = planned(*ALL[name])
    before, start = world.content(), len(world.trace)
    world.fails = mode(REQUEST)
    assert_not_available(world.send(asked))
    assert world.content() == before
    assert not [effect for _, effect in world.trace[start:] if isinstance(effect, CallProvider)]
    world.fails = once(0)
    assert world.send(asked).status in (200, 204), "it can be asked again"


@pytest.mark.parametrize("mode", [once, from_then_on])
@pytest.mark.parametrize("name", GIVING)
def test_what_a_response_gives_that_is_not_on_record_is_taken_back(
    name: str, mode: Callable[[int], Callable[[int], bool]]
) -> None:
    """No token, no lease and no wrapped answer is left that no client ever saw, and nothing at the provider."""
    world, asked = planned(*GIVING[name])
    world.fails = mode(RESPONSE)
    assert_not_available(world.send(asked))
    assert '"type":"request"' in world.told
    check_always(world)
    assert not [key for key in world.given() - world.given_before if key.startswith(keys.wrapped(""))]
    world.fails = once(0)
    world.converge()
    check_in_the_end(world)
    assert world.given() <= world.given_before


@pytest.mark.parametrize("mode", [once, from_then_on])
@pytest.mark.parametrize("name", CHANGING)
def test_a_change_stays_whose_response_is_not_on_record(
    name: str, mode: Callable[[int], Callable[[int], bool]]
) -> None:
    """The request is on record, so the change is."""
    start, plan, is_there = CHANGING[name]
    world, asked = planned(start, plan)
    world.fails = mode(RESPONSE)
    assert_not_available(world.send(asked))
    assert f'"path":"{asked.path}"' in world.told
    world.fails = once(0)
    assert is_there(world)
    check_always(world)
    world.converge()
    check_in_the_end(world)


@pytest.mark.parametrize("name", READING)
def test_what_is_read_is_not_shown_when_the_response_is_not_on_record(name: str) -> None:
    world, asked = planned(*READING[name])
    before = world.content()
    world.fails = once(RESPONSE)
    reply = world.send(asked)
    assert_not_available(reply)
    assert "data" not in reply.body
    assert world.content() == before


@pytest.mark.parametrize(
    "plan",
    [login(role="absent"), login(vm_name="another"), simple("GET", "nowhere"), simple("GET", "cloud", token="x")],
)
def test_a_refusal_that_is_not_on_record_says_no_more_than_that(plan: Plan) -> None:
    world, asked = planned(configured, plan)
    assert world.send(asked).status in (400, 403, 404)
    assert world.tried == (2 if "login" in asked.path else 1)
    for at in range(1, world.tried + 1):
        world, asked = planned(configured, plan)
        world.fails = once(at)
        assert_not_available(world.send(asked))
        assert world.given() == world.given_before


def test_a_use_of_a_token_is_spent_though_the_request_is_not_on_record() -> None:
    """A use counts when it is tried: otherwise it could be tried without end while no device works."""
    world = audited(furnished())
    made = world.must("POST", "auth/token/create", {"policies": ["default"], "num_uses": 2}).auth
    world.fails = lambda number: True
    assert_not_available(world.ask("GET", "auth/token/lookup-self", token=made["client_token"]))
    world.fails = once(0)
    assert world.must("GET", "auth/token/lookup-self", token=made["client_token"]).data["num_uses"] == 0


def test_a_device_is_not_enabled_while_the_others_fail() -> None:
    """Its own trial does not help: the request is recorded first."""
    world = audited(furnished())
    world.fails = lambda number: True
    assert_not_available(world.ask("PUT", "sys/audit/other", FILE))
    assert len(world.peek(mount_table(world.service.context.records)).record.devices) == 1


def test_health_answers_although_no_device_can_write() -> None:
    """That the node cannot serve, once a request was refused for it, and until a device works again.

    The node tries itself: a load balancer sends it no requests meanwhile.
    """
    world = audited(furnished())
    world.fails = lambda number: True
    assert world.ask("GET", "sys/health", token="").status == 200
    assert_not_available(world.ask("GET", "auth/token/lookup-self"))
    for _ in range(2):
        health = world.ask("GET", "sys/health", token="")
        assert (health.status, health.body["problems"][0]) == (503, "audit_unavailable")
        world.perform(world.service.upkeep())
    world.fails = lambda number: False
    assert world.ask("GET", "sys/health", token="").status == 503
    world.perform(world.service.upkeep())
    assert world.ask("GET", "sys/health", token="").status == 200


def test_a_request_that_is_recorded_shows_that_a_device_works_again() -> None:
    world = audited(furnished())
    world.fails = lambda number: True
    assert_not_available(world.ask("GET", "auth/token/lookup-self"))
    world.fails = lambda number: False
    world.must("GET", "auth/token/lookup-self")
    assert world.must("GET", "sys/health", token="").body["problems"] == []
