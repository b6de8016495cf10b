"""The operators' page: its tables are those of the code, and the commands and errors that it shows exist."""

from __future__ import annotations

import re
from typing import Final

import pytest

from cloudid_core.errors import Code
from cloudid_servers.command.documents import PAGE, PARTS, printed
from cloudid_servers.command.options import COMMANDS, read_options

from .running import ROOT

TEXT: Final = PAGE.read_text()


def test_the_tables_are_printed_from_the_code() -> None:
    """`python -m cloudid_servers.command.documents` writes them."""
    assert printed(TEXT) == TEXT
    assert set(re.findall(r"<!-- printed: (\w+) -->", TEXT)) == set(PARTS)


@pytest.mark.parametrize("command", re.findall(r"^\| `python -m cloudid_servers\.SERVER (.*?)` \|", TEXT, re.MULTILINE))
def test_the_commands_can_be_given(command: str) -> None:
    read_options("server", command.split())


def test_every_command_is_shown() -> None:
    for command in COMMANDS:
        assert re.search(rf"servers\.SERVER {command} ", TEXT) or command == "serve"


def test_the_error_codes_exist() -> None:
    shown = set(re.findall(r"(?:code|503) `([a-z_]+)`", TEXT))
    assert shown
    assert shown <= {code.wire for code in Code}


def test_every_warning_and_error_of_the_servers_is_explained() -> None:
    sources = [path.read_text() for path in (ROOT / "servers").rglob("*.py")]
    events = {event for source in sources for event in re.findall(r'log\.(?:warning|error)\(\s*"([^"]+)"', source)}
    assert "worker died" in events
    assert [event for event in sorted(events) if f"`{event}`" not in TEXT] == []
