"""One family of the provider's services in trouble: what does not need it is served as if nothing was wrong.

Each server is compared with itself: the same requests are sent while nothing is wrong (the control).
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

import httpx
import pytest
from attrs import frozen

from .running import PATIENCE, SERVERS, Client, Running, body, initialise, status
from .story import RESOURCE, login_form
from .troubled_cloud import TROUBLES, TroubledCloud, troubled_cloud

BORROWERS: Final = 150
"""Requests for credentials at the same time: more than a server has connections to one family."""
DEADLINE: Final = 3
"""Seconds that every request is given, by its header."""
SECONDS: Final = 2.0
"""For how long the other requests are sent."""
FACTOR: Final = 20.0
"""How many times the latency of the control's slowest kind of request is still as before, on a machine that is busy.

A request that waits for one that hangs waits for its deadline, which is a hundred times the control.
"""
ATTEMPTS: Final = 3
"""A machine may be busy with something else for a moment; a request that waits for the provider does so every time."""
ALLOWANCE: Final = 2.0
"""Seconds after its deadline in which a request must have ended, beside the time of the control's slowest one."""

SETTINGS: Final = """
[server]
listen = "127.0.0.1:0"
store = "store.db"
key_file = "key"
log_level = "error"

[service]
fact_max_age = 0
machine_check = "needed"
"""
NEEDED_BY: Final[Mapping[str, frozenset[str]]] = {
    "look-up": frozenset(),
    "role": frozenset(),
    "login": frozenset(),
    "login with a look at the machine": frozenset({"arm"}),
}
"""Which families a request needs. All have been used before: signing keys and access tokens are remembered."""


@frozen
class Served:
    """A server that is configured, and bytes to send to it."""

    running: Running
    cloud: TroubledCloud
    requests: Mapping[str, bytes]
    borrow: bytes


@frozen
class Seen:
    """What clients saw: by request its statuses and latencies, and the same of the requests for credentials."""

    statuses: Mapping[str, set[int]]
    latencies: Mapping[str, list[float]]
    borrowed: list[int]
    slowest: float

    def slow(self, request: str) -> float:
        """What 95 of 100 requests stay below, in seconds."""
        latencies = sorted(self.latencies[request])
        return latencies[int(len(latencies) * 0.95)]


@pytest.fixture(scope="module", params=SERVERS)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("trouble")
    with troubled_cloud() as cloud:
        (folder / "cloudid.toml").write_text(SETTINGS + cloud.settings)
        root = initialise(request.param, folder / "cloudid.toml")
        with Running(f"servers.{request.param}", "--settings", str(folder / "cloudid.toml")) as running:
            yield prepare(running, cloud, root)


@pytest.fixture(scope="module")
def control(served: Served) -> Seen:
    """What clients see when nothing is wrong."""
    seen = watch(served)
    assert all(statuses <= {200, 204} for statuses in seen.statuses.values())
    assert set(seen.borrowed) == {200}
    return seen


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("family", ["graph", "arm", "login"])
def test_what_does_not_need_the_family_is_served_as_before(
    served: Served, control: Seen, family: str, trouble: str
) -> None:
    for _ in range(ATTEMPTS):
        with served.cloud.families[family].in_trouble(trouble):
            seen = watch(served)
        wait_until_served(served.running, served.requests)
        for request, needs in NEEDED_BY.items():
            assert seen.statuses[request] <= ({502, 503, 504} if family in needs else {200, 204}), request
        bound = FACTOR * max(control.slow(request) for request in NEEDED_BY)
        late = {request for request, needs in NEEDED_BY.items() if family not in needs and seen.slow(request) >= bound}
        if not late:
            break
        control = watch(served)
    assert late == set()
    latencies = [seen.slowest, *(max(seen.latencies[request]) for request in NEEDED_BY if family in NEEDED_BY[request])]
    assert max(latencies) < DEADLINE + ALLOWANCE + control.slowest
    if family == "graph":
        assert set(seen.borrowed) <= {502, 503, 504}


def prepare(running: Running, cloud: TroubledCloud, root: str) -> Served:
    world = httpx.get(f"{cloud.simulator}/simulator/world", trust_env=False).json()
    application, other = world["applications"][:2]
    machine = world["machines"][0]
    config = {name: application[name] for name in ("client_id", "client_secret")} | {"tenant_id": world["tenant"]}
    near = {"bound_service_principal_ids": "*"}
    documents = {
        "auth/cloud/config": {**config, "resource": RESOURCE, "retry_delay": 1},
        "auth/cloud/role/near": near,
        "auth/cloud/role/far": {"bound_locations": [machine["location"]]},
        "cloud/config": {**config, "subscription_id": world["subscriptions"][0]},
        "cloud/roles/existing": {"application_object_id": other["object_id"]},
    }
    with httpx.Client(trust_env=False, headers={"X-Service-Token": root}, timeout=PATIENCE) as client:
        for path, document in documents.items():
            answer = client.post(f"{running.url}/v1/{path}", json=document)
            assert answer.is_success, answer.text
        client.get(f"{running.url}/v1/cloud/creds/existing").raise_for_status()
    form = login_form(cloud.simulator, machine)
    assert form is not None
    requests = {
        "look-up": raw("GET", "auth/token/lookup-self", root),
        "role": raw("POST", "auth/cloud/role/other", root, near),
        "login": raw("POST", "auth/cloud/login", "", {**form, "role": "near"}),
        "login with a look at the machine": raw("POST", "auth/cloud/login", "", {**form, "role": "far"}),
    }
    wait_until_served(running, requests)
    return Served(running, cloud, requests, raw("GET", "cloud/creds/existing", root))


def raw(method: str, path: str, token: str, document: Any = None) -> bytes:
    content = b"" if document is None else json.dumps(document).encode()
    head = f"{method} /v1/{path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(content)}\r\n"
    head += f"x-service-deadline: {DEADLINE}\r\n"
    head += f"x-service-token: {token}\r\n" if token else ""
    return f"{head}\r\n".encode() + content


def wait_until_served(running: Running, requests: Mapping[str, bytes]) -> None:
    """Send each request until it succeeds, as it soon does when the provider works."""
    until = time.monotonic() + PATIENCE
    with Client(running.port) as connection:
        for request in requests.values():
            while status(answer := connection.ask(request)) not in (200, 204):
                assert time.monotonic() < until, body(answer)
                time.sleep(0.1)


def watch(served: Served) -> Seen:
    """Ask for many credentials at once, and meanwhile send the other requests, each on a connection of its own."""
    statuses: dict[str, set[int]] = defaultdict(set)
    latencies: dict[str, list[float]] = defaultdict(list)
    borrowed: list[int] = []
    taken: list[float] = []

    def borrow() -> None:
        with Client(served.running.port) as connection:
            start = time.perf_counter()
            borrowed.append(status(connection.ask(served.borrow)))
            taken.append(time.perf_counter() - start)

    def repeat(name: str) -> None:
        with Client(served.running.port) as connection:
            until = time.perf_counter() + SECONDS
            while (start := time.perf_counter()) < until:
                statuses[name].add(status(connection.ask(served.requests[name])))
                latencies[name].append(time.perf_counter() - start)

    borrowers = [threading.Thread(target=borrow) for _ in range(BORROWERS)]
    others = [threading.Thread(target=repeat, args=(name,)) for name in served.requests]
    for thread in (*borrowers, *others):
        thread.start()
    for thread in (*borrowers, *others):
        thread.join(2 * PATIENCE)
    assert len(borrowed) == BORROWERS
    return Seen(statuses, latencies, borrowed, max(taken))
