"""Linear work: whatever bytes a stranger sends, twice as many take about twice the CPU.

Each part of a request is filled with a long run of one unit, at two sizes. CPU time is compared within one run, and
only where it is much: a quadratic pattern takes a second for what a linear one reads in less than a millisecond.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

import pytest

from cloudid_core.errors import Refused
from cloudid_servers.http1.chunks import Chunks
from cloudid_servers.http1.heads import HEADS_KEPT, SECRETS, Heads
from cloudid_servers.http1.reader import Reader
from cloudid_servers.http1.wire import remote_address
from cloudid_servers.http_rules import joined

SIZE: Final = 7_000
"""Bytes of the shorter run: twice as many fit into a head."""

RATIO: Final = 3.0
"""Most that twice the size may take, as a multiple."""

NOTABLE: Final = 0.02
"""Seconds of CPU: linear work on such sizes takes a fraction of it."""

UNITS: Final = (
    *(b" ", b"\t", b"a", b"0", b"\xe9", b",", b";", b":", b"/", b"?", b"%", b"[", b"]", b"-", b"=", b'"', b"."),
    *(b" a", b"a ", b"a, ", b"a\t ", b"\xe9 ", b"%2f", b"::", b"a=b; ", b"\r\na:", b"\r", b"\r\n", b"127.0.0.1,"),
)
HEADERS: Final = sorted(
    {"host", "connection", "content-length", "expect", "transfer-encoding", "upgrade", "accept-encoding", "traceparent"}
    | {"x-request-id", "x-forwarded-for", "x-other"}
    | SECRETS
)


def read_head(head: bytes) -> None:
    """Read it with memory and without."""
    for kept in (0, HEADS_KEPT):
        reader = Reader(Heads("http", kept))
        reader.feed(head)
        with suppress(Refused):
            reader.next_request()


def in_header(name: str) -> Callable[[bytes], None]:
    """Read heads with the run as a value, and amid one: blanks at the ends are no part of it."""

    def read(run: bytes) -> None:
        for value in (run, b"5" + run + b"5"):
            read_head(b"GET / HTTP/1.1\r\n%b: %b\r\n\r\n" % (name.encode(), value))

    return read


def in_chunks(form: bytes) -> Callable[[bytes], None]:
    def read(run: bytes) -> None:
        buffer = bytearray(form % run)
        with suppress(Refused):
            Chunks(10**6).take(buffer)

    return read


def of_many_lines(run: bytes) -> None:
    """Join header lines of one name, as another server may hand them in."""
    joined([(b"a", run[:1])] * len(run))


def in_hops(run: bytes) -> None:
    remote_address("127.0.0.1", {"x-forwarded-for": run.decode("latin-1")}, ("10.0.0.0/8", "127.0.0.0/8"))


PARTS: Final[Mapping[str, Callable[[bytes], None]]] = {
    "method": lambda run: read_head(b"%b / HTTP/1.1\r\nhost: a\r\n\r\n" % run),
    "path": lambda run: read_head(b"GET /%b HTTP/1.1\r\nhost: a\r\n\r\n" % run),
    "scheme": lambda run: read_head(b"GET %b://a/ HTTP/1.1\r\nhost: a\r\n\r\n" % run),
    "authority": lambda run: read_head(b"GET http://%b HTTP/1.1\r\nhost: a\r\n\r\n" % run),
    "version": lambda run: read_head(b"GET / HTTP/%b\r\nhost: a\r\n\r\n" % run),
    "name of a header": lambda run: read_head(b"GET / HTTP/1.1\r\nhost: a\r\n%b: a\r\n\r\n" % run),
    "before a request": read_head,
    **{f"value of {name}": in_header(name) for name in HEADERS},
    "size of a chunk": in_chunks(b"%b\r\n"),
    "extension of a chunk": in_chunks(b"1;%b\r\na\r\n"),
    "name of a trailer": in_chunks(b"0\r\n%b: a\r\n\r\n"),
    "value of a trailer": in_chunks(b"0\r\na: 5%b5\r\n\r\n"),
    "lines of a name": of_many_lines,
    "forwarded hops": in_hops,
}


def cpu(work: Callable[[bytes], None], run: bytes) -> float:
    """Seconds of CPU that it takes; the least of some tries."""
    tries = []
    for _ in range(3):
        start = time.thread_time()
        work(run)
        tries.append(time.thread_time() - start)
        if tries[-1] < NOTABLE:
            break
    return min(tries)


def is_superlinear(work: Callable[[bytes], None], unit: bytes) -> bool:
    run = unit * (SIZE // len(unit))
    twice = cpu(work, run * 2)
    return twice >= NOTABLE and twice > RATIO * cpu(work, run)


@pytest.mark.parametrize("part", PARTS)
def test_twice_the_bytes_take_about_twice_the_work(part: str) -> None:
    assert [unit for unit in UNITS if is_superlinear(PARTS[part], unit)] == []


def test_quadratic_work_is_noticed() -> None:
    def quadratic(run: bytes) -> None:
        for end in range(0, len(run), 10):
            sum(run[:end])

    assert any(is_superlinear(quadratic, b"a") for _ in range(3))  # on a busy machine not every try shows it


def test_hundreds_of_trusted_hops_cost_no_more_than_some() -> None:
    """The earliest hop that is looked at counts as the client, though it is trusted."""
    hops = ["203.0.113.9", *(f"10.0.{number // 250}.{number % 250}" for number in range(1_600))]
    address = remote_address("10.9.9.9", {"x-forwarded-for": ",".join(hops)}, ("10.0.0.0/8",))
    assert address == hops[-32]
