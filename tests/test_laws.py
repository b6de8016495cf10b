"""The laws of the core that no other tool checks.

A law over source text is a function that yields the lines which break it; each is tried on a breach of its own, so that
a law which notices nothing cannot pass. Failures name file and line.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, Final, TypeAlias

import attrs
import msgspec
import pytest

import cloudid_core
import cloudid_servers
from cloudid_core import effects
from cloudid_core.effects import Effect
from cloudid_core.events import MountChanged
from cloudid_core.values.secret import Secret

ROOT: Final = Path(__file__).parent.parent
CORE: Final = ROOT / "cloudid_core"
MODULES: Final = tuple(sorted(CORE.rglob("*.py")))

Law: TypeAlias = Callable[[ast.Module], Iterator[tuple[int, str]]]


def within(nodes: list[ast.stmt]) -> Iterator[ast.AST]:
    """All nodes below, except those of nested functions: these run at another time."""
    pending: list[ast.AST] = list(nodes)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            pending.extend(ast.iter_child_nodes(node))


def no_async_generators(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """An async generator needs an event loop to be closed, so the core has none."""
    for function in ast.walk(tree):
        if isinstance(function, ast.AsyncFunctionDef):
            for node in within(function.body):
                if isinstance(node, ast.Yield):
                    yield node.lineno, "yield in an async def"


def no_async_blocks(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """`async with` and `async for` hide an `await` in their clean-up, so programs use neither."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncWith | ast.AsyncFor):
            yield node.lineno, "async with or async for"
        elif isinstance(node, ast.comprehension) and node.is_async:
            yield node.iter.lineno, "async for in a comprehension"


def no_awaited_clean_up(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Cancellation is a crash: what runs while a program is being closed awaits nothing."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Try | ast.TryStar):
            continue
        bodies = [handler.body for handler in node.handlers if catches_closing(handler)]
        for inner in within([statement for body in (*bodies, node.finalbody) for statement in body]):
            if isinstance(inner, ast.Await):
                yield inner.lineno, "await in a finally or an except that catches the closing of a program"


def catches_closing(handler: ast.ExceptHandler) -> bool:
    """Whether `GeneratorExit`, which closes a program, is caught here."""
    return handler.type is None or any(
        isinstance(node, ast.Name) and node.id in {"BaseException", "GeneratorExit"} for node in ast.walk(handler.type)
    )


MUTABLE_DISPLAYS: Final = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
MUTABLE_CALLS: Final = frozenset({"list", "dict", "set", "bytearray", "defaultdict", "deque", "Counter", "OrderedDict"})


def no_module_state(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Two services in one process share nothing: a module's tables are `Final`, tuples or read-only views."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield node.lineno, "global"
    for statement in tree.body:
        if (
            isinstance(statement, ast.Assign | ast.AnnAssign)
            and is_mutable(statement.value)
            and not is_final(statement)
        ):
            yield statement.lineno, "mutable value of a module"


def is_mutable(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in MUTABLE_CALLS
    return isinstance(value, MUTABLE_DISPLAYS)


def is_final(statement: ast.Assign | ast.AnnAssign) -> bool:
    """`Final` or `Final[...]`, or `__all__`, which tools want to be a list."""
    if isinstance(statement, ast.Assign):
        return [ast.unparse(target) for target in statement.targets] == ["__all__"]
    return re.match(r"(typing\.)?Final\b", ast.unparse(statement.annotation)) is not None


def has_docstring(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every module says in its first line what it is."""
    if not ast.get_docstring(tree):
        yield 1, "no docstring"


BREACHES: Final[Mapping[Law, tuple[str, ...]]] = {
    no_async_generators: ("async def f():\n    yield 1",),
    no_async_blocks: (
        "async def f():\n    async with a: pass",
        "async def f():\n    async for b in a: pass",
        "async def f():\n    return [b async for b in a]",
    ),
    no_awaited_clean_up: (
        "async def f():\n    try: pass\n    finally: await a",
        "async def f():\n    try: pass\n    except BaseException: await a",
        "async def f():\n    try: pass\n    except (ValueError, GeneratorExit): await a",
        "async def f():\n    try: pass\n    except: await a",
    ),
    no_module_state: ("a = []", "a: list[int] = []", "a = {b: b for b in c}", "a = dict()", "def f():\n    global a"),
    has_docstring: ("a = 1",),
}
"""Every law, and sources that break it."""


@pytest.mark.parametrize("law", BREACHES, ids=lambda law: law.__name__)
def test_the_core_keeps_the_law(law: Law) -> None:
    breaches = [
        f"{module.relative_to(ROOT)}:{line}: {what}"
        for module in MODULES
        for line, what in law(ast.parse(module.read_text()))
    ]
    assert not breaches, "\n".join([law.__doc__ or "", *breaches])


@pytest.mark.parametrize("law, source", [(law, source) for law, sources in BREACHES.items() for source in sources])
def test_a_law_notices_its_breach(law: Law, source: str) -> None:
    assert list(law(ast.parse(source)))


def test_laws_let_honest_code_pass() -> None:
    source = '''"""A module."""
__all__ = ["f"]
A: Final = {}
B: Final[Mapping[str, int]] = {}
C = frozenset({1})
D = MappingProxyType({1: 2})
async def f():
    def g():
        yield 1
    try:
        await a
    except ValueError:
        await b
    finally:
        c()
'''
    assert [breach for law in BREACHES for breach in law(ast.parse(source))] == []


TESTED_ELSEWHERE: Final[Mapping[str, str]] = {}
"""Modules of the core (path below `cloudid_core`) without a test module of their own, and why."""


def test_every_module_has_a_test_module() -> None:
    """`cloudid_core/a/b.py` is tested by `tests/core/a/test_b.py`."""
    paths = [module.relative_to(CORE) for module in MODULES if module.name != "__init__.py"]
    wanted = {path: ROOT / "tests" / "core" / path.with_name(f"test_{path.name}") for path in paths}
    missing = [
        f"cloudid_core/{path}:1: {test.relative_to(ROOT)} is missing"
        for path, test in wanted.items()
        if not test.is_file() and path.as_posix() not in TESTED_ELSEWHERE
    ]
    assert not missing, "\n".join(missing)


def test_only_modules_that_exist_are_tested_elsewhere() -> None:
    assert [path for path in TESTED_ELSEWHERE if not (CORE / path).is_file()] == []


VOCABULARY: Final = tuple(
    value
    for value in vars(effects).values()
    if isinstance(value, type) and issubclass(value, Effect) and value is not Effect
)
CANARY: Final = "c4n4ry"


async def program() -> None:
    """A program that carries a secret in its frame."""


def effects_with_secrets() -> tuple[Effect[Any], ...]:
    """One of each effect, with a secret wherever it may carry one."""
    request = effects.HttpRequest(
        "POST", f"https://cloud.test/path?code={CANARY}", {"authorization": CANARY}, CANARY.encode()
    )
    return (
        effects.ReadEntry("key"),
        effects.ReadEntries(("key",)),
        effects.ListKeys("prefix"),
        effects.Commit({"key": 1}, {"key": CANARY.encode()}),
        effects.CallProvider(request, 1.0),
        effects.ReadPlatformToken("resource"),
        effects.Sleep(1.0),
        effects.CompareClocks(),
        effects.Now(),
        effects.RandomBytes(16),
        effects.GenerateKey(),
        effects.ReadFederatedToken("/path"),
        effects.ReadDocument("path"),
        effects.WriteDocument("path", CANARY.encode(), effects.Document(CANARY.encode(), "1")),
        effects.Record(MountChanged(mount_accessor=CANARY, path=CANARY, state=CANARY)),
        effects.ShowMetrics({CANARY: {(CANARY,): [1]}}, "json"),
        effects.Together(()),
        effects.Within(1.0, program()),
        effects.Shared("key", program()),
    )


ANSWERS_WITH_SECRETS: Final = (
    effects.Entry(CANARY.encode(), 1),
    effects.Document(CANARY.encode(), "1"),
    effects.HttpResponse(200, {"set-cookie": CANARY}, CANARY.encode()),
    effects.PlatformToken(Secret(CANARY), 0.0),
)


def test_effects_and_answers_print_no_secret() -> None:
    """Bytes, headers, queries, bodies and audit events stay out of every repr."""
    samples = effects_with_secrets()
    printed = [repr(value) for value in (*samples, *ANSWERS_WITH_SECRETS)]
    for effect in samples:
        if isinstance(effect, effects.Within | effects.Shared):
            effect.program.close()
    assert {type(effect) for effect in samples} == set(VOCABULARY), "an effect without a sample"
    assert [text for text in printed if CANARY in text] == []


@pytest.mark.parametrize("effect", VOCABULARY)
def test_effects_are_frozen_and_slotted(effect: type[Effect[Any]]) -> None:
    """An effect is inert data: it cannot be changed, and nothing can be hung on it."""
    assert effect.__struct_config__.frozen
    assert effect.__dictoffset__ == 0, "not slotted"


SECRET_WORDS: Final = frozenset(
    {"secret", "token", "password", "jwt", "text", "key", "assertion", "body", "form", "headers", "content"}
)
"""A field whose name ends in one of these words may carry a secret."""

NO_SECRETS: Final[Mapping[str, str]] = {
    "Found.key": "the place of an entry of the store",
    "Job.key": "the place of an entry of the store",
    "ReadEntry.key": "the place of an entry of the store",
    "Shared.key": "the name of a program",
    "_Line.key": "a public key",
    "Chain.key": "a public key",
    "Verifier.key": "a public key",
    "Finding.text": "names files, lines and numbers",
    "CommonOptions.content": "which lines a device gets",
    "FileOptions.content": "which lines a device gets",
    "SocketOptions.content": "which lines a device gets",
    "Mount.identity_token_key": "the name of a key",
    "TuneForm.identity_token_key": "the name of a key",
    "Role.key": "the name of a key",
    "Policy.text": "policies are no secrets",
    "Schedule.text": "schedules are no secrets",
    "ServerSettings.tls_key": "the path of a file",
    **{
        f"{form}.{names}_headers": "names of headers"
        for form in ("Mount", "TuneForm")
        for names in ("allowed_response", "passthrough_request")
    },
}
"""Fields that are named like a secret, and why they are none."""


class Anything(str):
    """Stands in for the value of any other field: an empty text that has every attribute and can be called."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Anything:
        return self

    def __call__(self, *arguments: object) -> Anything:
        return self


def classes_with_fields() -> Iterator[type]:
    """Every class of the core and the servers that declares its fields. Skips modules whose libraries are missing."""
    for package in (cloudid_core, cloudid_servers):
        for info in walk_packages(package.__path__, f"{package.__name__}."):
            try:
                module = import_module(info.name)
            except ModuleNotFoundError as missing:
                if (missing.name or "").partition(".")[0] in ("cloudid_core", "cloudid_servers"):
                    raise
                continue
            for value in vars(module).values():
                if isinstance(value, type) and value.__module__ == info.name and annotations_of(value):
                    yield value


def annotations_of(form: type) -> dict[str, str]:
    """The types of the fields of a class by their names; nothing when it does not declare fields."""
    if not (attrs.has(form) or issubclass(form, msgspec.Struct)):
        return {}
    names = form.__struct_fields__ if issubclass(form, msgspec.Struct) else [field.name for field in attrs.fields(form)]
    declared: dict[str, object] = {}
    for base in reversed(form.__mro__):
        declared.update(vars(base).get("__annotations__", {}))
    return {name: str(declared.get(name, "")) for name in names}


def canary_for(annotation: str) -> object:
    """A secret of a field's type; `None` when the type has no place for one."""
    if "Secret" in annotation:
        return Secret(CANARY)
    if not re.search(r"\b(str|bytes|Mapping|Json|object|Any)\b", annotation):
        return None
    return CANARY.encode() if re.match(r"bytes\b", annotation) else CANARY


def printed(form: type, name: str, value: object) -> str:
    """The repr of an instance with a value in one field, made without its constructor's checks."""
    fields = {other: value if other == name else Anything() for other in annotations_of(form)}
    if issubclass(form, msgspec.Struct):
        return repr(form(**fields))
    instance = form.__new__(form)
    for other, content in fields.items():
        object.__setattr__(instance, other, content)
    return repr(instance)


def breaches_of_secrecy(forms: Iterator[type]) -> list[str]:
    return [
        f"{form.__module__}: {form.__qualname__}.{name}"
        for form in forms
        for name, annotation in annotations_of(form).items()
        if name.rpartition("_")[2] in SECRET_WORDS and f"{form.__qualname__}.{name}" not in NO_SECRETS
        if (canary := canary_for(annotation)) is not None and CANARY in printed(form, name, canary)
    ]


def test_no_class_prints_a_secret() -> None:
    """A field that may carry a secret stays out of the repr of its class."""
    assert breaches_of_secrecy(classes_with_fields()) == []


@attrs.frozen
class PrintsItsToken:
    access_token: str


class PrintsItsPassword(msgspec.Struct):
    password: str


def test_a_class_that_prints_a_secret_is_noticed() -> None:
    assert len(breaches_of_secrecy(iter((PrintsItsToken, PrintsItsPassword)))) == 2


def test_only_fields_that_exist_are_no_secrets() -> None:
    fields = {f"{form.__qualname__}.{name}" for form in classes_with_fields() for name in annotations_of(form)}
    assert set(NO_SECRETS) - fields == set()


FOREIGN: Final[Mapping[str, str]] = {
    "the address of a package index": r"pypi\.org|pythonhosted\.org|[-_]index[-_]url|find[-_]links",
    "a path of somebody's machine": r"(?<![\w.}>])/(work|root|home|Users)/\w",
}


def test_no_file_depends_on_where_it_was_made() -> None:
    """A clone works anywhere: no package index, no path of a machine."""
    breaches = [
        f"{path}:{number}: {what}"
        for path in files_of_the_repository()
        for number, line in enumerate((ROOT / path).read_text(errors="replace").splitlines(), 1)
        for what, pattern in FOREIGN.items()
        if re.search(pattern, line)
    ]
    assert not breaches, "\n".join(breaches)


def files_of_the_repository() -> Iterator[Path]:
    """Everything but what tools made."""
    for directory, directories, names in os.walk(ROOT):
        made = {name for name in directories if name.startswith(".") or name in {"__pycache__", "build", "dist"}}
        directories[:] = sorted(set(directories) - (made - {".ci", ".github"}))
        yield from (Path(directory, name).relative_to(ROOT) for name in names if name != ".git")
