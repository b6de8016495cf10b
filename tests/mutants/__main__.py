"""Mistakes that a seed draws: `make mutants`, or `python -m tests.mutants [--seed N] [--count N] [--only NUMBER ...]`.

Each is one change of one expression or statement in a function of the packages that security rests on. First the tests
run once without a mistake, to find out which of them run which block; pytest's cache keeps this. Then, for each mutant,
those that run its block run in a forked process in which the function has the mutant's code, quick ones first, up to
the first one that fails. A survivor is shown as a difference; `survivors.md` says why the known ones are equivalent.
"""

from __future__ import annotations

import argparse
import os
import pickle
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, zip_longest
from pathlib import Path
from typing import IO, Final, Generic, TypeVar

import pytest
from attrs import frozen

from tests.mutants.mistakes import ROOT, Mutant, draw
from tests.mutants.reach import Caches, Marks, Reach, ReachOfFile, digest_of, marked_codes

SEED: Final = 43
COUNT: Final = 150
ENOUGH: Final = 0.95
"""The part that must be noticed."""
PATIENCE: Final = 60
"""A test of a mutant that takes so many seconds, and ten times its usual time, waits for what never comes: it fails."""
CPU_SECONDS: Final = 400
"""A mutant that computes longer never ends, where no time limit ends it: it is noticed."""
FOLDERS: Final = ("core", "contract", "properties", "wire", "ui", "incidents", "servers", "simulation")
TESTS: Final = tuple(f"tests/{folder}" for folder in FOLDERS)
"""What must notice."""
OPTIONS: Final = ("-q", "-n", "0", "-m", "not tools and not long")
CACHED: Final = "reach"

Key = TypeVar("Key")
Result = TypeVar("Result")


@frozen
class Outcome:
    """How it went with one mutant. `test`: the first one that failed."""

    test: str
    tests: int

    def __str__(self) -> str:
        return f"noticed by {self.test}" if self.test else f"survived {self.tests} tests"


class Reports:
    """Calls `then` with each report on the tests that run in this process, in place of showing it."""

    def __init__(self, session: pytest.Session, then: Callable[[pytest.TestReport], None]) -> None:
        self._then = then
        session.config.pluginmanager.unregister(name="terminalreporter")
        session.config.pluginmanager.register(self)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._then(report)


def show(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@frozen
class Ended(Generic[Key, Result]):
    """A process that has done its work. `result`: `None` if it raised an exception or was killed."""

    work: Key
    result: Result | None
    was_killed: bool
    seconds: float


def in_processes(works: Mapping[Key, Callable[[], Result]], at_once: int) -> Iterator[Ended[Key, Result]]:
    """Do each work in a forked process."""
    waiting, running = list(works.items()), dict[int, tuple[Key, IO[bytes], float]]()
    while waiting or running:
        while waiting and len(running) < at_once:
            key, work = waiting.pop(0)
            file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed when the process has ended
            running[_forked(work, file)] = key, file, time.monotonic()
        process, status = os.wait()
        if process not in running:
            continue  # a child of another test in this process
        key, file, began = running.pop(process)
        with file:
            file.seek(0)
            result = None if status else pickle.load(file)
        yield Ended(key, result, os.WIFSIGNALED(status), time.monotonic() - began)


def _forked(work: Callable[[], object], file: IO[bytes]) -> int:
    sys.stdout.flush()
    if process := os.fork():
        return process
    try:
        pickle.dump(work(), file)
        file.flush()
        os._exit(0)
    finally:
        traceback.print_exc()
        os._exit(1)


def run(items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    """Run the tests one after the other. Yield each when it has run."""
    for item, following in zip_longest(items, items[1:]):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        yield item


def reach_of(session: pytest.Session, items: Sequence[pytest.Item], digest: str) -> ReachOfFile:
    """Run the tests of one file without a mistake, and note which blocks they run."""
    reach = ReachOfFile(digest)
    with tempfile.NamedTemporaryFile() as file:
        marks = Marks(file.name)
        os.environ |= marks.environment
        marks.take_effect()
        Reports(session, lambda report: reach.add(report, marks.read()))
        caches = Caches()
        caches.clear()
        for _ in run(items):
            caches.clear()
    return reach


def try_mutant(session: pytest.Session, mutant: Mutant, tests: Mapping[pytest.Item, float]) -> Outcome:
    """Run the tests, which take so many seconds usually, with the mistake, up to the first that fails."""
    failed: list[str] = []
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    Reports(session, lambda report: failed.extend([report.nodeid] * report.failed))
    for test, seconds in tests.items():
        test.add_marker(pytest.mark.timeout(PATIENCE + 10 * seconds))
    mutant.take_effect()
    os.environ |= mutant.environment
    Caches().clear()
    for _ in run([*tests]):
        if failed:
            break
    return Outcome("".join(failed[:1]), len(tests))


class Trials:
    """Tries each mutant, which has a number, with the tests that pytest has collected."""

    def __init__(self, mutants: Mapping[int, Mutant], at_once: int) -> None:
        self._mutants, self._at_once = mutants, at_once
        self.survivors: list[Mutant] = []
        self.noticed = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        reach = Reach(self._reach(session))
        items = {item.nodeid: item for item in session.items}
        works = {}
        for number, mutant in self._mutants.items():
            tests = {items[test]: seconds for test, seconds in reach.tests_of(mutant).items()}
            works[number] = partial(try_mutant, session, mutant, tests)
        for ended in in_processes(works, self._at_once):
            mutant, outcome = self._mutants[ended.work], ended.result
            if ended.was_killed:
                outcome = Outcome("a limit", 0)
            if outcome and outcome.test:
                self.noticed += 1
            elif outcome:
                self.survivors.append(mutant)
            show(f"{ended.work}. {mutant}: {outcome or 'could not be tried'}, {ended.seconds:.0f} s")
        return True

    def _reach(self, session: pytest.Session) -> dict[Path, ReachOfFile]:
        """Return what the tests of each file run: as it is cached, otherwise found out now."""
        files = {path: [*items] for path, items in groupby(session.items, lambda item: item.path)}
        digests = {path: digest_of(path) for path in files}
        cache = session.config.cache.mkdir(CACHED) / "files.pickle"
        known: dict[Path, ReachOfFile] = pickle.loads(cache.read_bytes()) if cache.exists() else {}
        reaches = {path: known[path] for path in files if path in known and known[path].digest == digests[path]}
        works = {path: partial(reach_of, session, files[path], digests[path]) for path in files if path not in reaches}
        if works:
            marked_codes()  # once, for all processes
        for ended in in_processes(works, self._at_once):
            path, reach = ended.work, ended.result
            failed = reach.failed if reach else ["all"]
            left_out = "".join(f"\n  left out: {test}" for test in failed)
            show(f"{path.relative_to(ROOT)}, {ended.seconds:.0f} s{left_out}")
            if reach:
                reaches[path] = reach
                cache.write_bytes(pickle.dumps({**known, **reaches}))
        return reaches


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--only", type=int, nargs="*", help="the numbers of those that are tried")
    parser.add_argument("--at-once", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--tests", nargs="*", default=TESTS, help="the files or folders of those that must notice")
    options = parser.parse_args()
    drawn = dict(enumerate(draw(options.seed, options.count)))
    drawn = {number: drawn[number] for number in options.only or drawn}
    trials = Trials(drawn, options.at_once)
    pytest.main([*OPTIONS, *options.tests], [trials])
    for survivor in trials.survivors:
        show(f"\n{survivor.difference}")
    untried = len(drawn) - trials.noticed - len(trials.survivors)
    show(f"\n{trials.noticed} of {len(drawn)} mutants are noticed, {untried} could not be tried")
    return trials.noticed < ENOUGH * len(drawn) or untried > 0


if __name__ == "__main__":
    sys.exit(main())
