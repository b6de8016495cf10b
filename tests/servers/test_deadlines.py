"""What hangs holds a request until its deadline and no longer, on both servers: the disk, an audit device.

That of the provider is in `test_provider_trouble`, that of the database in `tests/nodes/test_stalled_database.py`.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from .deployment import Deployment
from .running import SERVERS, Client, Running, body, status, wait_until
from .slow_disk import HANGS

pytestmark = pytest.mark.one_server

RUNTIMES: Final = ("trio", "aiohttp")
WRITE: Final = "GET /write?a HTTP/1.1\r\nhost: test\r\n"
IN_TIME: Final = "x-service-deadline: 1\r\n\r\n"
RESET: Final = struct.pack("ii", 1, 0)


def is_unanswered(client: Client) -> bool:
    client.socket.setblocking(False)
    try:
        return not client.socket.recv(1)
    except BlockingIOError:
        return True


def refusal(server: Running, request: bytes) -> tuple[int, list[str]]:
    with Client(server.port) as client:
        answer = client.ask(request)
    return status(answer), json.loads(body(answer))["codes"]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_disk_that_hangs(runtime: str, tmp_path: Path) -> None:
    """A request without a deadline of its own is still waiting then. The connection of the other one is closed."""
    with (
        Running("tests.servers.slow_disk", str(tmp_path), runtime) as running,
        Client(running.port) as patient,
        Client(running.port) as hurried,
    ):
        assert status(hurried.ask(f"{WRITE}\r\n".encode())) == 200
        (tmp_path / HANGS).touch()
        patient.send(f"{WRITE}\r\n".encode())
        answer = hurried.ask((WRITE + IN_TIME).encode())
        assert (status(answer), json.loads(body(answer))["codes"]) == (504, ["deadline_passed"])
        assert hurried.is_closed()
        assert is_unanswered(patient)
        (tmp_path / HANGS).unlink()


@contextmanager
def full(listener: socket.socket) -> Iterator[None]:
    """No further connection comes about, and none is refused."""
    with ExitStack() as stack:
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield


@pytest.mark.parametrize("name", SERVERS)
def test_an_audit_device_that_hangs(name: str, tmp_path: Path) -> None:
    """Health says so then."""
    deployment = Deployment.prepare(name, tmp_path, "http://127.0.0.1:1", {})
    look_up = f"GET /v1/auth/token/lookup-self HTTP/1.1\r\nhost: a\r\nx-service-token: {deployment.root}\r\n"
    with (
        deployment.serving() as server,
        deployment.client(server) as client,
        socket.create_server(("127.0.0.1", 0), backlog=0) as collector,
    ):
        address = "{}:{}".format(*collector.getsockname())
        options = {"address": address, "socket_type": "tcp", "write_timeout": "10m"}
        client.put("sys/audit/net", json={"type": "socket", "options": options}).raise_for_status()
        connection, _ = collector.accept()
        with full(collector), Client(server.port) as patient:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            connection.close()
            hurried = (look_up + IN_TIME).encode()
            # at first the device fails, because its connection was closed
            wait_until(lambda: refusal(server, hurried) == (504, ["deadline_passed"]))
            patient.send(f"{look_up}\r\n".encode())
            assert refusal(server, hurried) == (504, ["deadline_passed"])
            assert is_unanswered(patient)
            health = client.get("sys/health")
            assert (health.status_code, health.json()["problems"]) == (503, ["audit_unavailable"])
