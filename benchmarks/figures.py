"""The figures that the project holds itself to, each measured now and held against its bound.

    python -m benchmarks.figures [--seconds N] [--rounds N]

It exits with 1 when a bound is missed or a request failed. An idle machine with four CPUs is needed to say anything.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from attrs import frozen

from . import login_verification
from .report import environment_text
from .servers import LIMIT, MACHINES, OWN, Cell, Conditions, Results, measure

ROUNDS: Final = 5
SECONDS: Final = 2.0
LOGINS: Final = ("login_service", "login_cold")


@frozen
class Figure:
    """What was reached, beside its bound. A figure without a bound is only shown."""

    name: str
    reached: float | None
    bound: float | None = None
    is_ceiling: bool = False

    @property
    def verdict(self) -> str:
        if self.bound is None:
            return ""
        if self.reached is None:
            return "not measured"
        is_held = self.reached <= self.bound if self.is_ceiling else self.reached >= self.bound
        return "held" if is_held else "missed"


FASTAPI_BOUNDS: Final = {"fastapi": 6.0, "fastapi_grouped": 3.0}
CPU_BOUNDS: Final[Mapping[str, float]] = {"login_service": 10.0, "login_cold": 14.0, "lookup_self": 6.0, "echo": 4.0}
"""CPU of a request at 32 connections, in raw RSA verifications at most: fewer cores than four can judge by it."""

RATIOS: Final[Sequence[tuple[str, Cell, Cell, float]]] = (
    # figure, what is measured, as a multiple of what, at least
    ("durable logins, x raw", ("trio", "login_service", 32), LIMIT, 0.18),
    ("durable logins, x raw", ("aiohttp", "login_service", 32), LIMIT, 0.16),
    ("logins with cold signatures, x raw", ("trio", "login_cold", 32), LIMIT, 0.11),
    ("logins with cold signatures, x raw", ("aiohttp", "login_cold", 32), LIMIT, 0.11),
    ("echo, x raw", ("trio", "echo", 32), LIMIT, 0.33),
    ("echo, x raw", ("aiohttp", "echo", 32), LIMIT, 0.33),
    ("lookup_self, x raw", ("trio", "lookup_self", 32), LIMIT, 0.2),
    ("lookup_self, x raw", ("aiohttp", "lookup_self", 32), LIMIT, 0.27),
    *(
        (f"{login}, x {form}", (server, login, 32), (form, "login_service", 32), bound)
        for form, bound in FASTAPI_BOUNDS.items()
        for login in LOGINS
        for server in OWN
    ),
    *(("256 connections, x 32", (server, "login_service", 256), (server, "login_service", 32), 1.0) for server in OWN),
    *(
        ("256 connections, expired facts, x warm", (server, "login_stale", 256), (server, "login_service", 256), 0.5)
        for server in OWN
    ),
)
TAIL_BOUND: Final = 4.0
"""How many times the p50 of logins their p99 may be while checkpoints run."""


def served_figures(results: Results) -> Iterable[Figure]:
    """The figures of the servers."""
    for name, cell, other, bound in RATIOS:
        yield Figure(f"{cell[0]}: {name}", results.ratio(cell, other), bound)
    for workload, bound in CPU_BOUNDS.items():
        for server in OWN:
            reached = results.cpu_ratio((server, workload, 32), LIMIT)
            yield Figure(f"{server}: CPU of {workload}, x raw", reached, bound, is_ceiling=True)
    for server in OWN:
        cell = (server, "login_checkpoints", 32)
        tail = results.median(cell, lambda s: s.p99_ms / s.p50_ms if s.p99_ms and s.p50_ms else None)
        yield Figure(f"{server}: p99 while checkpoints run, x p50", tail, TAIL_BOUND, is_ceiling=True)


def cold_figures(results: Results, figures: dict[str, float]) -> Iterable[Figure]:
    """What a new signature costs a served login, as a multiple of what it costs in a tight loop."""
    alone = login_verification.ratio(figures, "verify_cold") - login_verification.ratio(figures, "verify_warm")
    for server in OWN:
        cold, warm = (results.cpu_ratio((server, name, 32), LIMIT) for name in ("login_cold", "login_service"))
        reached = (cold - warm) / alone if cold and warm else None
        yield Figure(f"{server}: CPU of login_cold - login_service, x verify", reached)


def program_figures(figures: dict[str, float], own_groups: dict[str, float]) -> Iterable[Figure]:
    """The figures of the login program in one process; fleets with groups of their own are shown beside them."""
    for name, bound in login_verification.BOUNDS.items():
        yield Figure(f"{name}, x raw", login_verification.ratio(figures, name), bound, is_ceiling=True)
        yield Figure(f"{name} with own groups, x raw", login_verification.ratio(own_groups, name))


def needed_cells() -> list[Cell]:
    """All cells that a figure needs; those of one workload next to each other."""
    cells = [cell for _, one, other, _ in RATIOS for cell in (one, other) if cell != LIMIT]
    cells += [(server, "login_checkpoints", 32) for server in OWN]
    return sorted(set(cells), key=lambda cell: (cell[1:], cell[0]))


def report(results: Results, figures: Sequence[Figure]) -> tuple[str, bool]:
    """What is printed, and whether all bounds are held and no request failed."""
    failures = results.all_failures()
    raw = results.median(LIMIT, lambda sample: sample.per_second)
    lines = [environment_text(results.environment), f"raw RSA verify: {raw:,.0f} a second", "", table(figures), ""]
    lines.append(f"failed requests: {failures.total()} {dict(failures) or ''}".rstrip())
    is_held = all(figure.verdict in ("", "held") for figure in figures) and not failures
    return "\n".join(lines), is_held


def table(figures: Iterable[Figure]) -> str:
    lines = [f"{'figure':50}{'bound':>9}{'reached':>9}  verdict"]
    for figure in figures:
        sign = "<=" if figure.is_ceiling else ">="
        bound = "" if figure.bound is None else f"{sign} {figure.bound:g}"
        reached = "-" if figure.reached is None else f"{figure.reached:.3f}"
        lines.append(f"{figure.name:50}{bound:>9}{reached:>9}  {figure.verdict}".rstrip())
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.figures", description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"of one measurement ({SECONDS})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds of the servers ({ROUNDS})")
    parser.add_argument("--machines", type=int, default=MACHINES, help=f"machines, each with its token ({MACHINES})")
    options = parser.parse_args()
    conditions = Conditions(seconds=options.seconds, rounds=options.rounds, machines=options.machines)
    results = measure(needed_cells(), conditions)
    _, common = login_verification.run(options.machines)
    _, own_groups = login_verification.run(options.machines, own_groups=True)
    figures = [*served_figures(results), *cold_figures(results, common), *program_figures(common, own_groups)]
    text, is_held = report(results, figures)
    print(text)
    return 0 if is_held else 1


if __name__ == "__main__":
    sys.exit(main())
