"""The runner of pages: what it takes for a command, for output and for a slip of the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from .blocks import parse
from .runner import Command, File, PageIsWrong, Place, Shown, check, is_shown, steps_of

PLACE = Place("http://127.0.0.1:1", "root", "http://127.0.0.1:2", "root token: r00t\nlistening")


def page(body: str, *marks: str, language: str = "console") -> str:
    return "\n".join((*(f"<!-- {mark} -->" for mark in marks), f"```{language}", body, "```", ""))


@pytest.mark.parametrize(
    "text, shown",
    [
        ("$ echo a\na", ("echo a", "a")),
        ("$ echo 'a\nb'\na\nb", ("echo 'a\nb'", "a\nb")),
        ("$ echo a \\\n    b\na b", ("echo a \\\n    b", "a b")),
        ("$ true", ("true", "")),
    ],
)
def test_a_command_ends_where_nothing_is_open(text: str, shown: tuple[str, str]) -> None:
    [command] = steps_of(page(text))
    assert isinstance(command, Command)
    assert (command.text, command.shown) == shown


@pytest.mark.parametrize(
    "shown, came, same",
    [
        ("", "", True),
        ("", "a\n", False),
        ("a", "a\n", True),
        ("a", "", False),
        ("a", "a\nb\n", False),
        ("token: …", "token: s.123\n", True),
        ("token: …", "other: s.123\n", False),
        ("{…}", "{\n}\n", False),
        ("a\n…", "a\nb\nc\n", True),
        ("…\nc", "a\nb\nc\n", True),
        ("a\n…\nc", "a\nb\n", False),
        ("a.c", "abc\n", False),
    ],
)
def test_only_what_is_left_open_may_differ(shown: str, came: str, same: bool) -> None:
    assert is_shown(shown, came) is same


def test_commands_share_a_shell_a_folder_and_the_environment(tmp_path: Path) -> None:
    text = (
        page("one = 1", "file: a.toml", language="toml") + page("$ cat a.toml\none = 1\n$ A=b") + page("$ echo $A\nb")
    )
    check(text + page("$ echo $VAULT_ADDR http://127.0.0.1:8200\nhttp://127.0.0.1:8200 …:1"), PLACE, tmp_path)
    assert [type(step) for step in steps_of(text)] == [File, Command, Command, Command]


@pytest.mark.parametrize(
    "text",
    [
        page("$ echo a\nb"),
        page("$ false"),
        page("$ true", "fails"),
        page("$ exit 3"),
        page("$ if"),
        page("no command"),
        page("a: 1", language="yaml"),
        page("$ true", "mystery"),
        page("$ true", "needs systemd: tests/pages/test_runner.py::test_of_nothing"),
        page("$ cloudid dev\nroot token: other", "the server"),
    ],
)
def test_a_slip_is_noticed(text: str, tmp_path: Path) -> None:
    with pytest.raises(PageIsWrong):
        check(text, PLACE, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        page("$ false", "fails"),
        page("$ cloudid dev\nroot token: …\nlistening", "the server"),
        page("$ halt", "needs systemd: tests/pages/test_runner.py::test_a_slip_is_noticed"),
        page("client ── server", language="text"),
    ],
)
def test_marks_say_what_becomes_of_a_block(text: str, tmp_path: Path) -> None:
    check(text, PLACE, tmp_path)


def test_a_block_in_a_list_is_a_block() -> None:
    [block] = parse("1. Do this:\n\n   <!-- fails -->\n   ```console\n   $ cat 'a\n       b'\n   ```\n")
    assert (block.text, block.marks) == ("$ cat 'a\n    b'\n", {"fails": ""})


def test_a_block_knows_its_line_and_its_marks() -> None:
    [block] = parse("# Title\n\n" + page("$ true", "fails", "file: a b"))
    assert (block.line, block.marks) == (6, {"fails": "", "file": "a b"})
    assert isinstance(steps_of(page("$ x", "the server"))[0], Shown)
