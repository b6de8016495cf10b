"""Both servers keep to the order of the page `order-of-checks.md`, also with large heads and bodies that never come."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import pytest

from .fake_server import MUCH
from .running import SERVERS, Client, Running, body, status

LIMITED: Final = "sys/mounts"
"""Its source has made all requests to it that it may."""

OTHER: Final = "sys/policies/acl/x"
ROOT: Final = "x-vault-token: root"
LARGE: Final = "x: " + "a" * 20_000
LONG: Final = "content-length: 9999999"
WITHOUT_TOKEN: Final = "content-length: 65537"
CHUNKED: Final = "transfer-encoding: chunked"
FAR: Final = "x-vault-namespace: far"


def post(path: str, *fields: str, content: bytes = b"") -> bytes:
    return "\r\n".join([f"POST /v1/{path} HTTP/1.1", "host: test", *fields, "", ""]).encode() + content


CASES: Final = {
    "head before limits": (post(LIMITED, LARGE), 431),
    "limits before path": (post(f"{LIMITED}//", ROOT), 429),
    "limits before headers": (post(LIMITED, ROOT, FAR), 429),
    "limits before length": (post(LIMITED, LONG), 429),
    "limits before length in chunks": (post(LIMITED, CHUNKED, content=b"fffff\r\n"), 429),
    "path before length": (post(f"{OTHER}//", ROOT, LONG), 400),
    "headers before length": (post(OTHER, ROOT, FAR, LONG), 400),
    "length before body": (post(OTHER, ROOT, LONG, content=b"{"), 413),
    "length before body in chunks": (post(OTHER, ROOT, CHUNKED, content=b"1\r\n{\r\n100000\r\n"), 413),
    "length before token": (post(OTHER, "x-vault-token: guess", WITHOUT_TOKEN), 413),
    "body before token": (post(OTHER, "content-length: 1", content=b"{"), 400),
}


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    """With a limit that is used up."""
    options = ("--dev", "--listen", "127.0.0.1:0", "--root-token", "root")
    with Running(f"cloudid_servers.{request.param}", *options) as running:
        quota = json.dumps({"path": LIMITED, "rate": 1, "interval": "1h"}).encode()
        with Client(running.port) as client:
            for path, content in (("sys/quotas/rate-limit/a", quota), (f"{LIMITED}/a/b", b"")):
                client.ask(post(path, ROOT, f"content-length: {len(content)}", content=content))
        yield running


@pytest.mark.parametrize("name", CASES)
def test_the_earlier_step_answers(server: Running, name: str) -> None:
    data, expected = CASES[name]
    with Client(server.port) as client:
        answer = client.ask(data)
        assert (status(answer), bool(json.loads(body(answer))["errors"])) == (expected, True)


@pytest.mark.parametrize("runtime", ["trio", "aiohttp"])
def test_connections_come_before_heads(runtime: str) -> None:
    with (
        Running("tests.servers.fake_server", runtime, "connection_limit=1", "trusted_proxies=") as running,
        Client(running.port) as busy,
    ):
        busy.send(b"GET /large?%d HTTP/1.1\r\nhost: test\r\n\r\n" % MUCH)
        assert busy.socket.recv(1)  # the answer is on its way, until all of it is read
        with Client(running.port) as client:
            assert status(client.ask(post(OTHER, LARGE))) == 503
