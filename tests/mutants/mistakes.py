"""Mistakes that a seed draws: each is one change of one expression or statement in a function."""

from __future__ import annotations

import ast
import difflib
import gc
import importlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from random import Random
from types import CodeType, FunctionType, MappingProxyType
from typing import Final, TypeAlias

from attrs import field, frozen

from tests.servers.warm import ALSO_IMPORTED

ROOT: Final = Path(__file__).parent.parent.parent

PACKAGES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "journal": ("cloudid_core/background/journal.py",),
        "leases": ("cloudid_core/leases/*.py",),
        "rotation": ("cloudid_core/rotation/*.py",),
        "tokens": ("cloudid_core/tokens/*.py", "cloudid_core/token_store/*.py", "cloudid_core/wrapping.py"),
        "secrets_engine": ("cloudid_core/secrets_engine/*.py",),
        "auth_method": ("cloudid_core/auth_method/*.py",),
        "policies": ("cloudid_core/policies/*.py",),
        "quotas": ("cloudid_core/quotas/*.py",),
        "dispatch": ("cloudid_core/dispatch/*.py", "cloudid_core/mounts.py"),
        "system": ("cloudid_core/system/*.py",),
        "audit": ("cloudid_core/audit/*.py", "cloudid_servers/audit/*.py"),
        "client": ("cloudid_servers/client/*.py",),
        "page": ("cloudid_servers/ui/__init__.py",),
        "machine": ("cloudid_servers/machine/*.py",),
        "http1": ("cloudid_servers/http1/*.py",),
    }
)
"""Every package that a security property rests on, and the patterns of its files."""

INHERITED: Final = "tests.mutants.inherited"
"""The module that changes processes which the tests start."""

MISTAKE: Final = "MISTAKE"
"""Environment variable that describes the mutant to processes that the tests start."""

Mutation: TypeAlias = Callable[[ast.AST], ast.AST | None]
"""Return what becomes of a node, or `None` if this mutation does not change such a node."""

Block: TypeAlias = list[ast.stmt]
"""Statements of which all run if the first one does, unless one of them raises or returns."""

TYPES: Final = {"annotation", "returns"}
"""Fields of nodes that are types: they change nothing when the program runs."""

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
    line: int
    block: int
    """The line where its block begins, by which `reach` finds the tests that run it."""
    mutation: Mutation = field(repr=False)

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line} {self.mutation.__name__}"

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
        """Change the functions of this process. Raises `LookupError` if there are none."""
        if not replace_functions(codes_of(self.path, self.tree)):
            raise LookupError(f"no function of {self.path} is loaded")

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables by which the processes that tests start are changed too."""
        return {ALSO_IMPORTED: INHERITED, MISTAKE: json.dumps([str(self.path), self.node, self.mutation.__name__])}

    @classmethod
    def of(cls, text: str) -> Mutant:
        """Return the mutant that another process describes in `MISTAKE`."""
        path, node, name = json.loads(text)
        return cls("", Path(path), node, 0, 0, next(each for each in MUTATIONS if each.__name__ == name))


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


Codes: TypeAlias = Mapping[tuple[str, str, int], CodeType]
"""Code by the file, the qualified name and the first line of its function."""


def codes_of(path: Path, tree: ast.Module) -> Codes:
    """Compile the module. It is imported as it is, so that there are functions to be replaced."""
    if path.is_relative_to(ROOT):
        importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
    codes = [*_codes(compile(tree, str(path), "exec", dont_inherit=True))]
    times = Counter(key for key, _ in codes)
    return {key: code for key, code in codes if times[key] == 1}


def replace_functions(codes: Codes) -> int:
    """Give each function that there is a code for this code. Return how many there are."""
    gc.unfreeze()  # the collector does not list what is frozen
    changed = 0
    for function in [each for each in gc.get_objects() if isinstance(each, FunctionType)]:
        if replacement := codes.get(_key(function.__code__)):
            function.__code__ = replacement
            changed += 1
    return changed


def _key(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> Iterator[tuple[tuple[str, str, int], CodeType]]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield _key(each), each
            yield from _codes(each)


def nodes(tree: ast.AST) -> Iterator[tuple[ast.AST, Block | None]]:
    """All nodes in the order in which they are visited, each with the block of a function that it is in.

    `None`: the node is outside of functions, or is a type.
    """

    def walk(node: ast.AST, block: Block | None) -> Iterator[tuple[ast.AST, Block | None]]:
        yield node, block
        for name, value in ast.iter_fields(node):
            children = value if isinstance(value, list) else [value]
            inner = None if name in TYPES else block
            if children and isinstance(children[0], ast.stmt) and (block or _is_body(node, name)):
                inner = children
            for child in children:
                if isinstance(child, ast.AST):
                    yield from walk(child, None if _changes_nothing(node, child) else inner)

    return walk(tree, None)


def _is_body(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and name == "body"


def _changes_nothing(node: ast.AST, child: ast.AST) -> bool:
    """Return whether a part of a node is a type, or decides only whether a mistake of ours is found at once."""
    match node:
        case ast.Call(func=ast.Name("cast"), args=[first, *_]):
            return child is first
        case ast.Call(func=ast.Name("zip")):
            return isinstance(child, ast.keyword)
    return False


def paths_of(package: str) -> list[Path]:
    """The modules of a package; a `__main__` has no functions."""
    found = [path for pattern in PACKAGES[package] for path in sorted(ROOT.glob(pattern))]
    return [path for path in found if path.stem != "__main__"]


@cache
def mutants_of(package: str) -> list[Mutant]:
    """All that there are."""
    return [
        Mutant(package, path, number, line, block[0].lineno, mutation)
        for path in paths_of(package)
        for number, line, node, block in _with_lines(ast.parse(path.read_text()))
        for mutation in MUTATIONS
        if block and mutation(node) is not None
    ]


def _with_lines(tree: ast.Module) -> Iterator[tuple[int, int, ast.AST, Block | None]]:
    """Each node with its number and its line; an operator has that of the node before it."""
    line = 0
    for number, (node, block) in enumerate(nodes(tree)):
        line = getattr(node, "lineno", line)
        yield number, line, node, block


def draw(seed: int, count: int) -> list[Mutant]:
    """Draw as many of each package."""
    dice = Random(seed)
    shares = [(name, (count + number) // len(PACKAGES)) for number, name in enumerate(PACKAGES)]
    return [mutant for name, share in shares for mutant in dice.sample(mutants_of(name), share)]
