"""One family of the provider's services in trouble: what does not need it is served as if nothing was wrong.

All requests succeed while nothing is wrong (the control).
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

import httpx
import pytest
from attrs import frozen

from tests.waiting import PATIENT

from .running import SERVERS, Client, Running, initialise, status, wait_until
from .story import RESOURCE, login_form
from .threads import Threads
from .troubled_cloud import TROUBLES, TroubledCloud, troubled_cloud

pytestmark = pytest.mark.one_server

BORROWERS: Final = 80
"""Requests for credentials at the same time: more than a server has connections to one family."""
ENOUGH: Final = 60
"""Seconds that requests are given, by a header: only what waits for a family that hangs takes as long, and fails."""
DEADLINE: Final = 3
"""Seconds that requests are given which need a family in trouble."""
REPEATS: Final = 20
"""How often each request is sent that needs none."""

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
    "credentials": frozenset({"graph", "login"}),
}
"""Which families a request needs. All have been used before: signing keys and access tokens are remembered."""


@frozen
class Served:
    """A server that is configured, and the requests that are sent to it: method, path, token and document."""

    running: Running
    cloud: TroubledCloud
    requests: Mapping[str, tuple[str, str, str, Any]]

    def ask(self, name: str, deadline: int = ENOUGH) -> int:
        """The status of one request, on a connection of its own."""
        with Client(self.running.port) as connection:
            return status(connection.ask(raw(*self.requests[name], deadline)))


@pytest.fixture(scope="module", params=SERVERS)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("trouble")
    with troubled_cloud() as cloud:
        (folder / "cloudid.toml").write_text(SETTINGS + cloud.settings)
        root = initialise(request.param, folder / "cloudid.toml")
        with Running(f"cloudid_servers.{request.param}", "--settings", str(folder / "cloudid.toml")) as running:
            yield prepare(running, cloud, root)


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("family", ["graph", "arm", "login"])
def test_what_does_not_need_the_family_is_served_as_before(served: Served, family: str, trouble: str) -> None:
    """While many others ask for credentials. What needs the family fails, in time."""
    with Threads(*[partial(borrow, served)] * BORROWERS), served.cloud.families[family].in_trouble(trouble):
        for request, needs in NEEDED_BY.items():
            if family not in needs:
                assert {served.ask(request) for _ in range(REPEATS)} <= {200, 204}, request
                continue
            started = time.monotonic()
            assert served.ask(request, DEADLINE) in (502, 503, 504), request
            assert time.monotonic() - started < ENOUGH / 2, request
    wait_until_served(served)


def borrow(served: Served, stop: threading.Event) -> None:
    """Ask for credentials, whatever becomes of it."""
    served.ask("credentials")


def test_all_is_served_while_nothing_is_wrong(served: Served) -> None:
    with ThreadPoolExecutor(BORROWERS) as pool:
        borrowed = pool.map(lambda _: served.ask("credentials"), range(BORROWERS))
        for request in NEEDED_BY:
            assert {served.ask(request) for _ in range(REPEATS)} <= {200, 204}, request
        assert set(borrowed) == {200}
    wait_until_served(served)


def prepare(running: Running, cloud: TroubledCloud, root: str) -> Served:
    world = httpx.get(f"{cloud.simulator}/simulator/world", **PATIENT).json()
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
    with httpx.Client(headers={"X-Service-Token": root}, **PATIENT) as client:
        for path, document in documents.items():
            answer = client.post(f"{running.url}/v1/{path}", json=document)
            assert answer.is_success, answer.text
    form = login_form(cloud.simulator, machine)
    assert form is not None
    requests = {
        "look-up": ("GET", "auth/token/lookup-self", root, None),
        "role": ("POST", "auth/cloud/role/other", root, near),
        "login": ("POST", "auth/cloud/login", "", {**form, "role": "near"}),
        "login with a look at the machine": ("POST", "auth/cloud/login", "", {**form, "role": "far"}),
        "credentials": ("GET", "cloud/creds/existing", root, None),
        "give back": ("PUT", "sys/leases/revoke-prefix/cloud/creds", root, {}),
    }
    served = Served(running, cloud, requests)
    wait_until_served(served)
    return served


def raw(method: str, path: str, token: str, document: Any, deadline: int) -> bytes:
    content = b"" if document is None else json.dumps(document).encode()
    head = f"{method} /v1/{path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(content)}\r\n"
    head += f"x-service-deadline: {deadline}\r\n"
    head += f"x-service-token: {token}\r\n" if token else ""
    return f"{head}\r\n".encode() + content


def wait_until_served(served: Served) -> None:
    """Send each request until it succeeds, as it soon does when the provider works; then give all credentials back."""
    for request in (*NEEDED_BY, "give back"):
        wait_until(partial(succeeds, served, request))


def succeeds(served: Served, request: str) -> bool:
    return served.ask(request) in (200, 204)
