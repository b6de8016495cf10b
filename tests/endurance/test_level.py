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

from servers.provider_simulator import Simulator, start
from tests.servers.deployment import Deployment
from tests.servers.running import SERVERS, Client, Running, status
from tests.servers.threads import Threads

CLIENTS: Final = 4
ROUNDS: Final = 3
PAUSE: Final = 4.0
"""Seconds of logins before each round of removal."""
TTL: Final = 1
"""Seconds that each token lives."""
ROUND: Final = 15.0
"""Most seconds that a round of removal may take until it shows."""
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
                    wanted = logins.rate * KEPT
                    assert stored_after_a_round(deployment, client, wanted) < wanted
            assert logins.made > 2 * ROUNDS * PAUSE
            time.sleep(TTL)
            assert stored_after_a_round(deployment, client, 2) == 1, "the root token"


def stored_after_a_round(deployment: Deployment, client: httpx.Client, wanted: float) -> int:
    """How many tokens are stored once a round has made them fewer than wanted, or soon should have."""
    client.post("auth/token/tidy").raise_for_status()
    until = time.monotonic() + ROUND
    while (stored := deployment.stored_tokens()) >= wanted and time.monotonic() < until:
        time.sleep(0.1)
    return stored
