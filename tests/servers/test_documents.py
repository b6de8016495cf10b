"""Printed parts of pages are those of the code; the commands and errors that the operators' page shows exist."""

from __future__ import annotations

import re
from typing import Final

import pytest

from cloudid_core.documents import reference
from cloudid_core.errors import Code
from cloudid_servers.command.documents import DOCS, PAGES, PARTS, printed
from cloudid_servers.command.options import COMMANDS, read_options
from cloudid_servers.provider_simulator.documents import page

TEXT: Final = PAGES[0].read_text()


def test_the_reference_is_printed_from_the_tables() -> None:
    """`docs/reference.md` is what `python -m cloudid_core.documents` prints."""
    assert (DOCS / "reference.md").read_text() == reference()


def test_the_page_about_the_simulator_is_what_it_says_of_itself() -> None:
    """`docs/simulator.md` is what `python -m cloudid_servers.provider_simulator.documents` prints."""
    assert (DOCS / "simulator.md").read_text() == page()


def test_the_printed_parts_are_those_of_the_code() -> None:
    """`python -m cloudid_servers.command.documents` writes them."""
    texts = [path.read_text() for path in PAGES]
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
