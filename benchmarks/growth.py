"""What a service costs that holds many tokens and leases, beside one that holds few.

    python -m benchmarks.growth [--json] [--plot OUT.svg] [--stores …] [--tokens N …] [--leases N …] [--rounds N]

Of each size a store is filled with copies of a token, or of a lease with its index and due entries, while no server
runs. Then a server on trio starts over it. Beside it runs one over a new store, and both answer logins in turn: the
CPU of a login is the median of the rounds' ratios. It exits with 1 when a ratio is above `BOUND`.

    start      seconds from the command to the line that says where it listens
    rss_mb     memory of the server after it started, in MiB
    bytes      of the store's files for each item, a backup's on SQLite (which has no free pages)
    login      CPU of a login, in those of the new store's
    page_ms    how long a list of a hundred accessors, or leases, takes; the median
    backup     seconds that a backup takes (SQLite)
    ended      how many are removed a second once all have ended, over `ENDING_SECONDS` or until none is left
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import groupby
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any, Final

import attrs
import httpx
import psycopg
from attrs import frozen
from msgspec.structs import replace

from cloudid_core.caches import Caches
from cloudid_core.context.keyring import open_keyring
from cloudid_core.effects import ListKeys
from cloudid_core.leases.record import Lease
from cloudid_core.run import run
from cloudid_core.store import keys
from cloudid_core.store.changes import Changes
from cloudid_core.store.records import Records
from cloudid_core.store.sealing import Sealer
from cloudid_core.tokens.record import Token
from cloudid_servers.command.bootstrap import open_store
from cloudid_servers.host.host import Host
from cloudid_servers.settings import master_key
from cloudid_servers.settings.settings import read_file
from cloudid_servers.stores.backup import back_up
from cloudid_servers.stores.postgres.temporary import NoPostgres, temporary_server
from cloudid_servers.trio_server.serve import SERVER

from . import targets, timeline
from .fleet import raise_fleet
from .load import Load, run_once
from .processes import Places, ProcessFailed, cpu_seconds, in_process, server
from .report import environment, environment_text, tell
from .scale import database
from .targets import Installation
from .timeline import Chart

SIZES: Final = {"tokens": (10_000, 100_000), "leases": (1_000, 10_000)}
STORES: Final = ("sqlite", "postgresql")
BOUND: Final = 1.1
"""The most CPU of a login, in those of a login on a new store."""

MACHINES: Final = 2048
ROUNDS: Final = 9
CONNECTIONS: Final = 32
ENDING_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.5
DAY: Final = 86_400.0
AT_ONCE: Final = 250
"""How many items are written by one commit."""

LISTS: Final = {"tokens": "auth/token/accessors", "leases": "sys/leases/lookup/cloud/creds/reader"}
MODULE: Final = "cloudid_servers.trio_server"


@frozen
class Service:
    """An initialised store with its settings; a server over it may run or not."""

    settings: Path
    address: str
    root_token: str

    @classmethod
    def new(cls, folder: Path, address: str) -> Service:
        folder.mkdir()
        settings = folder / "settings.toml"
        values = targets.service_settings("warm", MACHINES)
        lines = ["[server]", 'listen = "127.0.0.1:0"', 'log_level = "warning"', f"store = {json.dumps(address)}"]
        settings.write_text("\n".join([*lines, "[service]", *(f"{name} = {n}" for name, n in values.items())]), "utf-8")
        return cls(settings, address, targets.initialise(settings))

    @contextmanager
    def served(self, installation: Installation) -> Iterator[Measured]:
        log, started = self.settings.with_name("log"), perf_counter()
        arguments = ("--settings", str(self.settings), "--provider", installation.cloud)
        with server(installation.places.server, log, MODULE, *arguments) as running:
            yield Measured(running.url, running.pid, perf_counter() - started)

    def fill(self, kind: str, count: int, *, ended: bool = False) -> None:
        """Store copies of a token, or of a lease with all that belongs to it, under ids of their own."""
        file = read_file(self.settings)
        core = file.settings(master_key.find(file.server))

        async def store_all() -> None:
            records = Records(Sealer(await open_keyring(core)), Caches(core).records)
            item = await _found(records, kind)
            if ended:
                item = _ended(item)
            for first in range(0, count, AT_ONCE):
                copies = [_copy(item, number) for number in range(first, min(count, first + AT_ONCE))]
                await records.commit(Changes(puts={key: record for puts in copies for key, record in puts.items()}))

        async def work(host: Host) -> None:
            await run(store_all(), host)

        with closing(open_store(file.server)) as store:
            SERVER.perform(work, store)

    def count(self, kind: str) -> int:
        """How many tokens, or leases, are stored."""
        start = keys.TOKENS if kind == "tokens" else keys.LEASES
        connection: Any = (
            psycopg.connect(self.address, options="-c search_path=cloudid")
            if self.address.startswith("postgresql")
            else sqlite3.connect(self.address)
        )
        with closing(connection):
            return int(connection.execute(f"SELECT count(*) FROM entry WHERE key LIKE '{start}%'").fetchone()[0])

    def ended_per_second(self, kind: str, count: int, installation: Installation) -> float:
        """How fast all of them are removed that end before a server starts."""
        self.fill(kind, count, ended=True)
        stored = left = self.count(kind)
        with self.served(installation):
            started = perf_counter()
            while (taken := perf_counter() - started) < ENDING_SECONDS and stored - left < count:
                sleep(POLL_SECONDS)
                left = self.count(kind)
        return (stored - left) / taken

    def size(self, folder: Path) -> tuple[int, float | None]:
        """Bytes of the store, and how many seconds a backup took."""
        if self.address.startswith("postgresql"):
            with psycopg.connect(self.address) as connection:
                row = connection.execute("SELECT pg_total_relation_size('cloudid.entry')").fetchone()
            assert row is not None
            return row[0], None
        copy, started = folder / "backup.sqlite", perf_counter()
        back_up(Path(self.address), copy)
        taken, size = perf_counter() - started, copy.stat().st_size
        copy.unlink()
        return size, taken


@frozen
class Measured:
    """A server that listens."""

    url: str
    pid: int
    start: float

    @property
    def rss_mb(self) -> float:
        lines = Path(f"/proc/{self.pid}/status").read_text("utf-8").splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))

    def login_cpu(self, installation: Installation) -> float:
        """Seconds of CPU for a login of each machine."""
        address, requests = httpx.URL(self.url), targets.logins(installation.fleet)
        load = Load(address.host, address.port or 80, requests, CONNECTIONS)
        before = cpu_seconds(self.pid)
        outcome = in_process(installation.places.load, lambda: run_once(load))
        if outcome.failures:
            raise ProcessFailed(f"logins failed: {dict(outcome.failures)}")
        return cpu_seconds(self.pid) - before

    def page_ms(self, path: str, root_token: str) -> float:
        taken = []
        with httpx.Client(headers={"x-service-token": root_token}, trust_env=False, timeout=120) as client:
            for _ in range(5):
                started = perf_counter()
                client.get(f"{self.url}/v1/{path}?list=true&limit=100").raise_for_status()
                taken.append(perf_counter() - started)
        return median(taken) * 1000


async def _found(records: Records, kind: str) -> Token | Lease:
    if kind == "tokens":
        names = await ListKeys(keys.TOKENS, "", 100)
        tokens, _ = await records.find_all_fresh(names, Token)
        return next(one.record for one in tokens if one.record.expires_at)
    leases, _ = await records.find_all_fresh(await ListKeys(keys.LEASES, "", 1), Lease)
    return leases[0].record


def _ended(item: Token | Lease) -> Token | Lease:
    """One that has ended, and whose objects were made a day ago: that they are not there is believed at once."""
    if isinstance(item, Lease):
        then = item.issued_at - DAY
        provisioned = attrs.evolve(item.provisioned, made_at=then)
        return attrs.evolve(
            item, provisioned=provisioned, issued_at=then, expires_at=then + 1, ends_at=then + 1, due_at=then + 1
        )
    return replace(item, expires_at=item.created_at)


def _copy(item: Token | Lease, number: int) -> dict[str, object]:
    """The entries of a copy."""
    if isinstance(item, Lease):
        return dict(attrs.evolve(item, id=f"{item.id}{number:08x}").creation.puts)
    copied = replace(item, id=f"{number:08x}{item.id[8:]}")
    return {copied.key: copied}


def measure(installation: Installation, address: str, kind: str, count: int, rounds: int) -> dict[str, Any]:
    """A row of the table."""
    with tempfile.TemporaryDirectory(dir=installation.folder) as home:
        folder = Path(home)
        is_database = address.startswith("postgresql")
        few = Service.new(
            folder / "few", str(folder / "few" / "cloudid.sqlite") if not is_database else f"{address}_few"
        )
        many = Service.new(folder / "many", address if is_database else str(folder / "many" / "cloudid.sqlite"))
        for service in (few, many):
            with service.served(installation) as running:
                target = targets.prepare(installation, running.url, service.root_token)
                headers = {"x-service-token": target.tokens[0]}
                credentials = f"{running.url}/v1/cloud/creds/reader"
                httpx.get(credentials, headers=headers, trust_env=False, timeout=120).raise_for_status()
        before, _ = many.size(folder)
        tell(f"storing {count} {kind}")
        many.fill(kind, count)
        after, backup = many.size(folder)
        with few.served(installation) as one, many.served(installation) as other:
            rss = other.rss_mb
            ratios = []
            for number in range(rounds + 1):
                tell(f"round {number} of {rounds}" if number else "warming up")
                if number % 2:  # each comes first as often
                    base, cpu = one.login_cpu(installation), other.login_cpu(installation)
                else:
                    cpu, base = other.login_cpu(installation), one.login_cpu(installation)
                ratios.append(cpu / base)
            row = {
                "start": round(other.start, 2),
                "rss_mb": round(rss),
                "bytes": round((after - before) / count),
                "login": round(median(ratios[1:]), 3),
                "page_ms": round(other.page_ms(LISTS[kind], many.root_token), 1),
                "backup": None if backup is None else round(backup, 3),
            }
        tell(f"ending {count} {kind}")
        return row | {"ended": round(many.ended_per_second(kind, count, installation))}


def table(rows: Sequence[dict[str, Any]]) -> str:
    names = list(rows[0])
    lines = [
        names,
        ["---"] * len(names),
        *([f"{v:,}" if isinstance(v, int) else str(v or "") for v in row.values()] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def charts(kind: str, rows: Sequence[dict[str, Any]]) -> list[Chart]:
    """What grows with the number of stored items, and what does not."""
    points = {
        name: [(row["stored"], row[name]) for row in rows if row[name] is not None]
        for name in ("login", "rss_mb", "page_ms", "start", "backup", "ended")
    }
    bound = [(row["stored"], BOUND) for row in rows]
    curves: dict[str, dict[str, Sequence[tuple[float, float]]]] = {
        "CPU of a login": {"measured": points["login"], "the bound": bound},
        "memory in MiB": {"of the server": points["rss_mb"]},
        "a list of 100 in ms": {"the median": points["page_ms"]},
        "seconds": {"start": points["start"], "backup": points["backup"]},
        "removed a second": {"once all have ended": points["ended"]},
    }
    return [Chart(title, of, kind) for title, of in curves.items()]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print rows and environment as one JSON object")
    parser.add_argument("--plot", type=Path, help="SVG file to draw the rows into, over how much is stored")
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES, help="which stores")
    for kind, sizes in SIZES.items():
        parser.add_argument(f"--{kind}", nargs="*", type=int, default=sizes, metavar="N", help=f"how many {sizes}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of logins ({ROUNDS})")
    parser.add_argument("--machines", type=int, default=MACHINES, help=f"machines that log in ({MACHINES})")
    parser.add_argument("--folder", type=Path, help="where stores are made, on the disk to measure (temporary files')")
    options = parser.parse_args()
    tell("signing tokens")
    fleet, places, rows = raise_fleet(options.machines), Places.choose(), []
    try:
        with ExitStack() as opened:
            folder = Path(opened.enter_context(tempfile.TemporaryDirectory(dir=options.folder)))
            cloud = opened.enter_context(targets.simulated_cloud(fleet, places.cloud))
            installation = Installation(fleet, cloud, folder, places)
            admin = opened.enter_context(temporary_server(options.folder)) if "postgresql" in options.stores else ""
            for store in options.stores:
                for kind in SIZES:
                    for count in getattr(options, kind):
                        with ExitStack() as made:
                            address = ""
                            if store == "postgresql":
                                address = made.enter_context(database(admin, "growth"))
                                made.enter_context(database(admin, "growth_few"))
                            row = measure(installation, address, kind, count, options.rounds)
                        rows.append({"store": store, "kind": kind, "stored": count} | row)
                        tell(f"{store}, {count} {kind}: {row}")
    except (NoPostgres, ProcessFailed) as failure:
        sys.stderr.write(f"error: {failure}\n")
        return 1
    tell("")
    facts = environment()
    print(
        json.dumps({"environment": facts, "rows": rows}, indent=1)
        if options.json
        else f"{environment_text(facts)}\n\n{table(rows)}"
    )
    if options.plot:
        pictures = [
            (f"{store}, {kind}", charts(kind, list(of)))
            for (store, kind), of in groupby(rows, key=lambda row: (row["store"], row["kind"]))
        ]
        caption = f"{facts['cpu']}, {facts['cores']} cores; {facts['python']}"
        options.plot.write_text(timeline.draw(pictures, caption), "utf-8")
    return int(any(row["login"] > BOUND for row in rows))


if __name__ == "__main__":
    sys.exit(main())
