"""Printed parts of pages are those of the code; the commands and errors that the operators' page shows exist."""

from __future__ import annotations

import re
from typing import Final

import pytest

from cloudid_core.errors import Code
from cloudid_servers.command.documents import PAGES, PARTS, printed
from cloudid_servers.command.options import COMMANDS, read_options

TEXT: Final = PAGES[0].read_text()


def test_the_printed_parts_are_those_of_the_code() -> None:
    """`python -m cloudid_servers.command.documents` writes them."""
    texts = [page.read_text() for page in PAGES]
    assert [printed(text) for text in texts] == texts
    assert sorted(name for text in texts for name in re.findall(r"<!-- printed: (\w+) -->", text)) == sorted(PARTS)


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
