"""Which tests run which block of the packages: a mutant is tried with the tests that run its block, and no others.

Each block of each function gets a mark as its first statement. The marks are in a file that processes share, so that
those of servers which the tests start count too.
"""

from __future__ import annotations

import ast
import builtins
import functools
import gc
import mmap
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import CodeType
from typing import Final

import pytest
from attrs import Factory, define

from tests.mutants.mistakes import (
    INHERITED,
    PACKAGES,
    ROOT,
    Block,
    Codes,
    Mutant,
    codes_of,
    nodes,
    paths_of,
    replace_functions,
)
from tests.servers.warm import ALSO_IMPORTED

MARKS: Final = "MARKS"
"""Environment variable with the file of the marks, for processes that the tests start."""
UNSET, SET = b"01"


def blocks_of(tree: ast.Module) -> list[Block]:
    return [*{id(block): block for _, block in nodes(tree) if block}.values()]


@cache
def all_blocks() -> Mapping[tuple[Path, int], int]:
    """Number the blocks of the packages. Each is known by its file and its first line."""
    paths = [path for package in PACKAGES for path in paths_of(package)]
    blocks = [(path, block[0].lineno) for path in paths for block in blocks_of(ast.parse(path.read_text()))]
    return {block: number for number, block in enumerate(blocks)}


@cache
def marked_codes() -> Codes:
    """Return the code of all functions of the packages, with a mark in each block."""
    codes: dict[tuple[str, str, int], CodeType] = {}
    for path in dict(all_blocks().keys()):
        tree = ast.parse(path.read_text())
        for block in blocks_of(tree):
            mark = ast.parse(f"__marks__[{all_blocks()[path, block[0].lineno]}] = {SET}").body[0]
            for node in ast.walk(mark):
                ast.copy_location(node, block[0])
            block.insert(0, mark)
        codes |= codes_of(path, tree)
    return codes


class Marks:
    """One byte for each block, and whether it was run, in a file that processes share."""

    def __init__(self, file: str) -> None:
        self.environment = {ALSO_IMPORTED: INHERITED, MARKS: file}
        """Variables by which the processes that tests start mark what they run, too."""
        with open(file, "r+b") as opened:
            opened.truncate(len(all_blocks()))
            self._bytes = mmap.mmap(opened.fileno(), len(all_blocks()))

    def take_effect(self) -> None:
        builtins.__dict__["__marks__"] = self._bytes
        replace_functions(marked_codes())

    def read(self) -> int:
        """Return the marks since the last time, a bit for each block."""
        marked = int(self._bytes[:].replace(b"\0", b"0")[::-1], 2)
        self._bytes[:] = bytes([UNSET]) * len(self._bytes)
        return marked


class Caches:
    """The caches of the product's functions: what one test has filled, another one would not run."""

    def __init__(self) -> None:
        found = [each for each in gc.get_objects() if isinstance(each, functools._lru_cache_wrapper)]
        self._caches = [each for each in found if each.__module__.startswith("cloudid")]

    def clear(self) -> None:
        for each in self._caches:
            each.cache_clear()


@define
class ReachOfFile:
    """What the tests of one file run, and in how many seconds. What setting up runs, all tests of the file need."""

    digest: str
    set_up: int = 0
    marks: dict[str, int] = Factory(dict)
    seconds: dict[str, float] = Factory(dict)
    failed: list[str] = Factory(list)

    def add(self, report: pytest.TestReport, marks: int) -> None:
        test = report.nodeid
        self.seconds[test] = self.seconds.get(test, 0.0) + report.duration
        self.marks.setdefault(test, 0)
        if report.when == "setup":
            self.set_up |= marks
        else:
            self.marks[test] |= marks
        if report.failed:
            self.failed.append(test)

    def tests_of(self, bit: int) -> dict[str, float]:
        """Return the tests that run a block, with their seconds; those that fail without a mistake show nothing."""
        found = [test for test, marks in self.marks.items() if (marks | self.set_up) & bit]
        return {test: self.seconds[test] for test in found if test not in self.failed}


class Reach:
    """What the tests of all files run."""

    def __init__(self, files: Mapping[Path, ReachOfFile]) -> None:
        self._files = files

    def tests_of(self, mutant: Mutant) -> dict[str, float]:
        """Return the tests that run the block, with their seconds: first those of its module, then quick files."""
        bit = 1 << all_blocks()[mutant.path, mutant.block]
        chosen = {path: file.tests_of(bit) for path, file in self._files.items() if may_notice(path, mutant)}
        own = f"test_{mutant.path.stem}"
        ordered = sorted(chosen.items(), key=lambda each: (each[0].stem != own, sum(each[1].values())))
        return {test: seconds for _, tests in ordered for test, seconds in tests.items()}


def may_notice(tests: Path, mutant: Mutant) -> bool:
    """Return whether a file of tests counts: mistakes in the core are to be noticed without a server."""
    is_in_core = mutant.path.is_relative_to(ROOT / "cloudid_core")
    return not (is_in_core and tests.is_relative_to(ROOT / "tests" / "servers"))


def digest_of(tests: Path) -> str:
    """Return what the reach of a file of tests depends on most: its own text, and where each block begins."""
    return sha256(tests.read_bytes() + repr([*all_blocks()]).encode()).hexdigest()
