"""`kill -9` of a server under load: what was answered has a lease, and nothing else of what was made is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from cloudid_servers.provider_simulator import Simulator, start

from .credentials import SETTLED_SOON, borrowing, check
from .deployment import Deployment
from .load import Load
from .running import SERVERS

pytestmark = pytest.mark.one_server

ENOUGH: Final = 6
"""Credentials that are answered before each kill."""


@pytest.mark.parametrize("name", SERVERS)
def test_nothing_is_leaked_and_no_lease_is_lost(name: str, tmp_path: Path, cycles: int) -> None:
    """Several cycles over one store; then the provider's ledger is compared with the leases, and all is given back."""
    answers: list[Any] = []
    with start(Simulator()) as cloud:
        deployment = Deployment.prepare(name, tmp_path, cloud.url, SETTLED_SOON)
        with deployment.serving() as server:
            deployment.configure(server)
        for _ in range(cycles):
            with (
                deployment.serving() as server,
                deployment.client(server) as client,
                Load(*borrowing(client) * 2) as load,
            ):
                load.wait_for_more(ENOUGH)
                server.process.kill()
            answers += load.answers
        with deployment.serving() as server, deployment.client(server) as client:
            check(client, cloud.url, answers)
