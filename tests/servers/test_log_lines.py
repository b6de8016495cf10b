"""The table of the log's lines, the page that is printed from it, and the two forms of a line."""

from __future__ import annotations

import ast
import json
import os
import pty
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import frozen

from cloudid_core import events
from cloudid_core.errors import ProviderProblem
from cloudid_core.events import Event, Problem
from cloudid_servers.logs.form import AUTO, FORMATS, JSON, TERMINAL
from cloudid_servers.logs.lines import COMMON, FAILURE, MEMBERS, SERVER_LINES, core_lines
from cloudid_servers.logs.logs import LEVELS, EventLog, LogFile, describe_error, open_log
from cloudid_servers.settings.settings import read_settings
from tests.reference import log

ROOT: Final = Path(__file__).parents[2]
LINES: Final = {line.event: line for line in SERVER_LINES}
CORE_LINES: Final = {line.event: line for line in core_lines()}
WRITERS: Final = {"log", "_log", "report", "_report", "_warn_of_accepting", "warn_of_accepting", "file", "write"}


@frozen
class Written:
    """A place that writes a line."""

    place: str
    event: str
    level: str
    members: tuple[str, ...]


def written() -> Iterator[Written]:
    """Every call of the servers that writes a line: a log's method, or a method that was handed on."""
    for path in sorted((ROOT / "servers").rglob("*.py")):
        if "provider_simulator" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and (found := line_of(node, f"{path.name}:{node.lineno}")):
                    yield found


def line_of(call: ast.Call, place: str) -> Written | None:
    if not (call.args and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str)):
        return None
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    owner = ast.unparse(function.value).rpartition(".")[2] if isinstance(function, ast.Attribute) else ""
    level = name if name in LEVELS and owner in WRITERS else ""
    if not (level or name in WRITERS) or (not call.keywords and not level):
        return None
    members = [name for keyword in call.keywords for name in ([keyword.arg] if keyword.arg else FAILURE)]
    return Written(place, call.args[0].value, level, tuple(members))


def test_every_line_that_the_servers_write_is_in_the_table_with_its_members() -> None:
    found = list(written())
    assert {each.event for each in found} == set(LINES)
    for each in found:
        line = LINES[each.event]
        assert set(each.members) <= set(line.members), each.place
        assert each.level in ("", *line.level.split(", ")), each.place


def test_every_member_is_explained_and_none_for_nothing() -> None:
    used = {name for line in (*LINES.values(), *CORE_LINES.values()) for name in line.members}
    assert used - {"worker"} == set(MEMBERS)
    assert not set(MEMBERS) & set(COMMON)
    assert {level for line in SERVER_LINES for level in line.level.split(", ")} <= set(LEVELS)


SAMPLES: Final[dict[str, Any]] = {
    "float": 1.5,
    "float | None": 1.5,
    "int": 2,
    "str": "some text",
    "tuple[str, ...]": ("internal_error", "text"),
    "Problem": Problem.of(ProviderProblem(401, "AADSTS7000215", "id")),
    "Problem | None": Problem("ValueError", "", ("a.py:1 f",)),
}
TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "text": str,
    "list of texts": list,
    "integer": int,
    "number": (int, float),
}


CONCRETE: Final = [
    kind
    for kind in vars(events).values()
    if isinstance(kind, type)
    and issubclass(kind, Event)
    and kind.__struct_config__.tag
    and kind not in (Event, events.Progress)
]


@pytest.mark.parametrize("kind", CONCRETE, ids=lambda kind: kind.__name__)
def test_a_line_of_the_core_is_what_the_table_says(kind: type[Event], tmp_path: Path) -> None:
    annotations = {
        name: text for each in reversed(kind.__mro__) for name, text in vars(each).get("__annotations__", {}).items()
    }
    fields = {name: SAMPLES[annotations[name]] for name in kind.__struct_fields__ if name != "audit"}
    descriptor = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    EventLog(LogFile("debug", descriptor))(kind(**fields))
    os.close(descriptor)
    told = json.loads((tmp_path / "log").read_text())
    line = CORE_LINES[told["event"]]
    assert told["level"] in line.level
    assert set(told) - set(COMMON) <= set(line.members)
    assert set(line.members) - set(told) <= set(FAILURE)
    for name, value in told.items():
        assert isinstance(value, TYPES[({**COMMON, **MEMBERS})[name][0]]), name


def test_the_page_is_printed_from_the_table() -> None:
    assert (ROOT / "docs/reference/log.md").read_text() == log.page()


def logged(log_format: str, tmp_path: Path, **facts: Any) -> str:
    descriptor = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    open_log("info", descriptor, log_format).warning("unsafe", **facts)
    os.close(descriptor)
    return (tmp_path / "log").read_text()


@pytest.mark.parametrize("log_format", [JSON, AUTO])
def test_a_log_that_is_a_file_has_json(log_format: str, tmp_path: Path) -> None:
    assert json.loads(logged(log_format, tmp_path, reason="x"))["reason"] == "x"


def test_columns_are_for_people(tmp_path: Path) -> None:
    line = logged(TERMINAL, tmp_path, reason="two words", names=("a", "b"))
    assert line.count("\n") == 1
    assert "{" not in line
    assert "\x1b" not in line, "colours are for terminals"
    for text in ("warning", "unsafe", "reason='two words'", "names="):
        assert text in line


HOSTILE: Final = "\x1b[2J\x1b]0;title\x07\r\nrequest status=200\u202e\ud800"


def test_what_a_client_sends_moves_no_cursor(tmp_path: Path) -> None:
    line = logged(TERMINAL, tmp_path, path=HOSTILE, names=(HOSTILE,))
    assert line[:-1].isprintable()
    assert line.endswith("\n")


@pytest.mark.parametrize("no_colour", [False, True])
def test_a_terminal_gets_columns_with_colours_unless_it_wants_none(
    monkeypatch: pytest.MonkeyPatch, no_colour: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_colour:
        monkeypatch.setenv("NO_COLOR", "1")
    reader, terminal = pty.openpty()
    open_log("info", terminal, AUTO).error("request failed", **describe_error(ValueError()))
    shown = os.read(reader, 4096)
    os.close(terminal)
    os.close(reader)
    assert b"request failed" in shown
    assert b"{" not in shown
    assert (b"\x1b[" in shown) is not no_colour


def test_the_form_is_a_setting() -> None:
    for name in FORMATS:
        assert read_settings({"server": {"log_format": name}}).server.log_format == name
    assert read_settings({}).server.log_format == AUTO
