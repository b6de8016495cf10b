"""The long proof: `python -m tests.simulation.prove [--lives N] [--every N] [--first N]`, with its progress.

All ordered pairs of faults for issue, revoke and rotate, and random lives; of two and three nodes all single faults of
every operation, a change of the leader, a stop and a stall at every effect, and random lives with stalls and
partitions. It ends with 1 at the first broken promise, and prints what replays it.

Pairs and nodes together take about 11 hours of a core. `--every 9` does a ninth of them, and `--first` says which: nine
runs, with nine numbers in a row, do them all. Each number has random lives of its own.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Final

from attrs import frozen

from cloudid_core.testing import Crashed, Fault, FaultKind, every_fault
from cloudid_core.testing.faults import troubles_of

from . import test_nodes
from .operations import OPERATIONS, copy_of
from .test_exhaustive import go_through
from .test_random import REPLAY, live

PAIRED: Final = (
    "issue a fresh principal",
    "issue a password of an existing application",
    "issue a password of a persisted application",
    "revoke",
    "revoke while the resource manager hangs",
    "disable the engine while the cloud refuses",
    "rotate the root secret",
)
LIVES_AT_ONCE: Final = 50

STALL: Final = "a stall"
TROUBLES: Final = {
    "faults": test_nodes.go_through_faults,
    "a change of the leader": test_nodes.go_through_changes,
    "a stop": test_nodes.go_through_stops,
    STALL: test_nodes.go_through_stalls,
}


@frozen
class Job:
    """A part of the proof: some lives, all pairs whose first fault is this one, or an operation of several nodes."""

    lives: tuple[int, int] = (0, 0)
    nodes: int = 0
    """How many; their lives choose by themselves."""

    trouble: str = "faults"
    """What happens to the nodes at every effect: one of `TROUBLES`."""

    operation: str = ""
    at: int = 0
    kind: str = ""

    def run(self) -> int:
        """How many worlds were tried; the first broken promise is raised."""
        if not self.operation:
            story, replay = (test_nodes.live, test_nodes.REPLAY) if self.nodes else (live, REPLAY)
            for seed in range(*self.lives):
                try:
                    story(seed)
                except BaseException as failure:
                    raise AssertionError(f"{failure}\nreplay with: {replay.format(seed=seed)}") from failure
            return self.lives[1] - self.lives[0]
        if self.nodes:
            return TROUBLES[self.trouble](self.operation, self.nodes)
        start, operation = OPERATIONS[self.operation]
        first = Fault(self.at, FaultKind[self.kind])
        tried = 0
        for installation in every_fault(
            lambda world: go_through(world, operation), lambda: copy_of(start()), given=(first,)
        ):
            go_through(installation, operation)
            tried += 1
        return tried


def pairs() -> Iterator[Job]:
    """A job for each first fault."""
    for name in PAIRED:
        start, operation = OPERATIONS[name]
        installation = copy_of(start())
        begin = len(installation.trace)
        operation(installation)
        for at, (_, effect) in enumerate(installation.trace[begin:], begin):
            for kind in troubles_of(effect):
                yield Job(operation=name, at=at, kind=kind.name)


def lives(count: int, part: int, nodes: int = 0) -> Iterator[Job]:
    """So many lives, other ones for each part."""
    end = (part + 1) * count
    for first in range(part * count, end, LIVES_AT_ONCE):
        yield Job(lives=(first, min(first + LIVES_AT_ONCE, end)), nodes=nodes)


def several_nodes() -> Iterator[Job]:
    """Every operation with two and with three nodes."""
    for name in OPERATIONS:
        for count in (2, 3):
            for trouble in TROUBLES:
                if trouble != STALL or name not in test_nodes.UNSTALLED:
                    yield Job(operation=name, nodes=count, trouble=trouble)


def spare_collections() -> None:
    """Keep the collector from looking at every module again and again."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.prove", description=__doc__)
    parser.add_argument("--lives", type=int, default=5000, help="how many random lives (default: 5000)")
    parser.add_argument("--every", type=int, default=1, help="do each Nth part of the pairs and the nodes (default: 1)")
    parser.add_argument(
        "--first", type=int, default=0, help="begin with this one of these parts, modulo N, and its lives (default: 0)"
    )
    options = parser.parse_args()
    jobs = [*lives(options.lives, options.first), *lives(options.lives // 5, options.first, nodes=2)]
    jobs += [*several_nodes(), *pairs()][options.first % options.every :: options.every]
    began, tried = time.monotonic(), 0
    with ProcessPoolExecutor(os.cpu_count(), initializer=spare_collections) as pool:
        futures = {pool.submit(job.run): job for job in jobs}
        for done, future in enumerate(as_completed(futures), 1):
            try:
                tried += future.result()
            except (Exception, Crashed) as broken:  # noqa: BLE001  # whatever it is, the job that it belongs to is told
                pool.shutdown(cancel_futures=True)
                sys.stderr.write(f"\nbroken: {type(broken).__name__}: {broken}\nwith {futures[future]}\n")
                return 1
            spent = time.monotonic() - began
            left = spent / done * (len(jobs) - done)
            sys.stderr.write(f"\r{done}/{len(jobs)} jobs, {tried} worlds, {spent:.0f} s, about {left:.0f} s left   ")
    sys.stdout.write(f"\n{tried} worlds: nothing leaked, lost or locked out\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
