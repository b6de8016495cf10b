"""Waiting, and the law that no test has a short time limit of its own: on a busy machine it would fail for nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests import waiting
from tests.waiting import wait_until

FOLDER: Final = Path(__file__).parent
OF_HTTPX: Final = ("get", "post", "put", "patch", "delete", "request", "stream", "Client", "AsyncClient")
VIRTUAL: Final = ("core", "contract", "properties", "simulation")
"""Folders whose tests pass no time but that of a deterministic world."""

CLOCKS: Final = ("monotonic", "perf_counter", "time")


def short_waits(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The lines of a test module that make it depend on how fast the machine is."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(keywords=given):
                named = {keyword.arg: keyword.value for keyword in given}
                if isinstance(named.get("timeout"), ast.Constant):
                    yield node.lineno, "a time limit that is not PATIENCE"
                if is_of_httpx(node.func) and not named.keys() & {None, "timeout", "transport"}:
                    yield node.lineno, "httpx without **PATIENT waits for five seconds only"
            case ast.Compare(
                left=ast.BinOp(left=ast.Call(func=ast.Attribute(attr=clock)), op=ast.Sub()),
                ops=[ast.Lt() | ast.LtE()],
                comparators=[ast.Constant()],
            ) if clock in CLOCKS:
                yield node.lineno, "a bound of elapsed time"


def is_of_httpx(function: ast.expr) -> bool:
    match function:
        case ast.Attribute(value=ast.Name(id="httpx"), attr=name):
            return name in OF_HTTPX
    return False


def test_no_test_has_a_short_time_limit_of_its_own() -> None:
    modules = {path: path.relative_to(FOLDER) for path in sorted(FOLDER.rglob("*.py"))}
    breaches = [
        f"tests/{name}:{line}: {what}"
        for path, name in modules.items()
        if name.parts[0] not in VIRTUAL
        for line, what in short_waits(ast.parse(path.read_text()))
    ]
    assert not breaches, "\n".join(breaches)


@pytest.mark.parametrize(
    "source",
    [
        "process.wait(timeout=10)",
        "httpx.get(url)",
        "httpx.Client(base_url=url, trust_env=False)",
        "assert time.monotonic() - started < 2.0",
    ],
)
def test_a_short_time_limit_is_noticed(source: str) -> None:
    assert [line for line, _ in short_waits(ast.parse(source))] == [1]


@pytest.mark.parametrize(
    "source",
    [
        "process.wait(timeout=PATIENCE)",
        "httpx.get(url, **PATIENT)",
        "client.get(url)",
        "assert time.monotonic() - started >= 1.0",
    ],
)
def test_patience_is_no_short_time_limit(source: str) -> None:
    assert list(short_waits(ast.parse(source))) == []


def test_waiting_answers_what_the_condition_says() -> None:
    answers = iter((0, None, "", "there"))
    assert wait_until(lambda: next(answers)) == "there"


def test_waiting_for_what_never_comes_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PATIENCE", 0.0)
    with pytest.raises(AssertionError, match="hangs"):
        wait_until(lambda: False)
