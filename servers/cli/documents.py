"""Prints the page of all commands from their own help: `python -m cloudid_servers.cli.documents`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from inspect import cleandoc
from typing import Final

import click

from ..terminal import EXITS
from .main import COMMANDS, PROGRAM, SECTIONS, commands

START: Final = """\
# The command `cloudid`

Every command, with its options, as `cloudid COMMAND --help` shows them. To install it:
`pipx install 'cloudid[server]'`.
`python -m cloudid_servers.cli` is the same command.

- **Output.** What a command found goes to standard output: as a table on a terminal, as JSON in a pipe. The reports of
  `check`, `audit verify` and `roles test` are text everywhere. `--format table` or `--format json` chooses.
- **Errors** are one line on standard error, which says what to do. A bug shows its place alone; with the environment
  variable `CLOUDID_TRACEBACK=1` it shows a traceback, which may hold a secret.
- **Completion.** `eval "$(cloudid completion bash)"`; also for zsh and fish.
- **The servers as modules.** `python -m cloudid_servers.trio_server` and `cloudid_servers.aiohttp_server` take the
  commands `serve` (also without its name), `init`, `check`, `backup`, `compact`, `copy-store`, `rekey` and
  `test-roles`, with the same options. `cloudid_servers.role_tests`, `cloudid_servers.audit` and
  `cloudid_servers.provider_simulator` are `roles test`, `audit` and `simulate`.

## Exit codes

| Code | Meaning |
|---|---|
"""


def page() -> str:
    lines = [f"| {code:d} | {meaning} |" for code, meaning in EXITS.items()]
    top = click.Context(commands, info_name=PROGRAM)
    for section in SECTIONS:
        lines += ["", f"## {section}"]
        for listed in COMMANDS:
            if listed.section == section:
                lines += _described(listed.load(), top)
    return START + "\n".join(lines) + "\n"


def _described(command: click.Command, parent: click.Context) -> Iterator[str]:
    """A command, and those below it."""
    context = click.Context(command, parent, info_name=command.name)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if below := command.get_command(context, name):
                yield from _described(below, context)
        return
    yield from ("", f"### `{context.command_path}`", "", f"    {context.command_path} {_usage(command, context)}", "")
    yield cleandoc(command.help or "")
    options = [
        record
        for option in command.params
        if isinstance(option, click.Option) and (record := option.get_help_record(context))
    ]
    if options:
        yield from ("", "| Option | Meaning |", "|---|---|")
        yield from (_row(option, " ".join(meaning.split())) for option, meaning in options)


def _row(option: str, meaning: str) -> str:
    option, meaning = (cell.replace("|", r"\|") for cell in (option, meaning))
    return f"| `{option}` | {meaning} |"


def _usage(command: click.Command, context: click.Context) -> str:
    return " ".join(command.collect_usage_pieces(context))


if __name__ == "__main__":
    sys.stdout.write(page())
