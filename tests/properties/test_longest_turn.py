"""The longest turn: no request works for long without letting others go on.

A host runs all programs on one thread. What counts is the CPU between two effects that let others go on, as a multiple
of what an ordinary request takes in the same run.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Mapping
from functools import cache
from statistics import median
from typing import Any, Final

import pytest

from cloudid_core.context import Due
from cloudid_core.effects import CallProvider, Effect, Failure, Program, Sleep, Together, Within
from cloudid_core.leases.record import Lease
from cloudid_core.mounts import mount_table
from cloudid_core.provider.provisioned import Provisioned
from cloudid_core.store import keys
from cloudid_core.store.sealing import NONCE_SIZE
from tests.engines import CREDS, SecretsEngine, configured_engine
from tests.installation import Installation

LEASES: Final = 20_000
MOST: Final = 1700
"""So many ordinary requests: some 50 ms."""

TRIES: Final = 9
"""On a busy machine not each of them shows what a turn costs."""

LETS_OTHERS_GO_ON: Final = (Sleep, CallProvider, Together, Within)
"""Other effects may be answered at once."""


def turns(installation: Installation, program: Program[Any]) -> tuple[Any, list[float]]:
    """What a program returns, and the seconds of CPU of each of its turns."""
    taken = [0.0]
    reply: object = None

    async def answer(effect: Effect[Any]) -> Any:
        return await effect

    while True:
        begun = time.thread_time()
        try:
            effect = program.send(reply)
        except StopIteration as finished:
            taken[-1] += time.thread_time() - begun
            return finished.value, taken
        taken[-1] += time.thread_time() - begun
        if isinstance(effect, LETS_OTHERS_GO_ON):
            taken.append(0.0)
        try:
            reply = installation.perform(answer(effect))
        except Exception as error:  # noqa: BLE001  # it belongs to the program
            reply = Failure(error)


def longest(installation: Installation, method: str, path: str, body: object = None, token: str = "") -> float:
    """The longest turn of a request, in seconds of CPU."""
    request = installation.request(method, path, body, **({"token": token} if token else {}))
    response, taken = turns(installation, installation.program(request))
    assert response.status in (200, 204), response.body[:300]
    return max(taken)


def ordinary(installation: Installation) -> float:
    """What an ordinary request takes: the median of some, which feels what else the machine does as a long one does."""
    return median(longest(installation, "GET", "auth/token/lookup-self") for _ in range(20))


def is_short(installation: Installation, method: str, path: str, body: object = None, token: str = "") -> bool:
    """Whether the longest turn of a request is shorter than `MOST` ordinary requests, as one of some tries shows."""
    gc.collect()
    gc.freeze()  # what other tests left is not looked through
    try:
        tries = (longest(installation, method, path, body, token) < MOST * ordinary(installation) for _ in range(TRIES))
        return any(tries)
    finally:
        gc.unfreeze()


def put(installation: Installation, records: Mapping[str, object]) -> None:
    sealed = installation.context.records.seal(records, bytes(NONCE_SIZE * len(records)))
    installation.store.commit({}, sealed, ())


@cache
def engine_with_leases() -> SecretsEngine:
    """An engine with many leases, whose objects the provider does not have."""
    engine = configured_engine()
    mount = next(
        each for each in engine.perform(mount_table(engine.context.records)).record.mounts if each.path == "cloud"
    )
    records: dict[str, object] = {}
    for number in range(LEASES):
        lease = Lease(
            id=f"{CREDS}/{number:026}",
            mount_id=mount.id,
            role="web",
            token_id="",
            provisioned=Provisioned(
                made_at=engine.clock - 86_400,
                tenant=engine.config["tenant_id"],
                application_id=f"{number:08}-0000-4000-8000-000000000000",
                unique_name=f"name-{number}",
            ),
            issued_at=engine.clock - 86_400,
            expires_at=engine.clock + 86_400,
            ends_at=engine.clock + 86_400,
            due_at=engine.clock + 86_400,
        )
        records |= {lease.key: lease, keys.mount_lease(mount.id, lease.id): Due()}
    put(engine, records)
    return engine


def policy_of(patterns: int, mount: str = "cloud") -> dict[str, str]:
    paths = {f"{mount}/+/{'x' * 20}{number}/*": {"capabilities": ["read", "list"]} for number in range(patterns)}
    return {"policy": json.dumps({"path": paths}, separators=(",", ":"))}


def hcl_policy() -> dict[str, str]:
    rule = 'path "secret/data/%d/*" {\n  capabilities = ["create", "read", "list"]\n}\n'
    return {"policy": "".join(rule % number for number in range(1050))}


def big_body() -> dict[str, object]:
    return {"path": "a", "unknown": [{f"{number}{'a' * 19}": "b" * 20 for number in range(10)} for _ in range(2200)]}


def engine_with_roles() -> SecretsEngine:
    """An engine with a hundred thousand roles, which a list does not read."""
    engine = configured_engine()
    mounts = engine.perform(mount_table(engine.context.records)).record.mounts
    mount_id = next(each.id for each in mounts if each.path == "cloud")
    put(engine, {keys.role(mount_id, f"role-{number:06}"): Due() for number in range(100_000)})
    return engine


def token_with_patterns(installation: Installation, *policies: dict[str, str]) -> str:
    """A token that has these policies."""
    for number, policy in enumerate(policies):
        installation.must("PUT", f"sys/policies/acl/many-{number}", policy)
    names = [f"many-{number}" for number in range(len(policies))]
    token: str = installation.must("POST", "auth/token/create", {"policies": names}).auth["client_token"]
    return token


@pytest.mark.long
def test_capabilities_at_many_paths_let_others_go_on() -> None:
    installation = Installation()
    token = token_with_patterns(installation, policy_of(2000))
    paths = [f"cloud/creds/{'x' * 20}{number}/{'y/' * 50}" for number in range(400)]
    assert is_short(installation, "POST", "sys/capabilities-self", {"paths": paths}, token)


def test_a_list_of_mounts_for_a_token_with_many_patterns_lets_others_go_on() -> None:
    """And so does the reading of its policies."""
    installation = Installation()
    token = token_with_patterns(installation, *(policy_of(3400, f"cloud-{number}") for number in range(10)))
    for number in range(20):
        installation.must("POST", f"sys/mounts/engine-{number}", {"type": "cloud"})
    installation.restart()
    assert is_short(installation, "GET", "sys/internal/ui/mounts", token=token)


REQUESTS: Final[Mapping[str, tuple[Callable[[], Installation], str, str, Callable[[], object]]]] = {
    "a reconciliation of many leases": (engine_with_leases, "GET", "cloud/reconcile", lambda: None),
    "a list of many leases": (engine_with_leases, "LIST", "sys/leases/lookup/cloud/creds/web", lambda: None),
    "a count of many leases": (engine_with_leases, "GET", "sys/leases/count", lambda: None),
    "a list of many keys": (engine_with_roles, "LIST", "cloud/roles", lambda: None),
    "the document of the interface": (Installation, "GET", "sys/internal/specs/openapi", lambda: None),
    "a large body": (Installation, "POST", "sys/capabilities-self", big_body),
    "a large policy in JSON": (Installation, "POST", "sys/policies/acl/a", lambda: policy_of(3400)),
    "a large policy in HCL": (Installation, "POST", "sys/policies/acl/a", hcl_policy),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if make is Installation else pytest.mark.long)
        for name, (make, *_) in REQUESTS.items()
    ],
)
def test_no_request_works_for_long_without_letting_others_go_on(name: str) -> None:
    make, method, path, body = REQUESTS[name]
    installation = make()
    assert is_short(installation, method, path, body())
