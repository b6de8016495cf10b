"""Every wait knows its deadline: each effect of each request stalls for ever, and the request is answered in time.

The state of this node is told within two seconds. Afterwards nothing is leaked, lost or locked out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Self, TypeAlias

import pytest
from attrs import frozen

from cloudid_core.effects import (
    CallProvider,
    Commit,
    Effect,
    ListKeys,
    ReadEntries,
    ReadEntry,
    Record,
    Shared,
    Together,
    Within,
)
from cloudid_core.testing import Stall
from tests.installation import Reply
from tests.logins import configure_logins, login_form
from tests.sampling import Sample

from .invariants import check_recovery
from .operations import DUTY, copy_of, furnished, login_method, with_leases
from .recorded import RecordedInstallation

DEADLINE: Final = 20.0
GRACE: Final = 1.0
STATE_SECONDS: Final = 2.0
CARRIERS: Final = (Shared, Together, Within)
"""Effects that wait for the effects of the programs that they carry, and for nothing else."""

STORE: Final = (ReadEntry, ReadEntries, ListKeys, Commit)
DONE_FIRST: Final = (Commit, CallProvider, Record)
"""Effects that may have been performed though their answer never comes."""

Ask: TypeAlias = Callable[[RecordedInstallation], Reply]


@frozen
class Stalling:
    """From the effect at a place on, what stalls: that effect only, or everything of its kind."""

    at: int
    how: Stall
    kind: tuple[type[Effect[Any]], ...] = ()

    def includes(self, place: int, effect: Effect[Any]) -> bool:
        return place == self.at or (place > self.at and isinstance(effect, self.kind))


class StallingInstallation(RecordedInstallation):
    stalling: Stalling | None = None

    @classmethod
    def like(cls, original: RecordedInstallation) -> Self:
        twin = cls.copy_of(original, original.seed + 1)
        twin.answered = dict(original.answered)
        twin.advance(DUTY)
        twin.tick()
        return twin

    def stall_for(self, effect: Effect[Any]) -> Stall | None:
        stalling = self.stalling
        if stalling is None or isinstance(effect, CARRIERS) or not stalling.includes(len(self.trace), effect):
            return None
        return stalling.how if isinstance(effect, DONE_FIRST) else Stall.BEFORE


def asks(method: str, path: str, body: object = None, **headers: str) -> Ask:
    return lambda installation: installation.ask(method, path, body, x_service_deadline=str(int(DEADLINE)), **headers)


def log_in(installation: RecordedInstallation) -> Reply:
    form = login_form(installation, installation.scene["machines"][0])
    return installation.ask("POST", "auth/cloud/login", form, token="", x_service_deadline=str(int(DEADLINE)))


def bound_logins() -> RecordedInstallation:
    installation = copy_of(login_method())
    configure_logins(installation, bound_locations=installation.scene["machines"][0]["location"])
    return installation


def audited() -> RecordedInstallation:
    installation = copy_of(furnished())
    installation.must("PUT", "sys/audit/file", {"type": "file", "options": {"file_path": "/var/log/audit"}})
    return installation


def revoke_one(installation: RecordedInstallation) -> Reply:
    lease_id = min(installation.answered)
    installation.give_back(lease_id)
    body = {"lease_id": lease_id}
    return installation.ask("PUT", "sys/leases/revoke", body, x_service_deadline=str(int(DEADLINE)))


def disable(installation: RecordedInstallation) -> Reply:
    installation.give_back("")
    return installation.ask("DELETE", "sys/mounts/cloud", x_service_deadline=str(int(DEADLINE)))


def delete_kept(installation: RecordedInstallation) -> Reply:
    installation.give_back("/kept/")
    return installation.ask("DELETE", "cloud/roles/kept", x_service_deadline=str(int(DEADLINE)))


REQUESTS: Final[Mapping[str, tuple[Callable[[], RecordedInstallation], Ask]]] = {
    "log in": (bound_logins, log_in),
    "issue a fresh principal": (furnished, asks("GET", "cloud/creds/fresh")),
    "issue a password": (furnished, asks("GET", "cloud/creds/existing")),
    "issue on record": (audited, asks("GET", "cloud/creds/existing")),
    "issue in a wrapping": (furnished, asks("GET", "cloud/creds/existing", x_vault_wrap_ttl="60")),
    "rotate a root secret": (furnished, asks("POST", "cloud/rotate-root")),
    "revoke": (with_leases, revoke_one),
    "disable an engine": (with_leases, disable),
    "delete a persisted role": (with_leases, delete_kept),
    "make a token": (audited, asks("POST", "auth/token/create", {"policies": ["root"]})),
    "list": (audited, asks("LIST", "auth/token/accessors")),
    "look at the permissions": (furnished, asks("GET", "cloud/permissions")),
    "the state": (audited, asks("GET", "sys/health")),
}


def every_stall(start: Callable[[], RecordedInstallation], ask: Ask) -> Iterator[Stalling]:
    installation = StallingInstallation.like(start())
    first = len(installation.trace)
    ask(installation)
    for at, (_, effect) in enumerate(installation.trace[first:], first):
        if not isinstance(effect, CARRIERS):
            for how in Stall if isinstance(effect, DONE_FIRST) else (Stall.BEFORE,):
                yield Stalling(at, how)
                yield Stalling(at, how, STORE if isinstance(effect, STORE) else (type(effect),))


@pytest.mark.parametrize("name", REQUESTS)
def test_no_request_outlives_its_deadline(name: str, sample: Sample) -> None:
    start, ask = REQUESTS[name]
    most = STATE_SECONDS if name == "the state" else DEADLINE + GRACE
    for stalling in sample(every_stall(start, ask)):
        installation = StallingInstallation.like(start())
        installation.stalling = stalling
        asked_at = installation.clock
        reply = ask(installation)
        assert installation.clock - asked_at <= most, stalling
        assert reply.status != 500, stalling
        installation.stalling = None
        installation.is_struck = True
        check_recovery(installation)
