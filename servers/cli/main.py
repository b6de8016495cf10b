"""The list of all commands, and the group that loads each of them when it is asked for."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Final

import click
from attrs import frozen
from click.shell_completion import CompletionItem, shell_complete

from cloudid_core.version import VERSION

from ..terminal import run as run_command

PROGRAM: Final = "cloudid"
COMPLETE: Final = "_CLOUDID_COMPLETE"
"""The environment variable by which a shell asks for completions."""

SERVE: Final = "Serve"
OPERATE: Final = "Operate"
USE: Final = "Use it"
SECTIONS: Final = (SERVE, OPERATE, USE)


@frozen
class Listed:
    """A command, as the help of `cloudid` shows it. Its module is imported when it is needed."""

    section: str
    name: str
    summary: str
    """The first sentence of the command's own help, without the full stop."""

    module: str
    attribute: str

    def load(self) -> click.Command:
        command: click.Command = getattr(import_module(f"..{self.module}", __package__), self.attribute)
        return command


COMMANDS: Final = (
    Listed(USE, "login", "Log in as this machine", "cli.login", "login"),
    Listed(USE, "creds", "Lend credentials of the cloud", "cli.creds", "creds"),
    Listed(USE, "why", "Explain why a login is refused", "cli.why", "why"),
    Listed(USE, "status", "Say whether the service is healthy, and what is wrong", "cli.status", "status"),
    Listed(USE, "completion", "Print what makes a shell complete the words of this command", "cli.completion", "show"),
)


class Commands(click.Group):
    """All commands of the list, by section."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [listed.name for listed in COMMANDS]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return next((listed.load() for listed in COMMANDS if listed.name == name), None)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section in SECTIONS:
            rows = [(listed.name, listed.summary) for listed in COMMANDS if listed.section == section]
            if rows:
                with formatter.section(section):
                    formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names alone, without loading the commands."""
        words = [listed.name for listed in COMMANDS if listed.name.startswith(incomplete)]
        return [*map(CompletionItem, words), *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(
    PROGRAM,
    cls=Commands,
    help="Turn machines' identities into service tokens, and lend credentials of the cloud.",
    epilog="Exit codes: 0 done; 1 refused, failed or found something wrong; 2 not understood; 130 ended by Ctrl-C.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(VERSION, prog_name=PROGRAM, message="%(prog)s %(version)s")
def commands() -> None:
    pass


def run() -> int:
    """Do what the command line of this process says, and answer the exit code."""
    if instruction := os.environ.get(COMPLETE):
        return shell_complete(commands, {}, PROGRAM, COMPLETE, instruction)
    return run_command(commands, PROGRAM, sys.argv[1:])
