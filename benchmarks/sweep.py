"""Whether dead tokens and leases are removed as fast as they can be made, and what that costs live traffic.

    python -m benchmarks.sweep [--json] [--servers …] [--kinds …] [--stored N] [--seconds N] [--patience N]

Each server runs as it is shipped, its background work too, on a durable store with so many live tokens. Logins make
tokens; reads of credentials make leases, of roles that keep their application: the simulated cloud adds a password for
each, and removes it when the lease ends.

    control  requests whose tokens or leases live on, for some seconds: nothing is there to be removed
    beside   requests whose tokens or leases live for a second, as long: their removal goes on beside them
    alone    no request any more, until the last dead one is removed, or the patience is over

`in_per_second` is how many that will die were made, `out_per_second` how many were removed until the last one or the
end of patience; `waiting` is how many were not removed yet when the requests stopped, the last second's among them;
`cost` is the part of the control's requests that is lost beside the removal. A server keeps up when `left` is 0 and
`last_removed_after`, the seconds without requests, is short. It exits with 1 when anything is left.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from time import perf_counter, sleep
from typing import Any, Final

from attrs import frozen

from cloudid_core.store.keys import LEASES, TOKENS

from . import targets
from .fleet import raise_fleet
from .load import Load, Outcome, run_for, run_once
from .processes import Places, in_process
from .report import environment, environment_text, fsync_us, tell
from .servers import MODULES, OWN
from .targets import BRIEF_ROLE, Installation, Target, configure, get, logins, reader

MACHINES: Final = 512
STORED: Final = 20_000
SECONDS: Final = 10.0
PATIENCE: Final = 90.0
POLL_SECONDS: Final = 1.0
CONNECTIONS: Final = 32
FILL_SECONDS: Final = 3600.0
APPLICATIONS: Final = 8
"""How many applications the leases share: a provider keeps some hundred passwords of each."""

COUNT: Final = "SELECT count(*) FROM entry WHERE key >= ? AND key < ?"


@frozen
class Kind:
    """What is removed: where it is stored, and the requests that make what lives on, and what lives for a second."""

    prefix: str
    lasting: Sequence[bytes]
    brief: Sequence[bytes]


@frozen
class Removal:
    """What was measured of one kind on one server."""

    stored: int
    made: int
    removed_beside: int
    removed_alone: int
    seconds: float
    alone_seconds: float
    control: Outcome
    beside: Outcome

    def row(self, server: str, kind: str) -> dict[str, Any]:
        removed = self.removed_beside + self.removed_alone
        lost = self.control.per_second - self.beside.per_second
        return {
            "server": server,
            "kind": kind,
            "stored": self.stored,
            "in_per_second": round(self.made / self.seconds, 1),
            "out_per_second": round(removed / (self.seconds + self.alone_seconds), 1),
            "out_per_second_beside": round(self.removed_beside / self.seconds, 1),
            "waiting": self.made - self.removed_beside,
            "left": self.made - removed,
            "last_removed_after": round(self.alone_seconds, 1),
            "control": _traffic(self.control),
            "beside": _traffic(self.beside),
            "cost": round(lost / self.control.per_second, 3) if self.control.latencies else None,
            "failures": dict(self.control.failures + self.beside.failures),
        }


def _traffic(outcome: Outcome) -> dict[str, float | None]:
    return {
        "per_second": round(outcome.per_second, 1),
        "p50_ms": outcome.percentile_ms(50),
        "p99_ms": outcome.percentile_ms(99),
    }


def tokens(installation: Installation, target: Target) -> Kind:
    return Kind(TOKENS, logins(installation.fleet), logins(installation.fleet, BRIEF_ROLE))


def leases(installation: Installation, target: Target) -> Kind:
    """Makes the roles, each with its application: those of the control stay apart, for their passwords stay."""
    role = reader(installation.fleet) | {"persist_app": True}
    lasting, brief = ([f"{name}-{number}" for number in range(APPLICATIONS)] for name in ("lasting", "brief"))
    roles = dict.fromkeys(lasting, role) | dict.fromkeys(brief, role | {"ttl": "1s"})
    url = f"http://{target.host}:{target.port}"
    configure(url, target.root_token, {f"cloud/roles/{name}": fields for name, fields in roles.items()})
    return Kind(LEASES, _credentials(target, lasting), _credentials(target, brief))


def _credentials(target: Target, roles: Sequence[str]) -> list[bytes]:
    """A read of credentials with each token, of the roles in turn."""
    return [get(f"cloud/creds/{roles[n % len(roles)]}", token) for n, token in enumerate(target.tokens)]


KINDS: Final[Mapping[str, Callable[[Installation, Target], Kind]]] = {"tokens": tokens, "leases": leases}


def measure(installation: Installation, target: Target, kind: Kind, seconds: float, patience: float) -> Removal:
    """All phases of one kind on one server."""
    assert target.store is not None
    tell("the control")
    control = send(installation, target, kind.lasting, seconds)
    before = count_entries(target.store, kind.prefix)
    tell("requests for what dies")
    start = perf_counter()
    beside = send(installation, target, kind.brief, seconds)
    taken, left = perf_counter() - start, count_entries(target.store, kind.prefix) - before
    made = beside.answered
    tell("waiting for the last one to be removed")
    start = perf_counter()
    removed_beside, alone_seconds = made - left, 0.0
    while left > 0 and alone_seconds < patience:
        sleep(POLL_SECONDS)
        left = count_entries(target.store, kind.prefix) - before
        alone_seconds = perf_counter() - start
    return Removal(before, made, removed_beside, made - removed_beside - left, taken, alone_seconds, control, beside)


def fill(installation: Installation, target: Target, stored: int) -> None:
    """Have so many live tokens in the store, by logins."""
    assert target.store is not None
    tell(f"storing {stored} tokens")
    requests = logins(installation.fleet)
    missing = max(0, stored - count_entries(target.store, TOKENS))
    full = (requests * (missing // len(requests) + 1))[:missing]
    load = Load(target.host, target.port, full, CONNECTIONS)
    in_process(installation.places.load, lambda: run_once(load, FILL_SECONDS))


def send(installation: Installation, target: Target, requests: Sequence[bytes], seconds: float) -> Outcome:
    load = Load(target.host, target.port, requests, CONNECTIONS)
    return in_process(installation.places.load, lambda: run_for(load, seconds))


def count_entries(store: Path, prefix: str) -> int:
    """How many entries below a prefix a SQLite store holds, dead or alive; read beside the server that owns it."""
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
        found: int = connection.execute(COUNT, (prefix, prefix + "\U0010ffff")).fetchone()[0]
    return found


def table(rows: Sequence[dict[str, Any]], environment: dict[str, Any]) -> str:
    lines = [environment_text(environment), ""]
    lines.append(
        f"{'server':10}{'kind':8}{'stored':>10}{'in/s':>9}{'out/s':>9}{'waiting':>9}{'left':>9}{'last after':>12}"
        f"{'control/s':>11}{'p99 ms':>8}{'beside/s':>10}{'p99 ms':>8}{'cost':>7}  failures"
    )
    for row in rows:
        control, beside = row["control"], row["beside"]
        failures = ", ".join(f"{count} x {what}" for what, count in row["failures"].items())
        lines.append(
            f"{row['server']:10}{row['kind']:8}{row['stored']:>10,}"
            f"{row['in_per_second']:>9,.0f}{row['out_per_second']:>9,.0f}"
            f"{row['waiting']:>9,}{row['left']:>9,}{row['last_removed_after']:>10.1f} s"
            f"{control['per_second']:>11,.0f}{control['p99_ms'] or 0:>8.1f}"
            f"{beside['per_second']:>10,.0f}{beside['p99_ms'] or 0:>8.1f}{row['cost'] or 0:>7.2f}  {failures}".rstrip()
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweep", description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print rows and environment as one JSON object")
    parser.add_argument("--servers", nargs="+", choices=OWN, default=OWN, metavar="NAME", help="which servers")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=[*KINDS], metavar="KIND", help="tokens, leases")
    parser.add_argument("--stored", type=int, default=STORED, help=f"live tokens in the store ({STORED})")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"of traffic ({SECONDS})")
    parser.add_argument("--patience", type=float, default=PATIENCE, help=f"seconds to wait for the rest ({PATIENCE})")
    parser.add_argument("--machines", type=int, default=MACHINES, help=f"machines that log in ({MACHINES})")
    parser.add_argument("--folder", type=Path, help="where stores are made, on the disk to measure (temporary files')")
    options = parser.parse_args()
    tell("signing tokens")
    fleet, places = raise_fleet(options.machines), Places.choose()
    rows = []
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(dir=options.folder)))
        cloud = opened.enter_context(targets.simulated_cloud(fleet, places.cloud))
        installation = Installation(fleet, cloud, folder, places)
        facts = environment() | {"fsync_us": fsync_us(folder)}
        for server in options.servers:
            tell(f"starting {server}")
            with targets.core_server(installation, MODULES[server], "warm") as target:
                fill(installation, target, options.stored)
                for name in options.kinds:
                    tell(f"{server}: {name}")
                    kind = KINDS[name](installation, target)
                    removal = measure(installation, target, kind, options.seconds, options.patience)
                    rows.append(removal.row(server, name))
    tell("")
    print(json.dumps({"environment": facts, "rows": rows}, indent=1) if options.json else table(rows, facts))
    return int(any(row["left"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
