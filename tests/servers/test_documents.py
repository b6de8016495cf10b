"""Printed parts of pages are those of the code; the commands and errors that the operators' page shows exist."""

from __future__ import annotations

import re
from typing import Final

import click
import pytest

from cloudid_core.errors import Code
from cloudid_servers.cli.main import COMMANDS as LISTED
from cloudid_servers.cli.main import USE, commands
from cloudid_servers.command.documents import DOCS, PAGES, PARTS, printed
from cloudid_servers.provider_simulator.documents import page

TEXT: Final = (DOCS / "reference" / "settings.md").read_text()


def test_the_page_about_the_simulator_is_what_it_says_of_itself() -> None:
    """`docs/reference/simulator.md` is what `python -m cloudid_servers.provider_simulator.documents` prints."""
    assert (DOCS / "reference" / "simulator.md").read_text() == page()


def test_the_printed_parts_are_those_of_the_code() -> None:
    """`python -m cloudid_servers.command.documents` writes them."""
    texts = [path.read_text() for path in PAGES]
    assert [printed(text) for text in texts] == texts
    assert sorted(name for text in texts for name in re.findall(r"<!-- printed: (\w+) -->", text)) == sorted(PARTS)


COMMANDS: Final = re.findall(r"^\| `cloudid (.*?)` \|", TEXT, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_can_be_given(command: str) -> None:
    words = command.split()
    found = commands.get_command(click.Context(commands), words.pop(0))
    while isinstance(found, click.Group):
        found = found.commands[words.pop(0)]
    assert found is not None
    found.make_context("cloudid", words)


def test_every_command_of_an_operator_is_shown() -> None:
    shown = {command.split()[0] for command in COMMANDS}
    assert {listed.name for listed in LISTED if listed.section != USE} <= shown


def test_the_error_codes_exist() -> None:
    shown = set(re.findall(r"(?:code|503) `([a-z_]+)`", TEXT))
    assert shown
    assert shown <= {code.wire for code in Code}
