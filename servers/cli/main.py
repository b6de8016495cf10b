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
    "Run a server": (
        ("serve", "Start a server", "cli.servers:serve"),
        ("dev", "Start a development server with a simulated Azure", "cli.servers:dev"),
        ("simulate", "Start a simulated Azure", "cli.simulate:simulate"),
    ),
    "Operate": (
        ("init", "Initialise a store and print the root token", "command.commands:init"),
        ("check", "Check a settings file without starting a server", "command.check:check"),
        ("backup", "Copy a SQLite store while the server runs", "command.commands:backup"),
        ("compact", "Shrink the file of a SQLite store", "command.commands:compact_store"),
        ("rekey", "Replace the master key, in two steps", "command.commands:rekey"),
        ("copy-store", "Copy the store to a different, empty store", "command.commands:copy_store"),
        ("apply", "Apply a folder of TOML files to a service", "cli.apply:apply"),
        ("export", "Export the configuration of a service to a folder", "cli.apply:export"),
        ("audit", "Verify audit logs offline", "audit.program:audit"),
        ("trace", "Show what a token did, from audit logs", "cli.trace:trace"),
        ("revoke", "Revoke a lease, all leases of a role, or everything below a path", "cli.revoke:revoke"),
        ("roles", "Test roles against expected logins", "role_tests.program:roles"),
        ("connect", "Connect a mount to a tenant", "cli.connect:connect"),
    ),
    "Use": (
        ("login", "Log in with this machine's identity", "cli.login:login"),
        ("agent", "Keep this machine logged in and its credential files up to date", "cli.agent:agent"),
        ("creds", "Request credentials for Azure", "cli.creds:creds"),
        ("why", "Explain why a login is refused", "cli.why:why"),
        ("bench", "Measure how many logins this machine verifies", "cli.bench:bench"),
        ("status", "Show whether the service is healthy", "cli.status:status"),
        ("read", "Read a path", "cli.verbs:read"),
        ("list", "List the names below a path", "cli.verbs:list_"),
        ("write", "Write fields to a path", "cli.verbs:write"),
        ("patch", "Change some fields of an existing object", "cli.verbs:patch"),
        ("delete", "Delete a path", "cli.verbs:delete"),
        ("completion", "Print a shell completion script", "cli.completion:completion"),
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
    commands=[click.Command(listed.name) for listed in COMMANDS],  # for suggestions after a typing error
    help="Give Azure machines access without storing secrets on them. A machine logs in with its managed identity, and "
    "requests Azure credentials that are deleted when their lease expires.",
    epilog="""\b
Examples:
  cloudid dev                           # try it on a simulated Azure
  cloudid login --role web              # log in with this machine's identity
  cloudid creds reader --exec ./report  # run a command with Azure credentials
  cloudid status                        # show whether the service is healthy

\b
Exit codes:
  0    success
  1    refused or failed, or a check found a problem
  2    invalid command line, or an unreadable file
  3    apply: the service differs from the folder
  4    status: the service is not healthy
  130  interrupted by Ctrl-C""",
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
