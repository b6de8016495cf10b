"""How many requests a second the servers answer, beside what RSA allows and what many would use instead.

    python -m benchmarks.servers [--json] [--servers …] [--workloads …] [--connections …] [--seconds N] [--rounds N]

Each server is a process of its own with a durable store (SQLite, an fsync for each commit), pinned to CPUs apart from
the load and from the simulated cloud where there are four. Servers take turns in every round, and every second round
goes the other way, so that none always comes after the same other one. Of each cell the median over all rounds counts.
Ratios are the medians of the rounds' ratios, since the pace of a machine drifts.

Servers

    trio, aiohttp  the two servers
    hypercorn      the same core, host and store behind hypercorn on trio
    fastapi        FastAPI, PyJWT and SQLAlchemy doing the job of a login: JWT, bounds, a durable row
    fastapi_grouped  the same in its best form: a thread commits the rows of all logins that wait, together
    peer           any service of the same API, by `--peer URL`: start it with the cloud at `--cloud HOST:PORT`
    limit          one verification of RSA with 2048 bits after the other, on a CPU of the server

Workloads

    login_service      a login answered with a stored token; signature and facts about the machine are known
    login_batch        the same, answered with a batch token, of which nothing is stored
    login_cold         login_service with a JWT that was not seen before; facts about its machine are known
    login_new          login_service of a machine that was not seen before: the cloud is asked about it
    login_stale        login_service while the facts about all machines expire every second
    login_checkpoints  login_service while SQLite writes checkpoints, which is made sure of
    login_audited      login_service with an audit device: a file, written before each request and before each answer
    login_audited_fsync  the same, when the device also waits for the disk
    lookup_self        GET auth/token/lookup-self
    echo               GET sys/health, which needs no token and reads no entry
    creds              GET cloud/creds/…: a service principal is made in the simulated cloud for each
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

from attrs import evolve, field, frozen

from cloudid_servers.settings.settings import parse_address

from . import targets
from .fleet import Fleet, raise_fleet
from .load import Load, Outcome, run_for
from .login_verification import raw_rsa
from .processes import Cpus, Places, cpu_seconds, in_process
from .report import environment, environment_text, fsync_us, tell
from .targets import BATCH_ROLE, Installation, Target, get

MACHINES: Final = 2048
STALE_MACHINES: Final = 512
ROUNDS: Final = 3
SECONDS: Final = 1.25
WARM_UP_SECONDS: Final = 0.3
RAW_SECONDS: Final = 0.5
CONNECTIONS: Final = (1, 32, 256)
OWN: Final = ("trio", "aiohttp")
FASTAPI: Final = ("fastapi", "fastapi_grouped")
SERVERS: Final = (*OWN, "hypercorn", *FASTAPI)
PEER: Final = "peer"
NEEDS: Final = {"hypercorn": ("hypercorn",)} | dict.fromkeys(FASTAPI, ("fastapi", "uvicorn", "sqlalchemy"))
"""Packages of the extra `bench`."""

MODULES: Final = {
    "trio": "cloudid_servers.trio_server",
    "aiohttp": "cloudid_servers.aiohttp_server",
    "hypercorn": "benchmarks.baselines.hypercorn_trio",
}
LIMIT: Final = ("limit", "raw_rsa_verify", 1)

Cell = tuple[str, str, int]
"""Server, workload, connections."""


@frozen
class Workload:
    """What is asked for, of whom, and in which situation (see `targets.service_settings`)."""

    requests: Callable[[Fleet, Target], list[bytes]]
    situation: str = "warm"
    servers: Sequence[str] = OWN
    connections: Sequence[int] = CONNECTIONS
    times_longer: int = 1
    """For requests that take longer than the others: of those that are under way when the clock stops, none counts."""
    needs_checkpoint: bool = False
    """Whether a measurement without a checkpoint of SQLite counts as failed."""

    @property
    def suits_peer(self) -> bool:
        """Whether it needs neither settings of its own nor a look at the store."""
        return self.situation == "warm" and not self.needs_checkpoint


def logins(fleet: Fleet, target: Target) -> list[bytes]:
    return targets.logins(fleet)


def batch_logins(fleet: Fleet, target: Target) -> list[bytes]:
    return targets.logins(fleet, BATCH_ROLE)


def lookups(fleet: Fleet, target: Target) -> list[bytes]:
    return [get("auth/token/lookup-self", token) for token in target.tokens]


def credentials(fleet: Fleet, target: Target) -> list[bytes]:
    return [get("cloud/creds/reader", token) for token in target.tokens]


WORKLOADS: Final[Mapping[str, Workload]] = {
    "login_service": Workload(logins, servers=SERVERS),
    "login_batch": Workload(batch_logins, servers=(*OWN, "hypercorn")),
    "login_cold": Workload(logins, "cold"),
    "login_new": Workload(logins, "new"),
    "login_stale": Workload(lambda fleet, target: logins(fleet, target)[:STALE_MACHINES], "stale", connections=(256,)),
    "login_checkpoints": Workload(logins, connections=(32,), needs_checkpoint=True),
    "login_audited": Workload(logins, "audited", connections=(1, 32)),
    "login_audited_fsync": Workload(logins, "audited_fsync", connections=(1, 32)),
    "lookup_self": Workload(lookups, servers=SERVERS),
    "echo": Workload(lambda fleet, target: [get("sys/health")], servers=SERVERS),
    "creds": Workload(credentials, times_longer=8),
}


@frozen
class Conditions:
    """How long everything is measured, on what, and where."""

    seconds: float = SECONDS
    rounds: int = ROUNDS
    machines: int = MACHINES
    folder: Path | None = None
    peer: str = ""
    peer_token: str = field(default="", repr=False)
    cloud: tuple[str, int] = ("127.0.0.1", 0)


def choose_cells(servers: Sequence[str], workloads: Iterable[str], connections: Iterable[int]) -> list[Cell]:
    """All that there is of these, in the order in which they are measured: servers next to each other."""
    return [
        (server, name, count)
        for name in workloads
        for count in WORKLOADS[name].connections
        if count in connections
        for server in servers
        if server in WORKLOADS[name].servers or (server == PEER and WORKLOADS[name].suits_peer)
    ]


@frozen
class Sample:
    """One measurement of a cell."""

    per_second: float
    p50_ms: float | None
    p99_ms: float | None
    failures: Mapping[str, int]
    cpu_us: float | None = None
    """CPU of the server for each request, where that is known."""

    @classmethod
    def of(cls, outcome: Outcome, cpu: float = 0.0) -> Sample:
        """`cpu`: seconds that the server took for all of it."""
        cpu_us = cpu / outcome.answered * 1e6 if cpu and outcome.answered else None
        return cls(outcome.per_second, outcome.percentile_ms(50), outcome.percentile_ms(99), outcome.failures, cpu_us)


@frozen
class Results:
    """All samples, round by round."""

    rounds: Sequence[Mapping[Cell, Sample]]
    environment: Mapping[str, Any]

    def rows(self) -> list[dict[str, Any]]:
        """A row for each cell: the medians over the rounds, and what failed in all of them, counted."""
        return [
            {
                "server": server,
                "workload": workload,
                "connections": connections,
                "per_second": round(self.median(cell, lambda sample: sample.per_second) or 0.0, 1),
                "p50_ms": _rounded(self.median(cell, lambda sample: sample.p50_ms)),
                "p99_ms": _rounded(self.median(cell, lambda sample: sample.p99_ms)),
                "cpu_us": _rounded(self.median(cell, lambda sample: sample.cpu_us)),
                "failures": dict(self.failures(cell)),
            }
            for cell in self.rounds[0]
            for server, workload, connections in (cell,)
        ]

    def ratios(self) -> list[dict[str, Any]]:
        """Each cell as a multiple of the limit, and of the baselines at the same workload and connections."""
        rows = []
        for cell in self.rounds[0]:
            if cell != LIMIT:
                server, workload, connections = cell
                names = {"server": server, "workload": workload, "connections": connections}
                others = {
                    "of_raw": LIMIT,
                    "of_hypercorn": ("hypercorn", workload, connections),
                    **{f"of_{form}": (form, _job(workload), connections) for form in FASTAPI},
                }
                ratios = {name: _rounded(self.ratio(cell, other)) for name, other in others.items() if cell != other}
                rows.append(names | {name: ratio for name, ratio in ratios.items() if ratio is not None})
        return rows

    def median(self, cell: Cell, value: Callable[[Sample], float | None]) -> float | None:
        """Of the rounds that have a value."""
        values = [found for samples in self.rounds if cell in samples and (found := value(samples[cell])) is not None]
        return median(values) if values else None

    def ratio(self, cell: Cell, other: Cell) -> float | None:
        """How many times as fast a cell is as another one: the median of the rounds' ratios."""
        pairs = [(samples[cell], samples[other]) for samples in self.rounds if cell in samples and other in samples]
        ratios = [one.per_second / two.per_second for one, two in pairs if two.per_second]
        return median(ratios) if ratios else None

    def cpu_ratio(self, cell: Cell, other: Cell) -> float | None:
        """How many times the CPU of another one a request takes: the median of the rounds' ratios."""
        pairs = [(samples[cell], samples[other]) for samples in self.rounds if cell in samples and other in samples]
        ratios = [one.cpu_us / two.cpu_us for one, two in pairs if one.cpu_us and two.cpu_us]
        return median(ratios) if ratios else None

    def failures(self, cell: Cell) -> Counter[str]:
        return sum((Counter(samples[cell].failures) for samples in self.rounds), Counter())

    def all_failures(self) -> Counter[str]:
        """What failed in all cells."""
        return sum((self.failures(cell) for cell in self.rounds[0]), Counter())


def _job(workload: str) -> str:
    """The workload of the FastAPI baselines that does the same job: they have one login, whose token is stored."""
    return "login_service" if workload.startswith("login_") and workload != "login_batch" else workload


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def measure(cells: Sequence[Cell], conditions: Conditions) -> Results:
    """Start the servers of these cells, and go through the rounds. Servers that are not installed are left out."""
    missing = {server for server, _, _ in cells if not _is_installed(server)}
    cells = [cell for cell in cells if cell[0] not in missing]
    tell("signing tokens")
    fleet, places = raise_fleet(conditions.machines), Places.choose()
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(dir=conditions.folder)))
        cloud = opened.enter_context(targets.simulated_cloud(fleet, places.cloud, *conditions.cloud))
        installation = Installation(fleet, cloud, folder, places)
        started = start_targets(installation, conditions, cells, opened)
        rounds = []
        for number in range(1, conditions.rounds + 1):
            samples = {LIMIT: sample_raw_rsa(fleet, places.server)}
            for place, cell in enumerate(cells if number % 2 else reversed(cells), 1):
                server, name, connections = cell
                tell(f"round {number} of {conditions.rounds}, {place} of {len(cells)}: {server} {name} {connections}")
                target = started[server, WORKLOADS[name].situation]
                samples[cell] = sample(WORKLOADS[name], connections, target, installation, conditions.seconds)
            rounds.append(samples)
        tell("")
        return Results(rounds, environment() | {"fsync_us": fsync_us(folder)})


def start_targets(
    installation: Installation, conditions: Conditions, cells: Iterable[Cell], opened: ExitStack
) -> dict[tuple[str, str], Target]:
    """A target for each server and situation."""
    needed = dict.fromkeys((server, WORKLOADS[workload].situation) for server, workload, _ in cells)
    started = {}
    for server, situation in needed:
        tell(f"starting {server} ({situation})")
        if server == PEER:
            started[server, situation] = targets.prepare(installation, conditions.peer, conditions.peer_token)
        else:
            started[server, situation] = opened.enter_context(_target(installation, server, situation))
    return started


def _target(installation: Installation, server: str, situation: str) -> AbstractContextManager[Target]:
    if server in FASTAPI:
        return targets.fastapi_server(installation, server)
    return targets.core_server(installation, MODULES[server], situation)


def _is_installed(server: str) -> bool:
    is_installed = targets.is_installed(*NEEDS.get(server, ()))
    if not is_installed:
        tell(f"{server} is left out: it needs the extra cloudid[bench]\n")
    return is_installed


def sample(workload: Workload, connections: int, target: Target, installation: Installation, seconds: float) -> Sample:
    """One measurement. It goes on in the fleet where the one before it on this target has ended."""
    requests = workload.requests(installation.fleet, target)
    load = Load(target.host, target.port, requests, connections, target.next_machine % len(requests))
    written_at = target.written_at()
    longer, cpu = workload.times_longer, cpu_seconds(target.pid)
    outcome = in_process(installation.places.load, lambda: run_for(load, longer * seconds, longer * WARM_UP_SECONDS))
    target.next_machine = outcome.next
    if workload.needs_checkpoint and target.written_at() == written_at:
        outcome.failures["no checkpoint"] += 1
    return Sample.of(outcome, cpu_seconds(target.pid) - cpu if target.pid else 0.0)


def sample_raw_rsa(fleet: Fleet, cpus: Cpus) -> Sample:
    """Verifications a second on one CPU; a percentile is of the means over the whole fleet."""
    verify_all = raw_rsa(fleet).run

    def verify() -> Outcome:
        taken: list[float] = []
        start = perf_counter()
        while perf_counter() - start < RAW_SECONDS:
            before = perf_counter()
            verify_all()
            taken.append((perf_counter() - before) / len(fleet.members))
        return Outcome(sum(taken), sorted(taken), Counter(), 0, len(taken))

    outcome = in_process(frozenset({min(cpus)}), verify)
    return evolve(Sample.of(outcome), cpu_us=1e6 / outcome.per_second)


def table(results: Results) -> str:
    """The rows for people."""
    lines = [environment_text(results.environment), ""]
    lines.append(
        f"{'workload':18}{'connections':>11} {'server':16}{'per second':>11}{'CPU us':>9}{'p50 ms':>9}{'p99 ms':>9}"
        f"{'x raw':>8}{'x hypercorn':>12}{'x fastapi':>10}{'x grouped':>10}  failures"
    )
    ratios = {(row["server"], row["workload"], row["connections"]): row for row in results.ratios()}
    for row in results.rows():
        cell = (row["server"], row["workload"], row["connections"])
        ratio = ratios.get(cell, {})
        lines.append(
            f"{cell[1]:18}{cell[2]:>11} {cell[0]:16}{row['per_second']:>11,.0f}"
            f"{_number(row['cpu_us'], '9.1f')}{_number(row['p50_ms'], '9.2f')}{_number(row['p99_ms'], '9.2f')}"
            f"{_number(ratio.get('of_raw'), '8.3f')}{_number(ratio.get('of_hypercorn'), '12.2f')}"
            f"{_number(ratio.get('of_fastapi'), '10.2f')}"
            f"{_number(ratio.get('of_fastapi_grouped'), '10.2f')}  {_failures(results.failures(cell))}".rstrip()
        )
    return "\n".join(lines)


def _number(value: float | None, form: str) -> str:
    return " " * int(form.partition(".")[0]) if value is None else format(value, form)


def _failures(failures: Counter[str]) -> str:
    return ", ".join(f"{count} x {what}" for what, count in failures.items())


def main() -> None:
    options = _parser().parse_args()
    servers = [*options.servers, PEER] if options.peer else options.servers
    results = measure(
        choose_cells(servers, options.workloads, options.connections),
        Conditions(
            seconds=options.seconds,
            rounds=options.rounds,
            machines=options.machines,
            folder=options.folder,
            peer=options.peer.rstrip("/"),
            peer_token=options.peer_token,
            cloud=parse_address(options.cloud),
        ),
    )
    if options.json:
        found = {"environment": results.environment, "rows": results.rows(), "ratios": results.ratios()}
        print(json.dumps(found, indent=1))
    else:
        print(table(results))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.servers", description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print rows, ratios and environment as one JSON object")
    parser.add_argument("--servers", nargs="*", choices=SERVERS, default=SERVERS, metavar="NAME", help="which servers")
    parser.add_argument(
        "--workloads", nargs="+", choices=WORKLOADS, default=tuple(WORKLOADS), metavar="NAME", help="which workloads"
    )
    parser.add_argument(
        "--connections", nargs="+", type=int, choices=CONNECTIONS, default=CONNECTIONS, metavar="N", help="how many"
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"of one measurement ({SECONDS})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds ({ROUNDS})")
    parser.add_argument("--machines", type=int, default=MACHINES, help=f"machines, each with its token ({MACHINES})")
    parser.add_argument("--folder", type=Path, help="where stores are made, on the disk to measure (temporary files')")
    parser.add_argument("--peer", default="", metavar="URL", help="another service of the same API")
    parser.add_argument("--peer-token", default="", metavar="TOKEN", help="its root token")
    parser.add_argument(
        "--cloud", default="127.0.0.1:0", metavar="HOST:PORT", help="where the simulated cloud listens (any free port)"
    )
    return parser


if __name__ == "__main__":
    main()
