"""The program of one server: `python -m cloudid_servers.<server> [COMMAND] …`, where no command is `serve`."""

from __future__ import annotations

import sys
from copy import copy
from typing import Final

import click

from ..role_tests import program as role_tests
from ..terminal import run
from . import commands
from .check import check
from .commands import Server

TEST_ROLES: Final = copy(role_tests.test)
TEST_ROLES.name = "test-roles"

COMMANDS: Final = (
    commands.serve,
    commands.init,
    commands.backup,
    commands.compact_store,
    commands.copy_store,
    commands.rekey,
    check,
    TEST_ROLES,
)
HELP: Final = "Run a cloudid server. Without a command, this is `serve`. The program `cloudid` has more commands."


def main(name: str, server: Server) -> int:
    """Do what the command line of this process says, and answer the exit code."""
    words = sys.argv[1:]
    if not words or words[0] not in (*(command.name for command in COMMANDS), "-h", "--help"):
        words.insert(0, "serve")
    group = click.Group(name, COMMANDS, help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
    return run(group, f"python -m cloudid_servers.{name}", words, lambda: server)
