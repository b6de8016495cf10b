"""What audit costs: logins with a file device, as a share of the logins without one.

    python -m benchmarks.audit [--servers …] [--connections N] [--seconds N] [--rounds N]

The workloads are `login_service`, `login_audited` and `login_audited_fsync` of `benchmarks.servers`. They take turns in
every round; of the rounds' ratios the median counts. Exit code 1 when a ratio is below its bound.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from .report import environment_text
from .servers import OWN, Conditions, Results, choose_cells, measure

BOUNDS: Final = {"login_audited": 0.85, "login_audited_fsync": 0.6}
"""The least share of the logins without a device."""

PLAIN: Final = "login_service"
ROUNDS: Final = 7
CONNECTIONS: Final = 32


def run(servers: Sequence[str], connections: int, conditions: Conditions) -> Results:
    return measure(choose_cells(servers, (PLAIN, *BOUNDS), (connections,)), conditions)


def rows(results: Results, servers: Sequence[str], connections: int) -> list[tuple[str, str, float | None, float]]:
    """Server, workload, ratio and bound."""
    return [
        (server, name, results.ratio((server, name, connections), (server, PLAIN, connections)), bound)
        for server in servers
        for name, bound in BOUNDS.items()
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    conditions = Conditions(seconds=options.seconds, rounds=options.rounds, machines=options.machines)
    results = run(options.servers, options.connections, conditions)
    print(environment_text(results.environment), "\n")
    print(f"{'server':10}{'workload':22}{'of logins without':>18}{'bound':>8}")
    found = rows(results, options.servers, options.connections)
    for server, name, ratio, bound in found:
        print(f"{server:10}{name:22}{ratio or 0.0:>18.2f}{bound:>8.2f}")
    return int(any((ratio or 0.0) < bound for _, _, ratio, bound in found))


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
