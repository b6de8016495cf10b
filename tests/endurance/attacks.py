"""Attacks on a server, from an address of their own: `python -m tests.endurance.attacks`, an `Order` in JSON on stdin.

Each vector sends requests, or holds connections open, or both kinds at once when several are ordered. Requests share a
rate: so many a second, and so many bytes. A line on stdout says that the attack has begun; when stdin ends, so does it,
and another line tells what it was answered. Everything is made cheaply, since the machine is the server's, too.
"""

from __future__ import annotations

import asyncio
import resource
import secrets
import socket
import sys
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import cycle
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec
from attrs import frozen

from cloudid_servers.http1 import Stage, wire

ATTACKER: Final = "127.0.0.2"
REQUESTS_A_SECOND: Final = 200
BYTES_A_SECOND: Final = 2**20
CONNECTS_A_SECOND: Final = 1000
"""At the start. Later, a new connection counts as a request."""

WORKERS: Final = 32
"""Connections that requests are sent on."""

ANSWER_SECONDS: Final = 5.0
"""How long an answer is waited for."""

FEW: Final = 512
"""Descriptors of this process besides the connections that are held."""

END_OF_HEAD: Final = b"\r\n\r\n"
KIB: Final = 1024
SIZES: Final = (*[5 * KIB] * 60, 31 * KIB, 63 * KIB, 1023 * KIB)
"""Of hostile bodies, one after the other. Most are as large as the two rates allow at once."""


@frozen
class Order:
    """What to attack, how, and with what."""

    port: int
    vectors: tuple[str, ...]
    connections: int
    """Most that are held."""

    login: str
    """A login that succeeds, as JSON."""

    token: str
    """It has the policy `default` alone."""

    wrapping_token: str


@frozen
class Outcome:
    """What came of an attack."""

    sent: int
    answers: dict[str, int]
    """How often each status was answered; other keys: what happened instead."""

    held: int
    """Connections that were open at the end."""


@frozen
class Held:
    """Connections that are held in one stage: what is sent first, and what again and again."""

    stage: Stage

    first: bytes = b""
    then: bytes = b""
    pause: float = 2.5
    """Seconds between two sendings."""

    share: float = 1.0
    """Of the connections that there may be."""

    reads: bool = True
    lingers: bool = False
    """Whether the attacker keeps its side open when the server has closed the other one."""

    settle_seconds: float = 2.0
    """How long the first requests take to be sent and, as far as the stage allows, answered."""

    needs_hanging_login: bool = False
    """Whether Azure's login service must not answer meanwhile."""


Requests: TypeAlias = Callable[[Order], Iterator[bytes]]
"""Endless."""


def request(start: str, *fields: str, content: bytes = b"", token: str = "") -> bytes:
    """The bytes of a request; `start` is method and path."""
    method, _, path = start.partition(" ")
    lines = [f"{method} {path} HTTP/1.1", "Host: a", *([f"X-Vault-Token: {token}"] if token else []), *fields]
    length = [f"Content-Length: {len(content)}"] if content else []
    return "\r\n".join([*lines, *length, "", ""]).encode("latin-1") + content


# Bodies that are hard to decode


def bodies(piece: Callable[[int], bytes], start: bytes = b'{"a":[', end: bytes = b"]}") -> Requests:
    """Requests whose bodies are such pieces, joined by commas; each third with a token, the largest ones among them."""

    def requests(order: Order) -> Iterator[bytes]:
        made = {}
        for size in set(SIZES):
            number = (size - len(start) - len(end)) // (len(piece(0)) + 1)
            made[size] = start + b",".join(piece(place) for place in range(number)) + end
        places = (("auth/cloud/login", ""), ("nowhere", ""), ("sys/capabilities-self", order.token))
        for size, (path, token) in zip(cycle(SIZES), cycle(places)):
            yield request(f"POST /v1/{path}", content=made[size], token=token)

    return requests


# Requests that would fill the store


def wrapped_public(order: Order) -> Iterator[bytes]:
    paths = (
        "sys/internal/ui/mounts",
        "sys/seal-status",
        "sys/leader",
        "sys/health",
        "nowhere",
        "identity/oidc/plugins",
    )
    for path in cycle(paths):
        yield request(f"GET /v1/{path}", "X-Vault-Wrap-TTL: 2764800")


def wrapped_lookups(order: Order) -> Iterator[bytes]:
    while True:
        yield request("POST /v1/sys/wrapping/lookup", "X-Vault-Wrap-TTL: 2764800", token=order.wrapping_token)


def wrapped_bodies(size: int) -> Requests:
    def requests(order: Order) -> Iterator[bytes]:
        content = b'{"a": "%b"}' % (b"a" * size)
        while True:
            yield request("POST /v1/sys/wrapping/wrap", "X-Vault-Wrap-TTL: 2764800", content=content, token=order.token)

    return requests


# Requests that are none


def malformed_heads(order: Order) -> Iterator[bytes]:
    yield from cycle(
        (
            b"\x16\x03\x01\x00\x00 no TLS here\r\n\r\n",
            b"GET /v1/sys/health HTTP/1.1\r\n\r\n",
            b"GET /v1/sys/health HTTP/9.9\r\nHost: a\r\n\r\n",
            request("GET /v1/a b"),
            request("POST /v1/a", "Content-Length: -1"),
            request("POST /v1/a", "Content-Length: 1", "Content-Length: 2"),
            request("POST /v1/a", "Content-Length: 1", "Transfer-Encoding: chunked"),
            request("POST /v1/a", "Transfer-Encoding: chunked") + b"zz\r\n",
            request("GET /v1/a", "X One: 1"),
            request("GET /v1/a", "X-One: \x00"),
            request("GET /v1/" + "a" * 8200),
            request("GET /v1/a", *(f"X-{number}: {'a' * 1000}" for number in range(17))),
            request("GET /v1/a", *(f"X-{number}: {secrets.token_hex(4)}" for number in range(500))),
        )
    )


def malformed_requests(order: Order) -> Iterator[bytes]:
    paths = (
        "/v1/../a",
        "/v1/%00",
        "/v1/a%2fb",
        "/v1//a",
        "/a",
        "/v1/" + "a/" * 2000,
        "/v1/%zz",
        "/v1/a?" + "b&" * 2000,
    )
    fields = (
        *("X-Vault-Wrap-TTL: -1", "X-Vault-Wrap-TTL: " + "9" * 50, "X-Vault-Wrap-TTL: 1e999", "X-Vault-Wrap-TTL: x"),
        *("X-Service-Deadline: nan", "X-Service-Deadline: -1", "X-Service-Deadline: 1e999", "X-Service-Deadline: x"),
        *("X-Vault-Namespace: a", "Authorization: Bearer", "X-Vault-Token: " + "a" * 8000, "Content-Type: x/y"),
    )
    for path, field in zip(cycle(paths), cycle(fields)):
        yield request(f"GET {path}")
        yield request("POST /v1/auth/cloud/login", field, content=b"{}")


def oversized(order: Order) -> Iterator[bytes]:
    for length in cycle((2**20 + 1, 10**9, 10**15, 10**30)):
        yield request("POST /v1/auth/cloud/login", f"Content-Length: {length}") + b'{"a": "'


# Logins and tokens that do not hold


def logins(change: Callable[[str], str]) -> Requests:
    """Logins whose JWT was changed."""

    def requests(order: Order) -> Iterator[bytes]:
        form = msgspec.json.decode(order.login, type=dict[str, str])
        while True:
            changed = {**form, "jwt": change(form["jwt"])}
            yield request("POST /v1/auth/cloud/login", content=msgspec.json.encode(changed))

    return requests


def signed_by_nobody(jwt: str) -> str:
    head, payload, signature = jwt.split(".")
    return f"{head}.{payload}.{random_text(len(signature) * 3 // 4)}"


def garbage(jwt: str) -> str:
    return f"{random_text(30)}.{random_text(300)}.{random_text(256)}"


def longest(jwt: str) -> str:
    head, _, signature = jwt.split(".")
    payload = msgspec.json.encode({"aud": "a", "pad": random_text(8_000), "n": [1e308] * 100})
    return f"{head}.{urlsafe_b64encode(payload).decode().rstrip('=')}.{signature}"


def random_text(size: int) -> str:
    return secrets.token_urlsafe(size)


def unknown_tokens(order: Order) -> Iterator[bytes]:
    while True:
        for token in (order.token[:-8] + random_text(6), random_text(40), "hvs." + random_text(70)):
            yield request("GET /v1/auth/token/lookup-self", token=token)


# Long runs of one unit: where work grows faster than the text, one of these takes seconds

RUNS: Final = (" ", "\t", ",", "/", "a/", "a", "1.", ":", "[")
"""Units of long texts."""

HEADERS: Final = ("Content-Length", "X-Forwarded-For", "X-Vault-Token", "Accept", "Connection", "X-One", "Traceparent")


def long_headers(order: Order) -> Iterator[bytes]:
    while True:
        for unit in RUNS:
            run = unit * (14 * KIB // len(unit))
            for name in HEADERS:
                yield request("GET /v1/sys/seal-status", f"{name}: 5{run}5")
            yield request(f"GET /v1/{run.strip() or 'a'}")


def long_names(order: Order) -> Iterator[bytes]:
    """Ids of leases and paths, with a token that has no more than the policy `default`."""
    while True:
        for unit in (*RUNS, "\xc9", "\u212aa"):
            for path, field in (("leases/lookup", "lease_id"), ("renew", "lease_id"), ("capabilities-self", "paths")):
                content = msgspec.json.encode({field: unit * (400 * KIB // len(unit.encode()))})
                yield request(f"POST /v1/sys/{path}", content=content, token=order.token)
        many = msgspec.json.encode({"paths": [f"{number}{chr(0xC9) * 480}" for number in range(1000)]})
        yield request("POST /v1/sys/capabilities-self", content=many, token=order.token)


PROBE: Final = request("GET /v1/sys/seal-status")
LARGE: Final = request("POST /v1/auth/cloud/login", "Content-Length: 32000") + b"a" * 31_999
IN_CHUNKS: Final = request("POST /v1/auth/cloud/login", "Transfer-Encoding: chunked") + b"7d00\r\n" + b"a" * 31_999

ONCE: Final = request("GET /v1/sys/seal-status", "Connection: close")
LARGEST: Final = request("GET /ui/page.js")
"""The longest answer that needs no token: 17 KB."""

PIPELINE: Final = LARGEST * 300
"""Its answers fill the buffers of both sides: that of the server grows to 4 MiB."""

RECEIVE_BUFFER: Final = 4 * KIB
"""Bytes that a client without a wish to read offers to take."""

UNKNOWN_MOUNT: Final = "auth/other"
"""A mount of a tenant whose keys are not known."""


def login_of_nobody(mount: str) -> bytes:
    """A login whose JWT names a made-up key, so that the server looks for newer ones."""
    head = urlsafe_b64encode(b'{"alg":"RS256","kid":"nobody"}').decode().rstrip("=")
    form = {"role": "all", "jwt": f"{head}.e30.{'A' * 342}"}
    return request(f"POST /v1/{mount}/login", content=msgspec.json.encode(form))


VECTORS: Final[Mapping[str, Requests | Held]] = MappingProxyType(
    {
        "floats": bodies(lambda _: b"1e308"),
        "long numbers": bodies(lambda place: b"%d" % (10**300 + place)),
        "nested arrays": bodies(lambda _: b"[" * 25 + b"]" * 25),
        "empty arrays": bodies(lambda _: b"[]"),
        "many members": bodies(lambda place: b'"%06d":0' % place, b"{", b"}"),
        "escapes": bodies(lambda _: b'"\\u0061\\ud83d\\ude00\\n"'),
        "wrapped public answers": wrapped_public,
        "wrapped look-ups": wrapped_lookups,
        "small wrapped bodies": wrapped_bodies(16),
        "large wrapped bodies": wrapped_bodies(300 * KIB),
        "idle connections": Held(Stage.IDLE),
        "connections in use": Held(Stage.IDLE, PROBE, PROBE),
        "slow heads": Held(Stage.HEAD, b"GET /v1/sys/health HTTP/1.1\r\nHost: a\r\nX-One: ", b"a"),
        "slow second heads": Held(Stage.HEAD, PROBE + b"GET /v1/sys/health HTTP/1.1\r\nX-One: ", b"a"),
        "large bodies held": Held(Stage.BODY, LARGE, pause=60.0, share=0.5),
        "chunks held": Held(Stage.BODY, IN_CHUNKS, pause=60.0, share=0.5),
        "waits for newer keys": Held(Stage.ANSWER, login_of_nobody("auth/cloud"), pause=60.0, needs_hanging_login=True),
        "waits for first keys": Held(
            Stage.ANSWER, login_of_nobody(UNKNOWN_MOUNT), pause=60.0, needs_hanging_login=True
        ),
        "answers not read": Held(Stage.SEND, PIPELINE, LARGEST, pause=1.0, reads=False, settle_seconds=5.0),
        "closes not answered": Held(Stage.LINGER, ONCE, pause=wire.LINGER_SECONDS, lingers=True),
        "malformed heads": malformed_heads,
        "malformed requests": malformed_requests,
        "oversized bodies": oversized,
        "long headers": long_headers,
        "long names": long_names,
        "wrong signatures": logins(signed_by_nobody),
        "garbage JWTs": logins(garbage),
        "longest JWTs": logins(longest),
        "unknown tokens": unknown_tokens,
    }
)


class Pace:
    """Turns, one after the other: so many a second, and so many bytes."""

    def __init__(self, turns_a_second: float, bytes_a_second: float = BYTES_A_SECOND) -> None:
        self._seconds = 1 / turns_a_second
        self._seconds_a_byte = 1 / bytes_a_second
        self._next = 0.0

    async def wait(self, size: int = 0, turns: int = 1) -> None:
        """Wait for one's turn, to send so many bytes, in so many turns at once."""
        now = asyncio.get_running_loop().time()
        turn = max(self._next, now)
        self._next = turn + max(turns * self._seconds, size * self._seconds_a_byte)
        await asyncio.sleep(turn - now)


class Attack:
    """The attack that an order asks for, for as long as it is not cancelled."""

    def __init__(self, order: Order) -> None:
        self.sent = self.held = 0
        self.answers: Counter[str] = Counter()
        self._order = order
        vectors = [VECTORS[name] for name in order.vectors]
        self._sources = [vector(order) for vector in vectors if not isinstance(vector, Held)]
        self._held = [vector for vector in vectors if isinstance(vector, Held)]
        parts = bool(self._sources) + bool(self._held)
        self._requests = Pace(REQUESTS_A_SECOND / parts, BYTES_A_SECOND / parts)
        self._connects = Pace(CONNECTS_A_SECOND)
        self._reconnects = Pace(REQUESTS_A_SECOND / parts)
        self._sendings = Pace(CONNECTS_A_SECOND, BYTES_A_SECOND / parts)
        """On connections that are held: each sends seldom."""

    async def run(self, begun: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            for held in self._held:
                for _ in range(int(self._order.connections * held.share / len(self._held))):
                    group.create_task(self._hold(held))
            if self._sources:
                source = (next(vector) for vector in cycle(self._sources))
                for _ in range(WORKERS):
                    group.create_task(self._send(source))
            if self._held:
                settle_seconds = max(held.settle_seconds for held in self._held)
                await asyncio.sleep(self._order.connections / CONNECTS_A_SECOND + settle_seconds)
            begun.set()

    async def _connect(self, *, reads: bool = True) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        await self._connects.wait()
        connection = connected(self._order.port, reads=reads)
        connection.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=connection)
        if not reads:
            writer.transport.pause_reading()  # type: ignore[attr-defined]  # every transport of a stream can
        return reader, writer

    async def _send(self, source: Iterator[bytes]) -> None:
        """One request after the other, on one connection for as long as the server keeps it."""
        while True:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                reader, writer = await self._connect()
                with Closing(writer):
                    while await self._ask(next(source), reader, writer):
                        pass
            self.answers["connections that ended"] += 1

    async def _ask(self, data: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection can be used again."""
        await self._requests.wait(len(data))
        self.sent += 1
        writer.write(data)
        async with asyncio.timeout(ANSWER_SECONDS):
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            self.answers[head[9:12].decode()] += 1
            length = head.partition(b"content-length: ")[2].partition(b"\r")[0]
            await reader.readexactly(int(length or b"0"))
        return b"connection: close" not in head

    async def _hold(self, held: Held) -> None:
        """One connection, and another one when it is closed."""
        while True:
            with suppress(OSError):
                reader, writer = await self._connect(reads=held.reads)
                self.held += 1
                with Closing(writer):
                    await self._keep(held, reader, writer)
                self.held -= 1
            self.answers["connections that ended"] += 1
            await self._reconnects.wait(len(held.first), max(1, held.first.count(END_OF_HEAD)))

    async def _keep(self, held: Held, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data, is_open, size = held.first, True, 0
        while is_open:
            if data:
                await self._sendings.wait(size)
                if writer.transport.is_closing():
                    return
                self.sent += 1
                writer.write(data)
            data, size = held.then, len(held.then)
            with suppress(OSError):  # a time-out is one: the pause is over
                async with asyncio.timeout(held.pause):
                    while answer := await reader.read(65_536):
                        if answer.startswith(b"HTTP/1.1 "):
                            self.answers[answer[9:12].decode()] += 1
                    is_open = False
        if held.lingers:
            await asyncio.sleep(held.pause)


def connected(port: int, *, reads: bool = True) -> socket.socket:
    """A connection from the attacker's address."""
    connection = socket.socket()
    if not reads:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
    try:
        connection.bind((ATTACKER, 0))
        connection.settimeout(ANSWER_SECONDS)
        connection.connect(("127.0.0.1", port))
    except OSError:
        connection.close()
        raise
    return connection


class Closing:
    """Closes a connection, as soon as a block has ended, without waiting."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def __enter__(self) -> None:
        """There is nothing to do."""

    def __exit__(self, *_: object) -> None:
        self._writer.transport.abort()


async def main(order: Order) -> Outcome:
    begun, attack = asyncio.Event(), Attack(order)
    running = asyncio.create_task(attack.run(begun))
    await begun.wait()
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    outcome = Outcome(attack.sent, dict(attack.answers), attack.held)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    return outcome


if __name__ == "__main__":
    ordered = msgspec.json.decode(sys.stdin.readline(), type=Order)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, ordered.connections + FEW), hard))
    sys.stdout.write(msgspec.json.encode(asyncio.run(main(ordered))).decode() + "\n")
