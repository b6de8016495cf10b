"""The functions of the core that one login passes through, in the order in which they begin.

    python -m benchmarks.walk [--refused] [--all]

A warm login that is admitted, or with `--refused` one whose form names another machine. A function of one statement is
read where it is called, so only longer ones count, unless `--all` lists them too. The store in memory and the loop that
drives it here are the host's.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

from attrs import frozen
from msgspec.structs import replace

import cloudid_core
from cloudid_core import run_now

from .bytecodes import traced
from .fleet import open_login, raise_fleet

CORE: Final = Path(cloudid_core.__file__).parent
OF_THE_HOST: Final = frozenset({"run_now", "MemoryStore.commit", "MemoryStore.read_all"})
MOST_FUNCTIONS: Final = 51
MOST_PACKAGES: Final = 15
"""The most that a reader of an admitted login should have to follow. Lower them when a login gets shorter."""


@frozen
class Stop:
    """A function that was called."""

    module: str
    name: str
    statements: int

    @property
    def package(self) -> str:
        return self.module.partition("/")[0].removesuffix(".py")


def walk(*, is_refused: bool = False) -> list[Stop]:
    """Return the functions that a login calls, each once."""
    fleet = raise_fleet(2)
    service, host = open_login(fleet, fact_max_age=86_400)
    requests = [member.request for member in fleet.members]
    other_name = requests[0].body.replace(b"web-00000", b"web-00001")
    wrong = replace(requests[0], body=other_name)

    def log_in(number: int) -> None:
        request = wrong if is_refused and number else requests[0]
        answer = run_now(service.work_on(service.begin(request)), host)
        assert answer.status == (403 if request is wrong else 200), answer.body

    log_in(0)
    codes = called_by(lambda: log_in(1))
    stops = [_stop(code) for code in codes if Path(code.co_filename).is_relative_to(CORE)]
    return [stop for stop in stops if stop.name not in OF_THE_HOST]


def called_by(work: Callable[[], object]) -> list[CodeType]:
    """Return the code of every Python function that some work calls, in the order of the first calls."""
    codes: dict[CodeType, None] = {}

    def note(frame: FrameType, event: str, argument: Any) -> None:  # by returning `None`, it sees only calls
        codes.setdefault(frame.f_code)

    traced(work, note)
    return list(codes)


def _stop(code: CodeType) -> Stop:
    module = Path(code.co_filename).relative_to(CORE).as_posix()
    return Stop(module, code.co_qualname, _statements(code.co_filename).get(code.co_firstlineno, 1))


@cache
def _statements(path: str) -> dict[int, int]:
    """Count the statements of the functions of a file, without docstrings, by the line where each function starts."""
    found: dict[int, int] = {}
    for node in ast.walk(ast.parse(Path(path).read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            body = node.body[ast.get_docstring(node) is not None :]
            found[first] = sum(isinstance(each, ast.stmt) for part in body for each in ast.walk(part))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.walk", description=__doc__.split("\n")[0])
    parser.add_argument("--refused", action="store_true", help="a login that is refused")
    parser.add_argument("--all", action="store_true", help="functions of one statement too")
    options = parser.parse_args()
    stops = walk(is_refused=options.refused)
    for stop in stops:
        if options.all or stop.statements > 1:
            print(f"{stop.module:32} {stop.name}")
    longer = [stop for stop in stops if stop.statements > 1]
    packages = {stop.package for stop in stops}
    print(f"{len(longer)} functions of several statements, {len(stops)} in all, {len(packages)} packages")


if __name__ == "__main__":
    main()
