"""Output: tables for people, JSON for programs, and nothing that steers a terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import termios
from typing import Any, Final

import click
import pytest
from click.testing import CliRunner

from cloudid_servers.terminal import Format, Output, printable, with_output
from tests.waiting import PATIENCE

ROWS: Final[list[dict[str, Any]]] = [
    {"name": "a", "seconds": 5, "tags": ["x"], "more": 1},
    {"name": "longer", "seconds": None, "tags": [], "more": 2},
]


@click.command()
@with_output()
def data(output: Output) -> None:
    output.rows(ROWS, ("name", "seconds", "tags"))
    output.note("read along")


@click.command()
@with_output(Format.TABLE)
def report(output: Output) -> None:
    output.record({"name": "a\x1b[2J\nb", "is_good": True})


def test_a_pipe_gets_json_with_every_member() -> None:
    ran = CliRunner().invoke(data)
    assert (json.loads(ran.stdout), ran.stderr) == (ROWS, "")


def test_a_person_gets_a_table_with_the_chosen_columns() -> None:
    ran = CliRunner().invoke(data, ["--format", "table"])
    assert ran.stdout.splitlines() == ["name    seconds  tags", "a       5        x", "longer"]
    assert ran.stderr == "read along\n"


def test_a_person_gets_words_in_place_of_a_table_without_rows(capsys: pytest.CaptureFixture[str]) -> None:
    for shown in Format:
        Output(shown).rows([], ("name",), "nothing differs")
    assert capsys.readouterr().out == "nothing differs\n[]\n"


def in_terminal(columns: int, code: str, **variables: str) -> list[str]:
    """What some Python shows in a terminal of that width."""
    ours, theirs = os.openpty()
    with os.fdopen(ours, "rb") as shown, os.fdopen(theirs, "wb") as terminal:
        termios.tcsetwinsize(terminal, (24, columns))
        inherited = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        environment = {**inherited, "NO_COLOR": "1", **variables}
        subprocess.run([sys.executable, "-c", code], stdout=terminal, env=environment, timeout=PATIENCE, check=True)
        return os.read(shown.fileno(), 1 << 16).decode().splitlines()


PROGRESS: Final = """
import os; os.dup2(1, 2)
from cloudid_servers.cli.connection import tell
from cloudid_servers.terminal import Failed, show_progress, with_reasons
def fail():
    show_progress("2 of 2 leases are left")
    raise Failed("gone")
show_progress("not yet")
tell("a note")
with_reasons(fail)
"""


def test_what_is_told_stands_behind_no_progress() -> None:
    """The line of progress is cleared before."""
    shown = "\n".join(in_terminal(80, PROGRESS)).replace("\033[K", "")
    assert shown.split("\n") == ["", "not yet", "a note", "", "2 of 2 leases are left", "error: gone"]


WIDE: Final = """
from cloudid_servers.terminal import table
rows = [("✗", "group", "one two three four five six seven", "x" * 30), ("✓", "name", "web", "web")]
print(table(rows, ("", "check", "expected", "found")))
"""


def test_a_table_fits_into_a_narrow_terminal() -> None:
    assert in_terminal(42, WIDE) == [
        "   check  expected         found",
        "✗  group  one two three    xxxxxxxxxxxxxxx",
        "          four five six    xxxxxxxxxxxxxxx",
        "          seven",
        "✓  name   web              web",
    ]
    assert in_terminal(200, WIDE)[1:] == [
        f"✗  group  one two three four five six seven  {'x' * 30}",
        "✓  name   web                                web",
    ]
    assert max(map(len, in_terminal(10, WIDE))) == 1 + 5 + 12 + 12 + 6, "too narrow for a table"


def test_the_members_of_a_thing_fit_into_a_narrow_terminal() -> None:
    code = "from cloudid_servers.terminal import Format, Output; Output(Format.TABLE).record"
    thing = {"token": "x" * 30, "policy": 'path "cloud/creds/*" {\n  capabilities = ["read"]\n}\n'}
    assert in_terminal(28, f"{code}({thing})") == [
        f"token   {'x' * 30}",  # so that it can be copied
        'policy  path "cloud/creds/*"',
        "        {",
        "          capabilities =",
        '        ["read"]',
        "        }",
    ]


def test_a_report_is_for_people_in_a_pipe_too() -> None:
    ran = CliRunner().invoke(report)
    assert ran.stdout.splitlines() == ["name     a\\x1b[2J", "         b", "is_good  yes"]
    assert json.loads(CliRunner().invoke(report, ["--format", "json"]).stdout)["is_good"] is True


@pytest.mark.parametrize("letter", ["\x1b", "\x00", "\r", "\x9b", "\u202e", "\u2028"])
def test_what_steers_a_terminal_is_shown_as_an_escape(letter: str) -> None:
    assert printable(f"a{letter}b").isprintable()
