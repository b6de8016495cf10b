"""Bodies: what all connections hold of them has one bound, and who holds most gives up first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from cloudid_servers.http1.bodies import UNCOUNTED, Bodies
from cloudid_servers.settings.settings import SettingsError, read_file

from .running import SERVERS, Client, Running, body, status
from .test_connections import ATTACKER, FakeConnection

KIB: Final = 1024
LIMIT: Final = 1024 * KIB
LENGTH: Final = 400 * KIB
ATTACKERS: Final = 6


def test_the_longest_unfinished_body_of_the_source_that_holds_most_is_given_up() -> None:
    held: Bodies[FakeConnection] = Bodies(100 * KIB)
    slow, fast, other = FakeConnection("greedy"), FakeConnection("greedy"), FakeConnection("other")
    held.hold(slow, 20 * KIB, is_whole=False)
    held.hold(other, 40 * KIB, is_whole=False)
    held.hold(fast, 39 * KIB, is_whole=False)
    held.hold(slow, 21 * KIB, is_whole=False)
    assert held.held == 100 * KIB
    held.hold(other, 41 * KIB, is_whole=False)
    assert [one.ending for one in (slow, fast, other)] == ["too_many_bodies", None, None]
    assert held.held == 80 * KIB


def test_a_source_that_holds_less_gives_up_nothing() -> None:
    """Nor is a request given up that is being answered: the newcomer is refused itself."""
    held: Bodies[FakeConnection] = Bodies(100 * KIB)
    answered, other, newcomer = FakeConnection("greedy"), FakeConnection("other"), FakeConnection("greedy")
    answered.is_exempt = True
    held.hold(answered, 60 * KIB, is_whole=True)
    held.hold(other, 40 * KIB, is_whole=False)
    held.hold(newcomer, UNCOUNTED, is_whole=False)
    assert [one.ending for one in (answered, other, newcomer)] == [None, None, "too_many_bodies"]
    held.hold(answered, 0, is_whole=False)
    held.remove(other)
    held.remove(other)
    assert held.held == 0


def test_whole_bodies_of_unknown_callers_are_given_up_after_unfinished_ones() -> None:
    held: Bodies[FakeConnection] = Bodies(100 * KIB)
    known, unknown, slow, other = *(FakeConnection("greedy") for _ in range(3)), FakeConnection("other")
    known.is_exempt = True
    for connection in (known, unknown, slow):
        held.hold(connection, 30 * KIB, is_whole=connection is not slow)
    for size, given_up in ((30, slow), (60, unknown)):
        held.hold(other, size * KIB, is_whole=False)
        assert given_up.ending == "too_many_bodies"
    assert (known.ending, other.ending) == (None, None)


def test_what_is_small_is_not_counted() -> None:
    """The limit of connections bounds it. A body that shrinks below gives its place back."""
    held: Bodies[FakeConnection] = Bodies(UNCOUNTED)
    connections = [FakeConnection() for _ in range(10)]
    for connection in connections:
        held.hold(connection, UNCOUNTED - 1, is_whole=False)
    assert held.held == 0
    for connection in connections:
        held.hold(connection, UNCOUNTED, is_whole=True)
        assert held.held == UNCOUNTED
        held.hold(connection, 1, is_whole=False)
    assert [connection.ending for connection in connections] == [None] * 10


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that holds few bodies, and time-outs that no test waits for."""
    path = tmp_path_factory.mktemp("bodies") / "cloudid.toml"
    path.write_text(f'[server]\nlisten = "127.0.0.1:0"\nbody_memory = {LIMIT}\nbody_timeout = "600s"\n')
    arguments = ("--dev", "--provider", "http://127.0.0.1:1", "--settings", str(path))
    with Running(f"cloudid_servers.{request.param}", *arguments) as running:
        yield running


def head(server: Running, framing: bytes) -> bytes:
    """Of a request that a large body may follow."""
    root = next(line for line in server.introduction if line.startswith("root token: ")).partition(": ")[2]
    return b"POST /v1/sys/policies/acl/a HTTP/1.1\r\nhost: a\r\nx-vault-token: %b\r\n%b\r\n\r\n" % (
        root.encode(),
        framing,
    )


@pytest.mark.parametrize("framing", [b"content-length: %d" % LENGTH, b"transfer-encoding: chunked"])
def test_bodies_that_are_held_open_leave_room_for_the_bodies_of_others(server: Running, framing: bytes) -> None:
    """The attacker's oldest bodies are refused, and the client can read that; the other client's body is taken."""
    with ExitStack() as stack:
        attackers = [stack.enter_context(Client(server.port, ATTACKER)) for _ in range(ATTACKERS)]
        start = b"%x\r\n" % LENGTH if b"chunked" in framing else b""
        for attacker in attackers:
            attacker.send(head(server, framing) + start + b"a" * (LENGTH - 1))
            with Client(server.port) as client:
                document = json.dumps({"policy": "", "padding": "a" * (LIMIT // 2)}).encode()
                answer = client.ask(head(server, b"content-length: %d" % len(document)) + document)
                assert status(answer) < 300
        for attacker in attackers[: ATTACKERS - LIMIT // LENGTH]:
            answer = attacker.receive()
            assert (status(answer), json.loads(body(answer))["codes"]) == (503, ["too_many_bodies"])
            assert b"\r\nretry-after: 1\r\n" in answer


def test_what_an_answered_body_held_is_free_again(server: Running) -> None:
    """On one connection, one after the other, in chunks and with a length."""
    document = json.dumps({"policy": "", "padding": "a" * (LIMIT // 2)}).encode()
    with Client(server.port) as client:
        for _ in range(3):
            for framing, content in (
                (b"content-length: %d" % len(document), document),
                (b"transfer-encoding: chunked", b"%x\r\n%b\r\n0\r\n\r\n" % (len(document), document)),
            ):
                assert status(client.ask(head(server, framing) + content)) < 300


def test_the_settings_say_that_the_largest_body_has_to_fit(tmp_path: Path) -> None:
    path = tmp_path / "cloudid.toml"
    path.write_text(f"[server]\nbody_memory = {LIMIT}\n[service]\nbody_limit = {LIMIT + 1}\n")
    with pytest.raises(SettingsError, match="body_memory"):
        read_file(path)
