"""The list of all commands, and the group that loads each of them when it is asked for."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click
from attrs import frozen
from click.shell_completion import CompletionItem, shell_complete

from cloudid_core.version import VERSION

from ..runtime import until_interrupted
from ..terminal import run as run_command
from ..terminal import with_reasons
from .examples import with_examples
from .habits import understood

if TYPE_CHECKING:
    from ..command import Server

PROGRAM: Final = "cloudid"
COMPLETE: Final = "_CLOUDID_COMPLETE"
"""The environment variable by which a shell asks for completions."""

SECTIONS: Final = {
    "Serve": (
        ("serve", "Serve requests until SIGTERM", "cli.servers:serve"),
        ("dev", "Serve a first try: all in memory, on a simulated cloud", "cli.servers:dev"),
        ("simulate", "Serve a simulated cloud, until a signal stops it", "cli.simulate:simulate"),
    ),
    "Operate": (
        ("init", "Prepare a store and its key file, and print the root token, once", "command.commands:init"),
        ("check", "Look at settings and what they name, without starting a server", "command.check:check"),
        (
            "backup",
            "Write a consistent copy of the store to TARGET, also while it is served",
            "command.commands:backup",
        ),
        (
            "compact",
            "Give the room of what was deleted back to the disk, while no server runs",
            "command.commands:compact_store",
        ),
        ("rekey", "Change the master key, in two steps", "command.commands:rekey"),
        ("copy-store", "Copy the store into another, empty one, and compare both", "command.commands:copy_store"),
        ("apply", "Make a service what a folder says", "cli.apply:apply"),
        ("export", "Write a running service into a folder for apply", "cli.apply:export"),
        ("audit", "Verify audit logs, offline", "audit.program:audit"),
        ("trace", "Show what a token did, out of audit logs", "cli.trace:trace"),
        ("revoke", "End the leases of a role, one lease, or all below a path", "cli.revoke:revoke"),
        ("roles", "Test roles, on a server or without one", "role_tests.program:roles"),
        ("connect", "Give the service its rights in a tenant, and prove them", "cli.connect:connect"),
    ),
    "Use it": (
        ("login", "Log in as this machine", "cli.login:login"),
        ("agent", "Stay logged in, and keep files with the token and with what is lent", "cli.agent:agent"),
        ("creds", "Issue credentials for Azure", "cli.creds:creds"),
        ("why", "Explain why a login is refused", "cli.why:why"),
        ("status", "Say whether the service is healthy, and what is wrong", "cli.status:status"),
        ("read", "Read what is at a path", "cli.verbs:read"),
        ("list", "List the names below a path", "cli.verbs:list_"),
        ("write", "Write fields to a path", "cli.verbs:write"),
        ("patch", "Change fields of what is at a path", "cli.verbs:patch"),
        ("delete", "Delete what is at a path", "cli.verbs:delete"),
        ("completion", "Print what makes a shell complete the words of this command", "cli.completion:completion"),
    ),
}


@frozen
class Listed:
    """A command, as the help of `cloudid` shows it. Its module is imported when it is needed."""

    section: str
    name: str
    summary: str
    """The first sentence of the command's own help, without the full stop."""

    place: str
    """Its module, and its name there."""

    def load(self) -> click.Command:
        module, _, name = self.place.partition(":")
        command: click.Command = getattr(import_module(f"..{module}", __package__), name)
        return with_examples(command, self.name)


COMMANDS: Final = tuple(Listed(section, *row) for section, rows in SECTIONS.items() for row in rows)


class Commands(click.Group):
    """All commands of the list, by section."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [listed.name for listed in COMMANDS]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return next((listed.load() for listed in COMMANDS if listed.name == name), None)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args if ctx.resilient_parsing else understood(args))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section in SECTIONS:
            with formatter.section(section):
                formatter.write_dl([(listed.name, listed.summary) for listed in COMMANDS if listed.section == section])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names alone, without loading the commands."""
        words = [listed.name for listed in COMMANDS if listed.name.startswith(incomplete)]
        return [*map(CompletionItem, words), *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(
    PROGRAM,
    cls=Commands,
    commands=[click.Command(listed.name) for listed in COMMANDS],  # of which a misspelt one may be
    help="Turn machines' identities into service tokens, and lend credentials of the cloud.",
    epilog="Exit codes: 0 done; 1 refused, failed or found something wrong; 2 not understood; 3 other than a folder "
    "says; 4 not healthy; 130 ended by Ctrl-C.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(VERSION, prog_name=PROGRAM, message="%(prog)s %(version)s")
def commands() -> None:
    pass


def _load() -> Server:
    """The server of commands that do not choose one."""
    from .servers import load  # not needed by those who only use the service

    return load()


def run() -> int:
    """Do what the command line of this process says, and answer the exit code."""
    if instruction := os.environ.get(COMPLETE):
        return until_interrupted(
            lambda: with_reasons(lambda: shell_complete(commands, {}, PROGRAM, COMPLETE, instruction))
        )
    return run_command(commands, PROGRAM, obj=_load)
