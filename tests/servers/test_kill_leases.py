"""`kill -9` of a server under load: what was answered has a lease, and nothing else of what was made is left."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from servers.provider_simulator import Simulator, start

from .running import PATIENCE, SERVERS, Running, initialise, wait_until

CLIENTS: Final = 4
LONG: Final = 90.0
"""Seconds in which the background work comes to an end, on a machine that is busy."""
ENOUGH: Final = 6
"""Credentials that are answered before each kill."""

SETTINGS: Final = """
[server]
listen = "127.0.0.1:0"
store = "{folder}/store.db"
key_file = "{folder}/key"

[service]
request_deadline = "3s"
request_grace = "500ms"
settle_time = 2
"""


class Issuing:
    """Clients that borrow credentials again and again until the server is gone."""

    def __init__(self, url: str, root: str) -> None:
        self.answered: list[dict[str, Any]] = []
        self._url = url
        self._root = root
        self._enough = threading.Event()
        self._clients = [threading.Thread(target=self._issue, args=(role,)) for role in ("fresh", "existing") * 2]

    def kill(self, server: Running) -> None:
        """Amid the work: some requests are answered, some are under way."""
        for client in self._clients:
            client.start()
        assert self._enough.wait(PATIENCE)
        server.process.send_signal(signal.SIGKILL)
        for client in self._clients:
            client.join(PATIENCE)

    def _issue(self, role: str) -> None:
        with httpx.Client(trust_env=False, headers={"X-Service-Token": self._root}, timeout=PATIENCE) as client:
            for _ in range(100 * ENOUGH):
                try:
                    answer = client.get(f"{self._url}/v1/cloud/creds/{role}")
                except httpx.TransportError:
                    return
                if answer.status_code == 200:
                    self.answered.append(answer.json())
                if len(self.answered) >= ENOUGH:
                    self._enough.set()


@pytest.mark.parametrize("name", SERVERS)
def test_nothing_is_leaked_and_no_lease_is_lost(name: str, tmp_path: Path, cycles: int) -> None:
    """Several cycles over one store; then the provider's ledger is compared with the leases, and all is given back."""
    settings = tmp_path / "cloudid.toml"
    settings.write_text(SETTINGS.format(folder=tmp_path))
    answered: list[dict[str, Any]] = []
    with start(Simulator()) as cloud:
        arguments = ("--settings", str(settings), "--provider", cloud.url)
        root = initialise(name, settings)
        for cycle in range(cycles):
            with Running(f"servers.{name}", *arguments) as server:
                if cycle == 0:
                    configure(server.url, cloud.url, root)
                issuing = Issuing(server.url, root)
                issuing.kill(server)
                answered += issuing.answered
        assert len(answered) >= cycles * ENOUGH
        with Running(f"servers.{name}", *arguments) as server:
            headers = {"X-Service-Token": root}
            with httpx.Client(base_url=server.url, trust_env=False, headers=headers, timeout=LONG) as client:
                wait_until(lambda: passwords(cloud.url) == len(leases(client)), LONG)
                assert {answer["lease_id"] for answer in answered} <= leases(client)
                client.put("/v1/sys/leases/revoke-prefix/cloud/creds").raise_for_status()
                wait_until(lambda: not alive(cloud.url), LONG)
                assert leases(client) == set()


def configure(url: str, simulator: str, root: str) -> None:
    """An engine with a role that makes principals, and one that uses an existing application."""
    world = httpx.get(f"{simulator}/simulator/world", trust_env=False).json()
    application, other = world["applications"][:2]
    config = {name: application[name] for name in ("client_id", "client_secret")}
    config |= {"tenant_id": world["tenant"], "subscription_id": world["subscriptions"][0]}
    assignments = json.dumps([{"role_name": "Reader", "scope": f"/subscriptions/{world['subscriptions'][0]}"}])
    with httpx.Client(base_url=url, trust_env=False, headers={"X-Service-Token": root}) as client:
        client.post("/v1/cloud/config", json=config).raise_for_status()
        client.post("/v1/cloud/roles/fresh", json={"azure_roles": assignments}).raise_for_status()
        client.post("/v1/cloud/roles/existing", json={"application_object_id": other["object_id"]}).raise_for_status()


def leases(client: httpx.Client) -> set[str]:
    """The ids of all leases."""
    found: set[str] = set()
    for role in ("fresh", "existing"):
        answer = client.request("LIST", f"/v1/sys/leases/lookup/cloud/creds/{role}")
        if answer.status_code == 200:
            found |= {f"cloud/creds/{role}/{key}" for key in answer.json()["data"]["keys"]}
    return found


def alive(simulator: str) -> list[dict[str, Any]]:
    """What was made at the provider and lives."""
    made = httpx.get(f"{simulator}/simulator/ledger", trust_env=False).json()
    return [one for one in made if one["deleted_at"] is None]


def passwords(simulator: str) -> int:
    """How many credentials live; -1 while there are applications without one."""
    kinds = [one["kind"] for one in alive(simulator)]
    applications, assignments = kinds.count("application"), kinds.count("assignment")
    return kinds.count("password") if applications == assignments else -1
