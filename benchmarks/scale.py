"""How many logins a second more processes give: workers and servers on PostgreSQL and etcd, beside one process.

    python -m benchmarks.scale [--json] [--servers …] [--connections …] [--seconds N] [--rounds N] [--tokens N]

Each round measures, at 32 and 256 connections, one process on SQLite, one on PostgreSQL, 2 and 4 workers on PostgreSQL,
and two servers on one PostgreSQL that share the connections; then, where etcd is installed, one process, 2 workers and
two servers on a cluster of three members, which share this machine's cores and disk. All stores wait for the disk at
each commit. A ratio is the median, over the rounds, of a cell's logins a second to those of one process on SQLite with
as many connections. Then a store is filled up with tokens, and one process on PostgreSQL is measured on it.

A row counts where the machine has at least two cores more than there are processes: PostgreSQL and the load take some.
All processes run wherever the system puts them. It exits with 1 when a row that counts misses its bound.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any, Final, TypeAlias

import psycopg
from attrs import evolve, frozen
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from msgspec.structs import replace

from cloudid_core.caches import Caches
from cloudid_core.context.keyring import open_keyring
from cloudid_core.effects import ListKeys
from cloudid_core.run import run
from cloudid_core.store import keys
from cloudid_core.store.records import Records, encode
from cloudid_core.store.sealing import NONCE_SIZE, Keyring, Sealer, seal_with
from cloudid_core.tokens.record import Token
from cloudid_servers.command.bootstrap import open_store
from cloudid_servers.host.host import Host
from cloudid_servers.settings import master_key
from cloudid_servers.settings.settings import read_file
from cloudid_servers.stores.etcd.temporary import Member, NoEtcd, address_of, temporary_cluster
from cloudid_servers.stores.postgres.temporary import NoPostgres, temporary_server
from cloudid_servers.trio_server.serve import SERVER

from . import targets
from .fleet import raise_fleet
from .load import Load, run_all_for
from .processes import Places, ProcessFailed, in_process, server
from .report import available_cpus, environment, environment_text, fsync_us, tell
from .servers import Conditions
from .targets import Installation, Target

MACHINES: Final = 512
SECONDS: Final = 3.0
WARM_UP_SECONDS: Final = 0.7
ROUNDS: Final = 3
TOKENS: Final = 10**6
CONNECTIONS: Final = (32, 256)
MODULES: Final = {"trio": "cloudid_servers.trio_server", "aiohttp": "cloudid_servers.aiohttp_server"}
LONGEST: Final = 420.0
"""Seconds after which no further round is begun."""

SPARE_CORES: Final = 2
BOUNDS: Final[Mapping[tuple[str, int, int], float]] = {
    # store, processes, connections: at least so many times the logins of one process on SQLite
    ("postgresql", 1, 32): 0.8,
    ("postgresql", 1, 256): 0.8,
    ("postgresql", 2, 256): 1.4,
    ("postgresql", 4, 256): 2.0,
}


Stores: TypeAlias = "dict[str, Callable[[], AbstractContextManager[str]]]"
"""The address of a new place in each kind of store; a SQLite file has none."""


@frozen
class Set:
    """Processes of one server on one store. `nodes` of them are servers, each with `workers`."""

    server: str
    store: str
    workers: int = 1
    nodes: int = 1
    tokens: int = 0
    """How many are in the store besides."""

    @property
    def processes(self) -> int:
        return self.workers * self.nodes


@frozen
class Cell:
    """A set of processes under so many connections."""

    set: Set
    connections: int

    @property
    def bound(self) -> float | None:
        if self.set.nodes > 1 or self.set.tokens:
            return None
        return BOUNDS.get((self.set.store, self.set.processes, self.connections))


@frozen
class Sample:
    per_second: float
    p99_ms: float | None
    failures: Counter[str]


def sets_of(name: str) -> list[Set]:
    return [
        Set(name, "sqlite"),
        Set(name, "postgresql"),
        Set(name, "postgresql", workers=2),
        Set(name, "postgresql", workers=4),
        Set(name, "postgresql", nodes=2),
        Set(name, "etcd"),
        Set(name, "etcd", workers=2),
        Set(name, "etcd", nodes=2),
    ]


@contextmanager
def started(installation: Installation, which: Set, address: str) -> Iterator[list[Target]]:
    """The servers of a set, for as long as the block lasts; the fleet has been logged in at each."""
    folder = Path(tempfile.mkdtemp(prefix="set-", dir=installation.folder))
    settings = folder / "settings.toml"
    store = address or str(folder / "cloudid.sqlite")
    service = targets.service_settings("warm", len(installation.fleet.members))
    lines = ["[server]", 'listen = "127.0.0.1:0"', 'log_level = "warning"']
    lines += [f"store = {json.dumps(store)}", "[service]", *(f"{name} = {value}" for name, value in service.items())]
    settings.write_text("\n".join(lines), "utf-8")
    arguments = ["--settings", str(settings), "--provider", installation.cloud]
    if which.workers > 1:
        arguments += ["--workers", str(which.workers)]
    with ExitStack() as opened:
        root_token = targets.initialise(settings)
        urls = [
            opened.enter_context(
                server(installation.places.server, folder / f"log-{number}", MODULES[which.server], *arguments)
            ).url
            for number in range(which.nodes)
        ]
        first = targets.prepare(installation, urls[0], root_token)
        if which.tokens:
            fill(settings, store, which.tokens)
        yield [first, *(targets.warm_up(installation, url) for url in urls[1:])]


@contextmanager
def no_address() -> Iterator[str]:
    yield ""


@contextmanager
def prefix(members: Sequence[Member], numbers: Iterator[int]) -> Iterator[str]:
    """The address of a place in etcd of its own."""
    yield address_of(members, f"scale/{next(numbers)}")


@contextmanager
def database(admin: str, name: str) -> Iterator[str]:
    """The address of a database of its own."""
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    yield f"{admin.rpartition('/')[0]}/{name}"
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def fill(settings: Path, address: str, count: int) -> None:
    """Store copies of a token under ids of their own, as logins would have, but faster."""
    file = read_file(settings)
    core = file.settings(master_key.find(file.server))

    async def read(host: Host) -> tuple[Keyring, Token]:
        async def program() -> tuple[Keyring, Token]:
            keyring = await open_keyring(core)
            names = await ListKeys(keys.TOKENS, "", 100)
            records = Records(Sealer(keyring), Caches(core).records)
            found, _ = await records.find_all_fresh(names, Token)
            return keyring, next(one.record for one in found if one.record.expires_at)

        return await run(program(), host)

    with closing(open_store(file.server)) as store:
        keyring, token = SERVER.perform(read, store)
    cipher, term = AESGCM(bytes.fromhex(keyring.current.key.reveal())), keyring.current.term
    with psycopg.connect(address, autocommit=True) as connection:
        with connection.cursor().copy(b"COPY cloudid.entry (key, value, version) FROM STDIN") as rows:
            for number in range(count):
                copied = replace(token, id=f"{number:08x}{token.id[8:]}")
                value = seal_with(cipher, term, copied.key, encode(copied), os.urandom(NONCE_SIZE))
                rows.write_row((copied.key, value, 1))
        connection.execute(b"VACUUM ANALYZE cloudid.entry")


def sample(installation: Installation, ready: Sequence[Target], connections: int, seconds: float) -> Sample:
    """One measurement; the servers of a set share the connections."""
    requests = targets.logins(installation.fleet)
    loads = [
        Load(target.host, target.port, requests, connections // len(ready), number * len(requests) // len(ready))
        for number, target in enumerate(ready)
    ]
    outcomes = in_process(installation.places.load, lambda: run_all_for(loads, seconds, WARM_UP_SECONDS))
    latencies = sorted(latency for outcome in outcomes for latency in outcome.latencies)
    tail = evolve(outcomes[0], latencies=latencies).percentile_ms(99)
    failures = sum((outcome.failures for outcome in outcomes), Counter[str]())
    return Sample(sum(outcome.per_second for outcome in outcomes), tail, failures)


@frozen
class Results:
    samples: Mapping[Cell, Sequence[Sample]]
    environment: Mapping[str, Any]

    def ratio(self, cell: Cell) -> float | None:
        """To one process on SQLite with as many connections, round by round."""
        base = self.samples.get(Cell(Set(cell.set.server, "sqlite"), cell.connections), ())
        if not base:
            return None
        if len(base) != len(self.samples[cell]):
            return median(s.per_second for s in self.samples[cell]) / median(s.per_second for s in base)
        return median(one.per_second / other.per_second for one, other in zip(self.samples[cell], base, strict=True))

    def rows(self) -> list[dict[str, Any]]:
        cores = self.environment["cores"]
        rows = []
        for cell, samples in self.samples.items():
            ratio = self.ratio(cell)
            tails = [one.p99_ms for one in samples if one.p99_ms is not None]
            rows.append(
                {
                    "server": cell.set.server,
                    "store": cell.set.store,
                    "workers": cell.set.workers,
                    "nodes": cell.set.nodes,
                    "stored_tokens": cell.set.tokens,
                    "connections": cell.connections,
                    "per_second": round(median(one.per_second for one in samples), 1),
                    "ratio": None if ratio is None else round(ratio, 3),
                    "p99_ms": round(median(tails), 2) if tails else None,
                    "cores": cores,
                    "counts": cores >= cell.set.processes + SPARE_CORES,
                    "bound": cell.bound,
                    "failures": dict(sum((one.failures for one in samples), Counter[str]())),
                }
            )
        return rows


def measure(names: Sequence[str], connections: Sequence[int], tokens: int, conditions: Conditions) -> Results:
    tell("signing tokens")
    began, fleet = monotonic(), raise_fleet(conditions.machines)
    everywhere = frozenset(available_cpus())
    with ExitStack() as opened:
        home = Path(opened.enter_context(tempfile.TemporaryDirectory(dir=conditions.folder)))
        cloud = opened.enter_context(targets.simulated_cloud(fleet, everywhere))
        installation = Installation(fleet, cloud, home, Places(everywhere, everywhere, everywhere))
        places: Stores = {"sqlite": no_address}
        places["postgresql"] = partial(database, opened.enter_context(temporary_server(conditions.folder)), "scale")
        try:
            places["etcd"] = partial(prefix, opened.enter_context(temporary_cluster()), count())
        except NoEtcd as failure:
            tell(f"no rows of etcd: {failure}")
        samples: dict[Cell, list[Sample]] = {}
        for number in range(1, conditions.rounds + 1):
            if number > 1 and monotonic() - began > LONGEST * (number - 1) / number:
                break
            for which in [one for name in names for one in sets_of(name) if one.store in places]:
                tell(f"round {number} of {conditions.rounds}: {which}")
                measure_set(installation, which, places, conditions.seconds, samples, connections)
        if tokens:
            tell(f"{tokens} stored tokens")
            full = Set(names[0], "postgresql", tokens=tokens)
            measure_set(installation, full, places, conditions.seconds, samples, (max(connections),))
        tell("")
        return Results(samples, environment() | {"fsync_us": fsync_us(home)})


def measure_set(
    installation: Installation,
    which: Set,
    places: Stores,
    seconds: float,
    samples: dict[Cell, list[Sample]],
    connections: Sequence[int],
) -> None:
    """Start the set, measure it under all connections, and end it."""
    with places[which.store]() as address, started(installation, which, address) as ready:
        for number in connections:
            samples.setdefault(Cell(which, number), []).append(sample(installation, ready, number, seconds))


def table(results: Results) -> str:
    lines = [environment_text(results.environment), ""]
    lines.append(
        f"{'server':8}{'store':11}{'workers':>8}{'nodes':>6}{'tokens':>9}{'connections':>12}{'per second':>11}"
        f"{'ratio':>7}{'p99 ms':>9}  verdict"
    )
    for row in results.rows():
        ratio, tail = row["ratio"], row["p99_ms"]
        lines.append(
            f"{row['server']:8}{row['store']:11}{row['workers']:>8}{row['nodes']:>6}{row['stored_tokens']:>9}"
            f"{row['connections']:>12}{row['per_second']:>11,.0f}{'' if ratio is None else format(ratio, '.2f'):>7}"
            f"{'' if tail is None else format(tail, '.1f'):>9}  {verdict(row)}".rstrip()
        )
    return "\n".join(lines)


def verdict(row: Mapping[str, Any]) -> str:
    """Beside its bound; a row that does not count has none."""
    if row["failures"]:
        return f"failed: {row['failures']}"
    if row["bound"] is None:
        return ""
    if not row["counts"]:
        return f"does not count: too few cores (bound {row['bound']})"
    return f"held (bound {row['bound']})" if row["ratio"] >= row["bound"] else f"missed (bound {row['bound']})"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print rows and environment as one JSON object")
    parser.add_argument("--servers", nargs="+", choices=MODULES, default=tuple(MODULES), help="which servers")
    parser.add_argument(
        "--connections", nargs="+", type=int, choices=CONNECTIONS, default=CONNECTIONS, metavar="N", help="how many"
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"of one measurement ({SECONDS})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds ({ROUNDS})")
    parser.add_argument("--tokens", type=int, default=TOKENS, help=f"stored for the last row; 0: none ({TOKENS})")
    parser.add_argument("--machines", type=int, default=MACHINES, help=f"machines that log in ({MACHINES})")
    parser.add_argument("--folder", type=Path, help="where stores are made, on the disk to measure (temporary files')")
    options = parser.parse_args()
    try:
        conditions = Conditions(options.seconds, options.rounds, options.machines, options.folder)
        results = measure(options.servers, options.connections, options.tokens, conditions)
    except (NoPostgres, ProcessFailed) as failure:
        sys.stderr.write(f"error: {failure}\n")
        return 1
    if options.json:
        print(json.dumps({"environment": results.environment, "rows": results.rows()}, indent=1))
    else:
        print(table(results))
    return int(any(verdict(row).startswith(("missed", "failed")) for row in results.rows()))


if __name__ == "__main__":
    sys.exit(main())
