"""Every wait knows its deadline: each effect of each request stalls for ever, and the request is answered in time.

The state of this node is told within two seconds. Afterwards nothing is leaked, lost or locked out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

import pytest

from tests.installation import Reply
from tests.logins import configure_logins, login_form
from tests.sampling import Sample

from .invariants import check_recovery
from .operations import copy_of, furnished, login_method, with_leases
from .recorded import RecordedInstallation
from .stalled import CARRIERS, STORE, Stalling, StallingInstallation, stalls_of

DEADLINE: Final = 20.0
GRACE: Final = 1.0
STATE_SECONDS: Final = 2.0
Ask: TypeAlias = Callable[[RecordedInstallation], Reply]


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
            for how in stalls_of(effect):
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
        installation.heal()
        installation.perform(installation.service.upkeep())  # gives back what the closed request held
        check_recovery(installation)
