"""Many clients change one thing at once, on both servers: each of them succeeds, and nothing is counted twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from cloudid_servers.provider_simulator import Simulator, start
from tests.servers.deployment import Deployment
from tests.servers.running import SERVERS, Client, Running, status

pytestmark = pytest.mark.one_server

USES: Final = 200
WRITERS: Final = 40

Served: TypeAlias = tuple[Deployment, Running]


@pytest.fixture(scope="module", params=SERVERS)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Deployment, Running]]:
    folder: Path = tmp_path_factory.mktemp("contention")
    with start(Simulator()) as cloud:
        deployment = Deployment.prepare(request.param, folder, cloud.url, {})
        with deployment.serving() as server:
            deployment.configure(server)
            yield deployment, server


def at_once(count: int, request: Callable[[int], bytes], server: Running) -> Counter[int]:
    """The statuses of so many requests, each on a connection of its own that is open before the first is sent."""
    connections = [Client(server.port) for _ in range(count)]
    with ThreadPoolExecutor(count) as pool:
        answers = pool.map(lambda number: status(connections[number].ask(request(number))), range(count))
        found = Counter(answers)
    for connection in connections:
        connection.socket.close()
    return found


def test_a_token_with_so_many_uses_can_be_used_so_often_at_once(served: Served) -> None:
    """And not once more."""
    deployment, server = served
    with deployment.client(server) as client:
        created = client.post("auth/token/create", json={"num_uses": USES, "policies": ["default"]})
        token = created.raise_for_status().json()["auth"]["client_token"]
        request = f"GET /v1/auth/token/lookup-self HTTP/1.1\r\nhost: localhost\r\nx-service-token: {token}\r\n\r\n"
        assert at_once(USES, lambda _: request.encode(), server) == {200: USES}
        assert client.get("auth/token/lookup-self", headers={"X-Service-Token": token}).status_code == 403


@pytest.mark.parametrize("path, field", [("auth/cloud/role/all", "token_ttl"), ("cloud/roles/fresh", "ttl")])
def test_all_writers_of_one_role_succeed(served: Served, path: str, field: str) -> None:
    deployment, server = served

    def write(number: int) -> bytes:
        content = f'{{"{field}": {number + 60}}}'
        head = f"POST /v1/{path} HTTP/1.1\r\nhost: localhost\r\nx-service-token: {deployment.root}\r\n"
        return f"{head}content-length: {len(content)}\r\n\r\n{content}".encode()

    assert at_once(WRITERS, write, server) == {204: WRITERS}
    with deployment.client(server) as client:
        data = client.get(path).raise_for_status().json()["data"]
    assert data[field] in range(60, 60 + WRITERS)
