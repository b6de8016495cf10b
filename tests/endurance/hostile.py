"""Hostile clients: whatever one address does within its means, nobody else notices.

    python -m tests.endurance.hostile [--server NAME] [--seconds N] [--vector NAME] [--json]

Other clients use 30 % of what a server can do, with logins and look-ups, some of them on new connections. Beside them
an attacker from an address of its own sends one vector after the other (`attacks`), and at last all of them: 200
requests and 1 MiB a second, and as many connections as there may be. Each is held against the same load alone:

- no other client is refused, or waits for a second;
- where connections are held, 95 of 100 requests of others take at most five times as long as without the attacker;
- the server uses at most twice the CPU;
- the store grows by at most 1 MiB more, and the server's memory by no more than the bodies that it may hold.

A table for each server; it ends with 1 when a bound is missed. It needs Linux, which tells CPU and memory of other
processes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
from attrs import asdict, field, frozen

from benchmarks.report import tell
from tests.servers.deployment import Deployment
from tests.servers.running import PATIENCE, ROOT, SERVERS, Running
from tests.servers.story import RESOURCE
from tests.waiting import PATIENT

from .attacks import UNKNOWN_MOUNT, VECTORS, Held, Order, Outcome, request

SECONDS: Final = 10.0
SHARE: Final = 0.3
"""Of what the server can do, that others use."""

PROBE_SECONDS: Final = 3.0
"""How long it is measured what the server can do."""

REACHED: Final = 0.5
"""Of what the server does on a machine that others use as well: the load stays below that."""

CLIENTS: Final = 8
"""Connections that it is measured with."""

OTHERS: Final = 32
"""Most requests of others that are under way at a time."""

KEPT: Final = 16
"""Most connections that others keep for later requests. With those in use, they are fewer than an attacker has."""

NEW_CONNECTION: Final = 10
"""Each so many requests of others come on a new connection, which replaces a kept one."""

TRIES: Final = 3
"""How often a vector is tried while it misses bounds of time only, with a load that the machine can carry by then."""

SETTLE_SECONDS: Final = 1.5
"""Between two vectors: what an attack has left behind ends in this time."""

LONGEST: Final = 1.0
"""Seconds that a request of others may take."""

CPU_RATIO: Final = 2.0
USUAL_RATIO: Final = 5.0
"""Of the 95th percentile of the times of others, where an attacker holds connections."""

STORE_GROWTH: Final = 2**20
WRAPPED_GROWTH: Final = STORE_GROWTH + STORE_GROWTH // 2
"""For a token that may wrap: 1,000 small answers wait at a time. Each takes four entries, which have 1.3 KiB in the
file; the load of others varies."""

MEMORY_GROWTH: Final = 2**27
"""Twice the default `body_memory`: allocators keep what was freed."""

CONNECTION_LIMIT: Final = 128
"""So few that an attacker can fill it in every stage: one that lasts for a second, with 200 requests a second."""

HANGING_LOGIN: Final = [{"match": {"family": "login"}, "times": None, "action": {"delay": 85}}]
UNKNOWN_TENANT: Final = "0f0f0f0f-0000-4000-8000-00000000000f"
SERVICE: Final = {"settle_time": 2, "fact_max_age": 3600}
ALL: Final = "all of them"
WRAPPING: Final = "small wrapped bodies"
TICKS: Final = os.sysconf("SC_CLK_TCK")
PAGE: Final = os.sysconf("SC_PAGE_SIZE")


@frozen
class Usage:
    """What a server has used until a moment: CPU and memory of its process, and its store."""

    cpu: float
    """Seconds."""

    memory: int
    """Resident bytes."""

    store: int
    """Bytes of the store that are in use: files grow in steps, and shrink never."""

    @classmethod
    def now(cls, process: int, store: Path) -> Usage:
        times = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()
        memory = int(Path(f"/proc/{process}/statm").read_text("ascii").split()[1]) * PAGE
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=PATIENCE)) as connection:
            pages, free, size = (
                connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
        return cls((int(times[11]) + int(times[12])) / TICKS, memory, (pages - free) * size)


@frozen
class Load:
    """What other clients saw."""

    latencies: Sequence[float]
    """Seconds of each request, from the moment at which it was due."""

    refusals: Sequence[str]
    logins: int

    @property
    def slowest(self) -> float:
        return max(self.latencies, default=0.0)

    @property
    def usual(self) -> float:
        """The 95th percentile."""
        return sorted(self.latencies)[len(self.latencies) * 95 // 100] if self.latencies else 0.0


@frozen
class Measured:
    """The server beside one load of others, attacked or alone."""

    load: Load
    cpu: float
    """Seconds for each request of others."""

    memory: int
    store: int
    """Bytes by which each has grown."""

    outcome: Outcome | None = None


@frozen
class Verdict:
    """One vector: what it did to others and to the server, beside the same load alone."""

    vector: str
    requests: int
    """Of others."""

    refused: int
    slowest: float
    slowest_alone: float
    """Seconds that a request of others took, beside the attack and without it."""

    usual: float
    usual_alone: float
    """The same for the 95th percentile."""

    cpu_ratio: float
    store_growth: int
    """Bytes beyond what the load of others makes it grow."""

    memory_growth: int
    outcome: Outcome
    refusals: str = ""
    judges_time: bool = field(default=True)
    """Whether a bound of time can be missed, which depends on the machine."""

    @property
    def holds(self) -> bool:
        """Whether it holds connections, and does nothing else."""
        return isinstance(VECTORS.get(self.vector), Held)

    @property
    def store_bound(self) -> int:
        return WRAPPED_GROWTH if self.vector in (WRAPPING, ALL) else STORE_GROWTH

    @property
    def missed(self) -> list[str]:
        """The bounds that are missed."""
        bounds = {
            "refused": self.refused > 0 or not self.requests,
            "slow": self.judges_time and self.slowest > LONGEST,
            "usual": self.judges_time and self.holds and self.usual > USUAL_RATIO * self.usual_alone,
            "CPU": self.judges_time and self.cpu_ratio > CPU_RATIO,
            "store": self.store_growth > self.store_bound,
            "memory": self.memory_growth > MEMORY_GROWTH,
        }
        return [name for name, is_missed in bounds.items() if is_missed]

    @property
    def may_be_the_machine(self) -> bool:
        """Whether only bounds of time are missed, as when others use the machine."""
        return bool(self.missed) and {*self.missed} <= {"slow", "usual", "CPU"}

    def line(self) -> str:
        answers = " ".join(f"{answer}:{count}" for answer, count in sorted(self.outcome.answers.items()))
        first = f"; others: {self.refusals}" if self.refused else ""
        verdict = f"MISSED: {', '.join(self.missed)}" if self.missed else "held"
        return (
            f"{self.vector:24}{self.requests:7}{self.refused:8}{self.slowest_alone:8.2f}{self.slowest:8.2f}"
            f"{self.usual_alone * 1000:9.1f}{self.usual * 1000:9.1f}{self.cpu_ratio:7.2f}"
            f"{self.store_growth / 2**10:+9.0f} KiB{self.memory_growth / 2**20:+6.0f} MiB  "
            f"{verdict:24}{self.outcome.sent} sent; {answers}{first}"
        )


COLUMNS: Final = {
    "others": 7,
    "refused": 8,
    "alone s": 8,
    "slow s": 8,
    "95 % ms": 9,
    "beside": 9,
    "CPU ×": 7,
    "store": 13,
    "memory": 10,
}
HEAD: Final = f"{'vector':24}" + "".join(f"{name:>{width}}" for name, width in COLUMNS.items())


def judge(vector: str, attacked: Measured, alone: Measured, *, judges_time: bool = True) -> Verdict:
    """One vector beside the load alone."""
    assert attacked.outcome is not None
    usual = alone.store * attacked.load.logins / max(1, alone.load.logins)
    return Verdict(
        vector,
        len(attacked.load.latencies),
        len(attacked.load.refusals),
        attacked.load.slowest,
        alone.load.slowest,
        attacked.load.usual,
        alone.load.usual,
        attacked.cpu / alone.cpu if alone.cpu else 0.0,
        round(attacked.store - usual),
        attacked.memory,
        attacked.outcome,
        " ".join(f"{text}:{count}" for text, count in Counter(attacked.load.refusals).items()),
        judges_time,
    )


class Others:
    """Clients that mean well: logins and look-ups in turns, on connections that are kept, and on new ones."""

    def __init__(self, port: int, login: bytes, lookup: bytes) -> None:
        self.latencies: list[float] = []
        self.refusals: list[str] = []
        self._port = port
        self._requests = (login, lookup)
        self._sent = 0
        self._places = asyncio.Semaphore(OTHERS)
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def as_many_as_possible(self, seconds: float) -> None:
        """One request after the other, on some connections."""
        until = time.perf_counter() + seconds

        async def repeat() -> None:
            while time.perf_counter() < until:
                await self._request(time.perf_counter())

        async with asyncio.TaskGroup() as group:
            for _ in range(CLIENTS):
                group.create_task(repeat())

    async def at_a_rate(self, rate: float, seconds: float) -> None:
        """So many a second, whether earlier ones are answered or not."""
        start, number = time.perf_counter(), 0
        async with asyncio.TaskGroup() as group:
            while (due := number / rate) < seconds:
                await asyncio.sleep(max(0.0, start + due - time.perf_counter()))
                group.create_task(self._request(start + due))
                number += 1

    def close(self) -> None:
        for _, writer in self._free:
            writer.transport.abort()

    async def _request(self, due: float) -> None:
        self._sent += 1
        data, is_new = self._requests[self._sent % 2], self._sent % NEW_CONNECTION == 0
        try:
            async with self._places, asyncio.timeout(PATIENCE):
                answer = await self._ask(data, is_new=is_new)
        except (OSError, asyncio.IncompleteReadError) as error:
            self.refusals.append(type(error).__name__)
        else:
            if not answer.startswith(b"HTTP/1.1 200 "):
                code = answer.partition(b"x-service-error-code: ")[2].partition(b"\r")[0]
                self.refusals.append(f"{answer[9:12].decode()} {code.decode()}")
        self.latencies.append(time.perf_counter() - due)

    async def _ask(self, data: bytes, *, is_new: bool) -> bytes:
        """The head of the answer. A kept connection that was closed meanwhile is no refusal: a new one is used then."""
        if self._free and is_new:
            _, writer = self._free.pop(0)  # keep the name: a writer freed before `abort` warns that it is unclosed
            writer.transport.abort()
        elif self._free:
            with suppress(OSError, asyncio.IncompleteReadError):
                return await self._ask_on(self._free.pop(), data)
        return await self._ask_on(await asyncio.open_connection("127.0.0.1", self._port), data)

    async def _ask_on(self, connection: tuple[asyncio.StreamReader, asyncio.StreamWriter], data: bytes) -> bytes:
        reader, writer = connection
        is_valid = False
        try:
            writer.write(data)
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
            await reader.readexactly(int(length or b"0"))
            is_valid = b"connection: close" not in head.lower()
        finally:
            if is_valid and len(self._free) < KEPT:
                self._free.append(connection)
            else:
                writer.transport.abort()
        return head


class Trial:
    """One server, configured, with what its clients and its attacker need."""

    def __init__(self, deployment: Deployment, server: Running, connections: int) -> None:
        self._deployment, self._server, self._connections = deployment, server, connections
        with deployment.client(server) as client:
            self._app_token = self._login(client)
            wrapped = client.post("sys/wrapping/wrap", json={"a": 1}, headers={"X-Vault-Wrap-TTL": "1h"})
            self._wrapping_token = wrapped.raise_for_status().json()["wrap_info"]["token"]

    @property
    def port(self) -> int:
        return self._server.port

    @property
    def login(self) -> bytes:
        """A login that succeeds, as it is sent."""
        return self._deployment.login_bytes()

    def _login(self, client: httpx.Client) -> str:
        answer = client.post("auth/cloud/login", json=self._deployment.form).raise_for_status()
        token: str = answer.json()["auth"]["client_token"]
        return token

    def rate(self, seconds: float) -> float:
        """How many requests a second are `SHARE` of what the server can do with a CPU of its own."""
        before = self._usage()
        others = self._others(lambda others: others.as_many_as_possible(seconds))
        count, cpu = len(others.latencies), max(1 / TICKS, self._usage().cpu - before.cpu)
        return min(SHARE * count / cpu, REACHED * count / seconds)

    def measure(self, rate: float, seconds: float, vectors: Sequence[str] = ()) -> Measured:
        """The load of others at this rate, beside an attack if there are vectors."""
        with self.hanging(vectors), self._attack(vectors) as outcome:
            before = self._usage()
            others = self._others(lambda others: others.at_a_rate(rate, seconds))
            after = self._usage()
        count = len(others.latencies)
        return Measured(
            Load(others.latencies, others.refusals, logins=count // 2),
            (after.cpu - before.cpu) / max(1, count),
            after.memory - before.memory,
            after.store - before.store,
            outcome[0] if outcome else None,
        )

    @contextmanager
    def hanging(self, vectors: Sequence[str]) -> Iterator[None]:
        """Azure's login service does not answer for as long as the block lasts, if a vector needs that."""
        faults, attacks = f"{self._deployment.cloud}/simulator/faults", [VECTORS[name] for name in vectors]
        if any(isinstance(attack, Held) and attack.needs_hanging_login for attack in attacks):
            httpx.post(faults, json=HANGING_LOGIN, **PATIENT).raise_for_status()
        yield
        httpx.post(faults, json=[], **PATIENT).raise_for_status()

    def _usage(self) -> Usage:
        return Usage.now(self._server.process.pid, self._deployment.folder / "store.sqlite")

    def _others(self, work: Callable[[Others], Any]) -> Others:
        lookup = request("GET /v1/auth/token/lookup-self", token=self._app_token)
        others = Others(self._server.port, self._deployment.login_bytes(), lookup)

        async def run() -> None:
            try:
                await work(others)
            finally:
                others.close()

        asyncio.run(run())
        return others

    @contextmanager
    def _attack(self, vectors: Sequence[str]) -> Iterator[list[Outcome]]:
        """Under way for as long as the block lasts; its outcome is in the list then."""
        outcomes: list[Outcome] = []
        if not vectors:
            yield outcomes
            return
        with subprocess.Popen(
            [sys.executable, "-m", "tests.endurance.attacks"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(msgspec.json.encode(self._order(vectors)) + b"\n")
                process.stdin.flush()
                assert process.stdout.readline() == b"begun\n"
                yield outcomes
                process.stdin.close()
                outcomes.append(msgspec.json.decode(process.stdout.readline(), type=Outcome))
            finally:
                process.kill()

    def _order(self, vectors: Sequence[str]) -> Order:
        with self._deployment.client(self._server) as client:
            created = client.post("auth/token/create", json={"policies": ["default"], "ttl": "1h"})
        return Order(
            self._server.port,
            tuple(vectors),
            self._connections,
            json.dumps(self._deployment.form),
            created.raise_for_status().json()["auth"]["client_token"],
            self._wrapping_token,
        )


@contextmanager
def trial(name: str, folder: Path, connections: int = CONNECTION_LIMIT) -> Iterator[Trial]:
    """A server on a durable store beside a simulated cloud, with so many connections at most."""
    with Running("cloudid_servers.provider_simulator", "--listen", "127.0.0.1:0") as cloud:
        deployment = Deployment.prepare(name, folder, cloud.url, SERVICE, {"connection_limit": connections, "ui": True})
        with deployment.serving() as server:
            deployment.configure(server)
            with deployment.client(server) as client:
                client.post(f"sys/{UNKNOWN_MOUNT}", json={"type": "cloud"}).raise_for_status()
                config = {"tenant_id": UNKNOWN_TENANT, "resource": RESOURCE}
                client.post(f"{UNKNOWN_MOUNT}/config", json=config).raise_for_status()
            yield Trial(deployment, server, connections)


def prove(name: str, folder: Path, seconds: float, vectors: Sequence[str]) -> Iterator[Verdict]:
    """Each vector for so many seconds, and all of them at last."""
    with trial(name, folder) as trying:
        tell(f"{name}: what the server can do")
        trying.rate(PROBE_SECONDS)
        rate = trying.rate(PROBE_SECONDS)
        trying.measure(rate, SETTLE_SECONDS)
        for attack in attacks_of(vectors):
            title = attack[0] if len(attack) == 1 else ALL
            for attempt in range(TRIES):
                if attempt:  # others may have begun to use the machine
                    rate = trying.rate(PROBE_SECONDS)
                tell(f"{name}, {rate:.0f} requests of others a second: {title}{', again' if attempt else ''}")
                alone = trying.measure(rate, seconds / 2)
                verdict = judge(title, trying.measure(rate, seconds, attack), alone)
                time.sleep(SETTLE_SECONDS)
                if not verdict.may_be_the_machine:
                    break
            yield verdict
        tell("")


def attacks_of(vectors: Sequence[str]) -> Iterator[Sequence[str]]:
    """Each vector alone, then all of them."""
    yield from ((vector,) for vector in vectors)
    if len(vectors) > 1:
        yield vectors


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.endurance.hostile", description=__doc__.split("\n")[0])
    parser.add_argument("--server", choices=SERVERS, action="append", help="default: both")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"for each vector (default: {SECONDS:g})")
    parser.add_argument("--vector", choices=VECTORS, action="append", help="default: each, and all of them at once")
    parser.add_argument("--json", action="store_true", help="print the verdicts for a machine")
    options = parser.parse_args()
    found: dict[str, list[Verdict]] = {}
    try:
        for name in options.server or SERVERS:
            if not options.json:
                sys.stdout.write(f"{name}\n{HEAD}\n")
            with tempfile.TemporaryDirectory() as folder:
                found[name] = []
                for verdict in prove(name, Path(folder), options.seconds, options.vector or tuple(VECTORS)):
                    found[name].append(verdict)
                    if not options.json:
                        tell("")
                        sys.stdout.write(verdict.line() + "\n")
                        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    if options.json:
        documents = {name: [{**asdict(one), "missed": one.missed} for one in all_] for name, all_ in found.items()}
        sys.stdout.write(json.dumps(documents, indent=2) + "\n")
    return 1 if any(verdict.missed for verdicts in found.values() for verdict in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
