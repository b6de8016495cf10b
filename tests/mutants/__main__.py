"""Mistakes that a seed draws: `make mutants`, or `python -m tests.mutants [--seed N] [--count N] [--only NUMBER ...]`.

Each is one change of one expression or statement in a function of the packages below. The tests of the package run
in a forked process in which the function has the mutant's code, up to the first one that fails. A survivor is shown
as a difference; `survivors.md` says why the known ones are equivalent.
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
SEED: Final = 43
COUNT: Final = 150
ENOUGH: Final = 0.95
"""The part that must be noticed."""
AT_ONCE: Final = 2
CPU_SECONDS: Final = 400
"""A mutant that computes longer never ends: it is noticed."""
NOTICED: Final = 1
NOT_TRIED: Final = 2
"""How the processes end."""


@frozen
class Package:
    """`modules`: patterns of files that are mutated. `tests`: what must notice; `is_simulated`: the simulation too."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    is_simulated: bool = False


SIMULATION: Final = tuple(
    f"tests/simulation/test_{name}.py" for name in ("fences", "random", "meanwhile", "exhaustive")
)
OPTIONS: Final = ("-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not tools and not long")
PACKAGES: Final[Mapping[str, Package]] = MappingProxyType(
    {
        "journal": Package(
            ("cloudid_core/background/journal.py",),
            ("tests/core/background", "tests/core/secrets_engine/test_credentials.py"),
            is_simulated=True,
        ),
        "leases": Package(
            ("cloudid_core/leases/*.py",),
            ("tests/core/leases", "tests/core/system/test_leases.py", "tests/core/system/test_retiring.py"),
            is_simulated=True,
        ),
        "rotation": Package(
            ("cloudid_core/rotation/*.py",),
            ("tests/core/rotation", "tests/core/provider/test_identities.py"),
            is_simulated=True,
        ),
        "tokens": Package(
            ("cloudid_core/tokens/*.py", "cloudid_core/token_store/*.py", "cloudid_core/wrapping.py"),
            (
                "tests/core/tokens",
                "tests/core/token_store",
                "tests/core/test_wrapping.py",
                "tests/core/store/test_damaged.py",
            ),
            is_simulated=True,
        ),
        "secrets_engine": Package(
            ("cloudid_core/secrets_engine/*.py",),
            (
                "tests/core/secrets_engine",
                "tests/properties/test_ceilings.py",
                "tests/properties/test_self_targets.py",
                "tests/contract/test_engine.py",
                "tests/contract/test_engine_objects.py",
            ),
            is_simulated=True,
        ),
        "auth_method": Package(
            ("cloudid_core/auth_method/*.py",),
            (
                "tests/core/auth_method",
                "tests/core/verify",
                "tests/contract",
                "tests/properties/test_login_oracle.py",
                "tests/properties/test_never_again.py",
            ),
        ),
        "policies": Package(("cloudid_core/policies/*.py",), ("tests/core/policies", "tests/properties")),
        "quotas": Package(("cloudid_core/quotas/*.py",), ("tests/core/quotas",)),
        "dispatch": Package(
            ("cloudid_core/dispatch/*.py", "cloudid_core/mounts.py"),
            ("tests/core/dispatch", "tests/core/test_mounts.py", "tests/core/test_service.py", "tests/wire"),
        ),
        "system": Package(("cloudid_core/system/*.py",), ("tests/core/system", "tests/contract", "tests/wire")),
        "audit": Package(
            ("cloudid_core/audit/*.py", "cloudid_servers/audit/*.py"),
            ("tests/core/audit", "tests/core/dispatch", "tests/servers/audit"),
        ),
        "client": Package(("cloudid_servers/client/*.py",), ("tests/servers/client",)),
        "page": Package(("cloudid_servers/ui/__init__.py",), ("tests/ui", "tests/servers/test_app.py")),
        "machine": Package(("cloudid_servers/machine/*.py",), ("tests/servers",)),
        "http1": Package(
            ("cloudid_servers/http1/*.py",),
            ("tests/servers/test_reader.py", "tests/servers/test_connections.py", "tests/servers/test_bodies.py"),
        ),
    }
)
"""Every package that a security property rests on."""

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


def one_member_less(node: ast.AST) -> ast.AST | None:
    """Return a list, tuple, set or dictionary of several members without its last one."""
    match node:
        case ast.List(elts=[_, _, *_], ctx=ast.Load()):
            return ast.List(node.elts[:-1], ast.Load())
        case ast.Tuple(elts=[_, _, *_], ctx=ast.Load()):
            return ast.Tuple(node.elts[:-1], ast.Load())
        case ast.Set(elts=[_, _, *_]):
            return ast.Set(node.elts[:-1])
        case ast.Dict(keys=[_, _, *_]):
            return ast.Dict(node.keys[:-1], node.values[:-1])
    return None


MUTATIONS: Final[tuple[Mutation, ...]] = (
    another_operator,
    another_value,
    no_negation,
    half_of_a_union,
    no_condition,
    no_call,
    nothing_spread,
    one_member_less,
)


@frozen
class Mutant:
    """One mistake: in the n-th node of a module."""

    package: str
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


def mutants_of(package: str) -> list[Mutant]:
    """All that there are."""
    return [
        Mutant(package, path, number, mutation)
        for pattern in PACKAGES[package].modules
        for path in sorted(ROOT.glob(pattern))
        for number, (node, is_inside) in enumerate(nodes(ast.parse(path.read_text())))
        for mutation in MUTATIONS
        if is_inside and mutation(node) is not None
    ]


def draw(seed: int, count: int) -> list[Mutant]:
    """Draw as many of each package."""
    dice = Random(seed)
    shares = [(name, (count + number) // len(PACKAGES)) for number, name in enumerate(PACKAGES)]
    return [mutant for name, share in shares for mutant in dice.sample(mutants_of(name), share)]


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
    for name, package in PACKAGES.items():
        trial = Trial([mutant for mutant in drawn if mutant.package == name])
        if trial.waiting:
            pytest.main([*OPTIONS, *package.tests, *(SIMULATION if package.is_simulated else ())], [trial])
            survivors += trial.survivors
            noticed += trial.noticed
    for survivor in survivors:
        sys.stdout.write(f"\n{survivor.difference}\n")
    untried = len(drawn) - len(survivors) - noticed
    sys.stdout.write(f"\n{noticed} of {len(drawn)} mutants are noticed, {untried} could not be tried\n")
    return noticed < ENOUGH * len(drawn) or untried > 0


if __name__ == "__main__":
    sys.exit(main())
