"""Mistakes that a seed draws: `make mutants`, or `python -m tests.mutants [--seed N] [--count N] [--only NUMBER ...]`.

Each is one change of one expression or statement in a function of the rooms below. The tests of its room and the
simulation run in a forked process in which the function has the mutant's code, up to the first one that fails. What
survives is shown as a difference; `survivors.md` says why the known ones may.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import gc
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from random import Random
from types import CodeType, FunctionType, MappingProxyType
from typing import Final, TypeAlias

import pytest
from attrs import field, frozen

ROOT: Final = Path(__file__).parent.parent.parent
SEED: Final = 1
COUNT: Final = 50
ENOUGH: Final = 0.9
"""The part that must be noticed."""
AT_ONCE: Final = 2
CPU_SECONDS: Final = 400
"""A mutant that computes longer never ends: it is noticed."""
NOTICED: Final = 1
NOT_TRIED: Final = 2
"""How the processes end."""
SIMULATION: Final = tuple(
    f"tests/simulation/test_{name}.py" for name in ("fences", "random", "meanwhile", "exhaustive")
)
OPTIONS: Final = ("-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not tools and not long")
ROOMS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = MappingProxyType(
    {
        "journal": (
            "cloudid_core/background/journal.py",
            ("tests/core/background", "tests/core/secrets_engine/test_credentials.py"),
        ),
        "leases": (
            "cloudid_core/leases/*.py",
            ("tests/core/leases", "tests/core/system/test_leases.py", "tests/core/system/test_retiring.py"),
        ),
        "rotation": ("cloudid_core/rotation/*.py", ("tests/core/rotation", "tests/core/provider/test_identities.py")),
        "tokens": (
            "cloudid_core/tokens/*.py",
            (
                "tests/core/tokens",
                "tests/core/token_store",
                "tests/core/test_wrapping.py",
                "tests/core/store/test_damaged.py",
            ),
        ),
    }
)
"""The modules of each, and its tests."""

Mutation: TypeAlias = Callable[[ast.AST], ast.AST | None]
"""What becomes of a node; `None`: it is none of those that this mutation changes."""

OPPOSITES: Final[Mapping[type[ast.AST], type[ast.AST]]] = MappingProxyType(
    {
        ast.Lt: ast.LtE,
        ast.LtE: ast.Lt,
        ast.Gt: ast.GtE,
        ast.GtE: ast.Gt,
        ast.Eq: ast.NotEq,
        ast.NotEq: ast.Eq,
        ast.In: ast.NotIn,
        ast.NotIn: ast.In,
        ast.Is: ast.IsNot,
        ast.IsNot: ast.Is,
        ast.And: ast.Or,
        ast.Or: ast.And,
        ast.Add: ast.Sub,
        ast.Sub: ast.Add,
    }
)


def another_operator(node: ast.AST) -> ast.AST | None:
    opposite = OPPOSITES.get(type(node))
    return opposite() if opposite else None


def another_value(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        return ast.Constant(not node.value if isinstance(node.value, bool) else node.value + 1)
    return None


def no_negation(node: ast.AST) -> ast.AST | None:
    return node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) else None


def half_of_a_union(node: ast.AST) -> ast.AST | None:
    return node.left if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) else None


def no_condition(node: ast.AST) -> ast.AST | None:
    return ast.If(ast.Constant(True), node.body, node.orelse) if isinstance(node, ast.If) else None


def no_call(node: ast.AST) -> ast.AST | None:
    is_done = isinstance(node, ast.Expr) and isinstance(node.value, ast.Await | ast.Call)
    return ast.Pass() if is_done or isinstance(node, ast.Continue | ast.Break) else None


def nothing_spread(node: ast.AST) -> ast.AST | None:
    """`{**a, **b}` without its first part."""
    is_spread = isinstance(node, ast.Dict) and len(node.keys) > 1 and node.keys[0] is None
    return ast.Dict(node.keys[1:], node.values[1:]) if isinstance(node, ast.Dict) and is_spread else None


MUTATIONS: Final[tuple[Mutation, ...]] = (
    another_operator,
    another_value,
    no_negation,
    half_of_a_union,
    no_condition,
    no_call,
    nothing_spread,
)


@frozen
class Mutant:
    """One mistake: in the n-th node of a module."""

    room: str
    path: Path
    node: int
    mutation: Mutation = field(repr=False)

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)} {self.mutation.__name__} at node {self.node}"

    @property
    def tree(self) -> ast.Module:
        tree = _Change(self.node, self.mutation).visit(ast.parse(self.path.read_text()))
        assert isinstance(tree, ast.Module)
        return tree

    @property
    def difference(self) -> str:
        before, after = (ast.unparse(tree).splitlines() for tree in (ast.parse(self.path.read_text()), self.tree))
        name, mutation = str(self.path.relative_to(ROOT)), self.mutation.__name__
        return "\n".join(difflib.unified_diff(before, after, name, mutation, n=2, lineterm=""))

    def take_effect(self) -> None:
        """Give every function of the module the mutant's code. Raises `LookupError` where there is none."""
        codes = dict(_codes(compile(self.tree, str(self.path), "exec", dont_inherit=True)))
        gc.unfreeze()  # the collector does not list what is frozen
        functions = [each for each in gc.get_objects() if isinstance(each, FunctionType)]
        changed = [each for each in functions if _key(each.__code__, self.path) in codes]
        if not changed:
            raise LookupError(f"no function of {self.path} is loaded")
        for function in changed:
            function.__code__ = codes[_key(function.__code__, self.path)]


def _key(code: CodeType, path: Path) -> tuple[str, int]:
    """What `_codes` has for it; for the code of another file something that is not there."""
    return (code.co_qualname, code.co_firstlineno) if code.co_filename == str(path) else ("", 0)


class _Change(ast.NodeTransformer):
    def __init__(self, node: int, mutation: Mutation) -> None:
        self.left, self.mutation = node, mutation

    def visit(self, node: ast.AST) -> ast.AST:
        self.left -= 1
        if self.left == -1:
            changed = self.mutation(node)
            assert changed is not None
            return ast.fix_missing_locations(ast.copy_location(changed, node))
        return super().generic_visit(node)


def _codes(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield (each.co_qualname, each.co_firstlineno), each
            yield from _codes(each)


def nodes(tree: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """All nodes in the order in which they are visited, and whether each is in the body of a function."""

    def walk(node: ast.AST, is_inside: bool) -> Iterator[tuple[ast.AST, bool]]:
        yield node, is_inside
        for name, value in ast.iter_fields(node):
            inside = is_inside or (name == "body" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from walk(child, inside)

    return walk(tree, is_inside=False)


def mutants_of(room: str) -> list[Mutant]:
    """All that there are."""
    return [
        Mutant(room, path, number, mutation)
        for path in sorted(ROOT.glob(ROOMS[room][0]))
        for number, (node, is_inside) in enumerate(nodes(ast.parse(path.read_text())))
        for mutation in MUTATIONS
        if is_inside and mutation(node) is not None
    ]


def draw(seed: int, count: int) -> list[Mutant]:
    """As many of each room."""
    dice = Random(seed)
    shares = [(room, (count + number) // len(ROOMS)) for number, room in enumerate(ROOMS)]
    return [mutant for room, share in shares for mutant in dice.sample(mutants_of(room), share)]


class Trial:
    """Runs the collected tests against each mutant, in processes of their own."""

    def __init__(self, mutants: list[Mutant]) -> None:
        self.waiting = list(mutants)
        self.running: dict[int, tuple[Mutant, float]] = {}
        self.survivors: list[Mutant] = []
        self.noticed = 0
        self.failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or (report.nodeid if report.failed else "")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        session.items.sort(key=lambda item: item.nodeid.startswith(SIMULATION[2:]))  # what takes longest comes last
        while self.waiting or self.running:
            while self.waiting and len(self.running) < AT_ONCE:
                self._start(self.waiting.pop(0), session)
            time.sleep(0.05)
            for process in list(self.running):
                self._look_at(process)
        return True

    def _start(self, mutant: Mutant, session: pytest.Session) -> None:
        sys.stdout.flush()
        if process := os.fork():
            self.running[process] = mutant, time.monotonic()
            return
        try:
            session.config.pluginmanager.unregister(name="terminalreporter")
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
            mutant.take_effect()
            for item, following in zip_longest(session.items, session.items[1:]):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self.failed:
                    os._exit(NOTICED)
            os._exit(0)
        finally:
            os._exit(NOT_TRIED)

    def _look_at(self, process: int) -> None:
        mutant, began = self.running[process]
        ended, status = os.waitpid(process, os.WNOHANG)
        if not ended:
            return
        del self.running[process]
        said, seconds = "noticed", time.monotonic() - began
        if os.waitstatus_to_exitcode(status) == NOT_TRIED:
            said = "not tried"
        elif status == 0:
            said = "survived"
            self.survivors.append(mutant)
        self.noticed += said == "noticed"
        sys.stdout.write(f"{said} in {seconds:.0f} s: {mutant}\n")
        sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--only", type=int, nargs="*", help="the numbers of those that are tried")
    options = parser.parse_args()
    drawn = draw(options.seed, options.count)
    drawn = [drawn[number] for number in options.only] if options.only else drawn
    survivors, noticed = [], 0
    for room, (_, tests) in ROOMS.items():
        trial = Trial([mutant for mutant in drawn if mutant.room == room])
        if trial.waiting:
            pytest.main(
                ["-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not tools and not long", *tests, *SIMULATION],
                [trial],
            )
            survivors += trial.survivors
            noticed += trial.noticed
    for survivor in survivors:
        sys.stdout.write(f"\n{survivor.difference}\n")
    untried = len(drawn) - len(survivors) - noticed
    sys.stdout.write(f"\n{noticed} of {len(drawn)} mutants are noticed, {untried} could not be tried\n")
    return noticed < ENOUGH * len(drawn) or untried > 0


if __name__ == "__main__":
    sys.exit(main())
