"""Many clients that mean no good, at and above the connection limit, and beside them one that behaves well."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final

import pytest
from attrs import frozen

from cloudid_servers.provider_simulator import Simulator, start

from .flood import KINDS, REQUEST
from .running import ROOT, SERVERS, Client, Running, status, wait_until

pytestmark = pytest.mark.one_server

CONNECTION_LIMIT: Final = 64
AT_LIMIT: Final = CONNECTION_LIMIT - 8
"""So many leave room for the client that behaves well, and for its connections that the server has not yet missed."""

COMING_AND_GOING: Final = ("leaves_in_head", "leaves_before_answer")
"""The server misses these some time after they have left, so half of them fill the limit."""

ABOVE_LIMIT: Final = 3 * CONNECTION_LIMIT
SECONDS: Final = 0.75
REQUESTS: Final = 50
"""For so long, and for so many requests at least, the client that behaves well is watched."""

TIME_LIMIT: Final = 60.0
"""Seconds that a connection of a flood may be in any stage; a request that waits for one of these takes as long."""

DESCRIPTORS: Final = 128
"""Fewer than the default `connection_limit`."""

TRIES: Final = 20
"""Newcomers push out a client that is slow to send its first request, as one on a busy machine is now and then."""

SETTLES: Final = 0.3
"""Seconds in which a server misses the connections of a flood that has ended."""

LOG_LIMIT: Final = 100_000
"""Bytes that a server may log about a flood."""


@frozen
class Watched:
    """What a client saw that sends one request after the other."""

    statuses: frozenset[int]
    """0: there was no answer."""

    latencies: tuple[float, ...]
    """In seconds."""


def watch(port: int) -> Watched:
    """Send requests on one connection, then each on a new one."""
    with Client(port) as connection:
        first = repeat(lambda: ask(port, connection))
    second = repeat(lambda: ask(port))
    return Watched(first.statuses | second.statuses, first.latencies + second.latencies)


def repeat(request: Callable[[], int]) -> Watched:
    """Send one request after the other, for a while."""
    statuses: set[int] = set()
    instants = [time.perf_counter()]
    while len(instants) <= REQUESTS or instants[-1] < instants[0] + SECONDS:
        statuses.add(request())
        instants.append(time.perf_counter())
    return Watched(frozenset(statuses), tuple(after - before for before, after in pairwise(instants)))


def ask(port: int, connection: Client | None = None) -> int:
    """The status of an answer, 0 if there is none."""
    try:
        if connection is not None:
            return status(connection.ask(REQUEST) or b"- 0 -")
        with Client(port) as once:
            return status(once.ask(REQUEST) or b"- 0 -")
    except (OSError, AssertionError):
        return 0


def ask_as_new(port: int) -> int:
    """The status for a new client, which comes again where it is pushed out, with a word or without."""
    return next(filter(lambda said: said not in (0, 503), (ask(port) for _ in range(TRIES))), 0)


def wait_for_service(port: int) -> None:
    """Until a new client is served again, after a flood."""
    wait_until(lambda: ask(port) == 200)


@contextmanager
def flood(kind: str, count: int, port: int) -> Iterator[None]:
    """A flood for as long as the block lasts."""
    command = [sys.executable, "-m", "tests.servers.flood", kind, str(count), str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline()
            yield
        finally:
            process.kill()


@contextmanager
def serving(server: str, folder: Path, descriptors: int, settings: str) -> Iterator[Running]:
    """A server with so many descriptors and these settings; its log is in the folder."""
    path = folder / "cloudid.toml"
    path.write_text(f'[server]\nlisten = "127.0.0.1:0"\nlog_level = "error"\n{settings}\n')
    with start(Simulator()) as cloud:
        options = ("--dev", "--settings", str(path), "--provider", cloud.url)
        arguments = (str(descriptors), str(folder / "log"), f"cloudid_servers.{server}", *options)
        with Running("tests.servers.limited", *arguments) as running:
            yield running


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with a low limit, and time-outs that no test waits for."""
    folder = tmp_path_factory.mktemp("floods")
    stages = "".join(f'{stage}_timeout = "{TIME_LIMIT}s"\n' for stage in ("head", "body", "idle", "write"))
    with serving(request.param, folder, 1024, f"connection_limit = {CONNECTION_LIMIT}\n{stages}") as running:
        yield running


@pytest.fixture
def port(server: Running) -> int:
    """Of a server that has got over the flood before."""
    wait_for_service(server.port)
    time.sleep(SETTLES)
    return server.port


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_is_served_beside_a_flood_at_the_limit(port: int, kind: str) -> None:
    """Every request is answered, and none waits for a connection of the flood."""
    with flood(kind, AT_LIMIT // 2 if kind in COMING_AND_GOING else AT_LIMIT, port):
        beside = watch(port)
    assert beside.statuses == {200}
    assert median(beside.latencies) < TIME_LIMIT / 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_that_is_served_stays_served_above_the_limit(port: int, kind: str) -> None:
    """Newcomers do not push out a connection that is in use."""
    with Client(port) as connection:
        assert ask(port, connection) == 200
        with flood(kind, ABOVE_LIMIT, port):
            assert repeat(lambda: ask(port, connection)).statuses == {200}


def test_a_new_client_is_served_when_idle_connections_fill_the_limit(port: int) -> None:
    """The connection that has been idle for longest makes room."""
    with flood("idle", ABOVE_LIMIT, port):
        beside = repeat(lambda: ask_as_new(port))
    assert beside.statuses == {200}


@pytest.mark.parametrize("name", SERVERS)
def test_idle_connections_do_not_use_up_the_descriptors(name: str, tmp_path: Path) -> None:
    """The default limit is above the number of descriptors. The log has no line for each connection."""
    with serving(name, tmp_path, DESCRIPTORS, "") as running:
        with flood("idle", 2 * DESCRIPTORS, running.port):
            beside = repeat(lambda: ask_as_new(running.port))
        wait_for_service(running.port)
    assert (tmp_path / "log").stat().st_size < LOG_LIMIT
    assert beside.statuses == {200}
