"""What audit costs: the CPU of a login with a file device, as a multiple of that of a login without one.

    python -m benchmarks.audit [--servers …] [--connections N] [--seconds N] [--rounds N]

The workloads are `login_service`, `login_audited` and `login_audited_fsync` of `benchmarks.servers`. They take turns in
every round; of the rounds' ratios the median counts. It exits with 1 when there is more CPU than the bound
allows, or a request failed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from .report import environment_text
from .servers import OWN, Conditions, Results, choose_cells, measure

BOUNDS: Final = {"login_audited": 1.25, "login_audited_fsync": 1.5}
"""The most CPU, in logins without a device."""

PLAIN: Final = "login_service"
ROUNDS: Final = 7
CONNECTIONS: Final = 32


def run(servers: Sequence[str], connections: int, conditions: Conditions) -> Results:
    return measure(choose_cells(servers, (PLAIN, *BOUNDS), (connections,)), conditions)


def report(results: Results, servers: Sequence[str], connections: int) -> tuple[str, bool]:
    """What is printed, and whether all bounds are held and no request failed."""
    failures = results.all_failures()
    lines = [environment_text(results.environment), ""]
    lines.append(f"{'server':10}{'workload':22}{'x CPU':>8}{'bound':>8}{'x rate':>8}")
    is_held = not failures
    for server in servers:
        for name, bound in BOUNDS.items():
            cell, plain = (server, name, connections), (server, PLAIN, connections)
            cpu, rate = results.cpu_ratio(cell, plain), results.ratio(cell, plain)
            lines.append(f"{server:10}{name:22}{cpu or 0.0:>8.2f}{bound:>8.2f}{rate or 0.0:>8.2f}")
            is_held = is_held and cpu is not None and cpu <= bound
    lines += ["", f"failed requests: {failures.total()} {dict(failures) or ''}".rstrip()]
    return "\n".join(lines), is_held


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    conditions = Conditions(seconds=options.seconds, rounds=options.rounds, machines=options.machines)
    results = run(options.servers, options.connections, conditions)
    text, is_held = report(results, options.servers, options.connections)
    print(text)
    return 0 if is_held else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit", description=__doc__.split("\n")[0])
    parser.add_argument("--servers", nargs="+", choices=OWN, default=OWN, metavar="NAME", help="which servers")
    parser.add_argument("--connections", type=int, choices=(1, 32), default=CONNECTIONS, help="how many at a time")
    parser.add_argument("--seconds", type=float, default=2.0, help="of one measurement (2)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds ({ROUNDS})")
    parser.add_argument("--machines", type=int, default=512, help="machines, each with its token (512)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
