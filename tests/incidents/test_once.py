"""What may be used once, asked for by many at the same time, on several nodes of several processes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import cycle, islice
from pathlib import Path
from typing import Final

import pytest

from tests.servers.running import Client, Running, body, status
from tests.servers.story import ROOT
from tests.stores.test_served import ask, prepared, written

MANY: Final = 40
ROUNDS: Final = 3
SECRET: Final = "c4n4ry-that-was-wrapped"


def request(method: str, path: str, token: str, content: object = None, *fields: str) -> bytes:
    data = b"" if content is None else json.dumps(content).encode()
    head = (f"{method} /v1/{path} HTTP/1.1", "host: test", f"x-vault-token: {token}", f"content-length: {len(data)}")
    return "\r\n".join([*head, *fields, "", ""]).encode() + data


def at_once(nodes: Sequence[Running], data: bytes) -> list[bytes]:
    """The answers to one request that many send to all nodes in turn, on connections that are open already."""
    with ExitStack() as opened:
        clients = [opened.enter_context(Client(node.port)) for node in islice(cycle(nodes), MANY)]
        for client in clients:
            client.send(data)
        return [client.receive() for client in clients]


@pytest.fixture
def nodes(database: str, tmp_path: Path) -> Iterator[Sequence[Running]]:
    """Three nodes over PostgreSQL, two of which have several processes."""
    settings = written(tmp_path, database)
    prepared(settings)
    arguments = ("--settings", str(settings))
    with (
        Running("cloudid_servers.trio_server", *arguments, "--workers", "2") as first,
        Running("cloudid_servers.aiohttp_server", *arguments, "--workers", "2") as second,
        Running("cloudid_servers.trio_server", *arguments) as third,
    ):
        yield first, second, third


def test_what_may_be_used_once_is_used_once_however_many_nodes_are_asked(nodes: Sequence[Running]) -> None:
    """SPIRE 1.14.6: a join token was looked up and deleted in two steps, and good for all who asked in between."""
    for _ in range(ROUNDS):
        created = ask(nodes[0].url, "POST", "auth/token/create", body={"policies": ["default"], "num_uses": 1})
        token = created.json()["auth"]["client_token"]
        answers = at_once(nodes, request("GET", "auth/token/lookup-self", token))
        assert Counter(map(status, answers)) == {200: 1, 403: MANY - 1}

        wrap = request("POST", "sys/wrapping/wrap", ROOT, {"a": SECRET}, "x-vault-wrap-ttl: 300")
        with Client(nodes[1].port) as client:
            token = json.loads(body(client.ask(wrap)))["wrap_info"]["token"]
        answers = at_once(nodes, request("POST", "sys/wrapping/unwrap", token))
        assert Counter(map(status, answers)) == {200: 1, 400: MANY - 1}
        assert sum(SECRET in body(answer).decode() for answer in answers) == 1
