"""A mount that is disabled while its server is killed: what it lent ends all the same."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from cloudid_servers.provider_simulator import Simulator, start
from tests.servers.credentials import ROLES, SETTLED_SOON, alive, leases
from tests.servers.deployment import Deployment
from tests.waiting import PATIENT, wait_until

MOUNT: Final = "sys/mounts/cloud"
AMID: Final = {
    "the first secret": {"method": "POST", "path": ".*/removePassword$"},
    "an assignment": {"method": "DELETE", "path": ".*/roleAssignments/"},
}
"""A request to the provider that is done, and whose answer does not come before the server is killed."""

RULES: Final = "simulator/faults"
TIMES: Final = 1000


def hold(cloud: httpx.Client, match: dict[str, str]) -> None:
    cloud.post(RULES, json=[{"match": match, "times": TIMES, "action": {"delay": 3600}}]).raise_for_status()


def borrow(client: httpx.Client, role: str) -> bool:
    """Whether credentials came: a busy machine may take longer than the deadline of requests."""
    return client.get(f"cloud/creds/{role}").is_success


def is_held(cloud: httpx.Client) -> bool:
    rules: Any = cloud.get(RULES).json()
    return bool(rules[0]["times"] < TIMES)


@pytest.mark.parametrize("amid", AMID)
def test_a_mount_whose_end_was_cut_off_leaves_nothing_at_the_provider(amid: str, tmp_path: Path) -> None:
    """OpenBao GHSA-vv66: a deletion that was interrupted lost the leases, and what they stood for lived on.

    `kill -9` amid the deletion; the server starts again, and the deletion is asked for again.
    """
    with start(Simulator()) as simulator, httpx.Client(base_url=simulator.url, **PATIENT) as cloud:
        deployment = Deployment.prepare("trio_server", tmp_path, simulator.url, SETTLED_SOON)
        with deployment.serving() as server, deployment.client(server) as client:
            deployment.configure(server)
            for role in (*ROLES, *ROLES):
                wait_until(partial(borrow, client, role))
            lent = alive(simulator.url)
            assert {one["kind"] for one in lent} == {"application", "principal", "password", "assignment"}
            hold(cloud, AMID[amid])

            def disable() -> None:
                with suppress(httpx.HTTPError):
                    client.delete(MOUNT)

            thread = threading.Thread(target=disable)
            thread.start()
            wait_until(lambda: is_held(cloud))
            server.process.kill()
            thread.join()
            cloud.post(RULES, json=[]).raise_for_status()
            assert alive(simulator.url)
        with deployment.serving() as server, deployment.client(server) as client:
            assert client.delete(MOUNT).status_code in (202, 204)
            assert "cloud/" not in client.get("sys/mounts").json()["data"]
            assert client.get(f"cloud/creds/{ROLES[0]}").status_code == 404
            wait_until(lambda: not alive(simulator.url))
            wait_until(lambda: client.request("LIST", "sys/retiring").status_code == 404)
            assert leases(client) == set()
            client.post(MOUNT, json={"type": "cloud"}).raise_for_status()
