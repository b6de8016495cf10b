"""Dead tokens do not pile up, on both servers: they are removed as fast as logins make them.

`python -m benchmarks.sweep` measures the rates.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from pathlib import Path
from typing import Final

import httpx
import pytest

from cloudid_servers.provider_simulator import Simulator, start
from tests.servers.deployment import Deployment
from tests.servers.running import SERVERS, Client, Running, status, wait_until
from tests.servers.threads import Threads

pytestmark = pytest.mark.one_server

CLIENTS: Final = 4
ROUNDS: Final = 3
PAUSE: Final = 4.0
"""Seconds of logins before each round of removal."""
TTL: Final = 1
"""Seconds that each token lives."""
KEPT: Final = 3.0
"""Seconds of logins that may be stored after a round: those of the living, and of what died meanwhile."""


class Logins(Threads):
    """Clients that log in as fast as they can, for as long as the block lasts."""

    def __init__(self, deployment: Deployment, server: Running) -> None:
        super().__init__(*(partial(self._run, number) for number in range(CLIENTS)))
        self._request = deployment.login_bytes()
        self._port = server.port
        self._counts = [0] * CLIENTS
        self._began = time.monotonic()

    def _run(self, number: int, stop: threading.Event) -> None:
        with Client(self._port) as connection:
            while not stop.is_set():
                assert status(connection.ask(self._request)) == 200
                self._counts[number] += 1

    @property
    def made(self) -> int:
        return sum(self._counts)

    @property
    def rate(self) -> float:
        return self.made / (time.monotonic() - self._began)


@pytest.mark.parametrize("name", SERVERS)
def test_dead_tokens_are_removed_as_fast_as_they_are_made(name: str, tmp_path: Path) -> None:
    """A round of removal, which comes every ten seconds and whenever it is asked for, removes all that have died."""
    with start(Simulator()) as cloud:
        deployment = Deployment.prepare(name, tmp_path, cloud.url, {"fact_max_age": 3600})
        with deployment.serving() as server, deployment.client(server) as client:
            deployment.configure(server, token_ttl=f"{TTL}s")
            with Logins(deployment, server) as logins:
                for _ in range(ROUNDS):
                    time.sleep(PAUSE)
                    remove_until_fewer_are_left(deployment, client, logins.rate * KEPT)
            assert logins.made > 2 * ROUNDS * PAUSE
            time.sleep(TTL)
            remove_until_fewer_are_left(deployment, client, 2)
            assert deployment.stored_tokens() == 1, "the root token"


def remove_until_fewer_are_left(deployment: Deployment, client: httpx.Client, wanted: float) -> None:
    """Ask for a round of removal, and wait until it has made the stored tokens fewer than wanted."""
    client.post("auth/token/tidy").raise_for_status()
    wait_until(lambda: deployment.stored_tokens() < wanted)
