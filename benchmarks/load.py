"""The load: keep-alive connections, each with one request under way all the time (a closed loop).

Requests are bytes made ahead, and of an answer only its status and its length are read: the generator must not be what
is measured. It runs in a process of its own.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from time import perf_counter
from typing import Final

from attrs import frozen

DRAIN_SECONDS: Final = 10.0
"""How long requests that are under way at the end are waited for, so that they do not disturb the next measurement."""

RECONNECT_SECONDS: Final = 0.05


@frozen
class Load:
    """What is sent. The requests are repeated in their order, from number `first` on."""

    host: str
    port: int
    requests: Sequence[bytes]
    connections: int
    first: int = 0


@frozen
class Outcome:
    """What came of it, for the requests that were answered while the clock ran."""

    seconds: float
    latencies: Sequence[float]
    """Seconds of each request that was answered with a status of 2xx, in ascending order."""

    failures: Counter[str]
    """How many requests failed, by status or by what went wrong; those of the warm-up count too."""

    next: int
    """The number of the next request that would have been sent."""

    answered: int
    """How many requests were answered with 2xx, those before and after the clock ran too."""

    @property
    def per_second(self) -> float:
        return len(self.latencies) / self.seconds

    def percentile_ms(self, percent: float) -> float | None:
        """By the nearest rank; nothing when no request was answered."""
        if not self.latencies:
            return None
        rank = max(1, math.ceil(len(self.latencies) * percent / 100))
        return self.latencies[rank - 1] * 1000


def run_for(load: Load, seconds: float, warm_up: float = 0.0) -> Outcome:
    """Keep the load up for so long; the clock runs once the warm-up is over."""
    return asyncio.run(_run_for(load, seconds, warm_up))


def run_all_for(loads: Sequence[Load], seconds: float, warm_up: float = 0.0) -> list[Outcome]:
    """Keep several loads up at the same time."""

    async def run() -> list[Outcome]:
        return list(await asyncio.gather(*(_run_for(load, seconds, warm_up) for load in loads)))

    return asyncio.run(run())


def run_once(load: Load, seconds: float = 120.0) -> Outcome:
    """Send each request once, in so many seconds at the most."""
    return asyncio.run(_run_once(load, seconds))


async def _run_for(load: Load, seconds: float, warm_up: float) -> Outcome:
    generator = _Generator(load, math.inf)
    await generator.start()
    await asyncio.sleep(warm_up)
    generator.latencies.clear()
    start = perf_counter()
    await asyncio.sleep(seconds)
    taken, latencies = perf_counter() - start, sorted(generator.latencies)
    await generator.stop(DRAIN_SECONDS)
    if not latencies and not generator.failures:
        generator.failures["the clock ran shorter than a request"] += 1
    return Outcome(taken, latencies, generator.failures, generator.next % len(load.requests), generator.answered)


async def _run_once(load: Load, seconds: float) -> Outcome:
    generator = _Generator(load, len(load.requests))
    start = perf_counter()
    await generator.start()
    await generator.stop(seconds)
    return Outcome(perf_counter() - start, sorted(generator.latencies), generator.failures, 0, generator.answered)


class _Generator:
    """All connections of one load, and what they count."""

    def __init__(self, load: Load, limit: float) -> None:
        self.latencies: list[float] = []
        self.failures: Counter[str] = Counter()
        self.next = load.first
        self.answered = 0
        self._load = load
        self._last = load.first + limit
        self._busy: set[_Client] = set()
        self._idle = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Open all connections. Raises `OSError` when nothing listens there."""
        loop, load = asyncio.get_running_loop(), self._load
        await asyncio.gather(
            *(loop.create_connection(lambda: _Client(self), load.host, load.port) for _ in range(load.connections))
        )

    async def stop(self, seconds: float) -> None:
        """Wait until the requests that `limit` still allows, and those under way, are answered; then hang up."""
        if self._last == math.inf:
            self._last = self.next
        try:
            async with asyncio.timeout(seconds):
                while self._busy:
                    self._idle.clear()
                    await self._idle.wait()
        except TimeoutError:
            self.failures["no answer"] += len(self._busy)
        self._last = -1
        for client in tuple(self._busy):
            client.transport.abort()
        for task in tuple(self._tasks):
            task.cancel()

    def take(self, client: _Client) -> bytes | None:
        """The next request for this connection; none when it is to be idle."""
        if self.next >= self._last:
            self._busy.discard(client)
            if not self._busy:
                self._idle.set()
            client.transport.close()
            return None
        self._busy.add(client)
        request = self._load.requests[self.next % len(self._load.requests)]
        self.next += 1
        return request

    def replace(self, client: _Client) -> None:
        """A connection was lost with its request: open another one."""
        self._busy.discard(client)
        if not self._busy:
            self._idle.set()
        if self._last >= 0:
            self.failures["connection lost"] += 1
            task = asyncio.create_task(self._reconnect())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _reconnect(self) -> None:
        loop = asyncio.get_running_loop()
        while self.next < self._last:
            await asyncio.sleep(RECONNECT_SECONDS)
            try:
                await loop.create_connection(lambda: _Client(self), self._load.host, self._load.port)
                return
            except OSError:
                self.failures["no connection"] += 1


class _Client(asyncio.Protocol):
    """One connection."""

    transport: asyncio.Transport

    def __init__(self, generator: _Generator) -> None:
        self._generator = generator
        self._received = b""
        self._is_waiting = False
        self._started = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        self._received = data = self._received + data
        end = data.find(b"\r\n\r\n") + 4
        if end < 4 or len(data) < end + _content_length(data[:end]):
            return
        now = perf_counter()
        status = data[9:12]
        if status[:1] == b"2":
            self._generator.latencies.append(now - self._started)
            self._generator.answered += 1
        else:
            self._generator.failures[status.decode("ascii", "replace")] += 1
        self._received = b""
        self._is_waiting = False
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if self._is_waiting:
            self._generator.replace(self)

    def _send(self) -> None:
        request = self._generator.take(self)
        if request is not None:
            self._is_waiting = True
            self._started = perf_counter()
            self.transport.write(request)


def _content_length(head: bytes) -> int:
    """The length of the body that follows; 0 when none is announced."""
    _, found, rest = head.lower().partition(b"\r\ncontent-length:")
    return int(rest.partition(b"\r\n")[0]) if found else 0
