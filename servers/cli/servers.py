"""The choice between the servers, for commands that run one."""

from __future__ import annotations

from copy import copy
from functools import partial
from importlib import import_module
from typing import Final

import click

from .. import extras
from ..command import Server, commands
from ..terminal import Failed

SERVERS: Final = ("trio", "aiohttp")


def load(*names: str) -> Server:
    """The first of some servers whose packages are installed; without names, of both. Raises `Failed`."""
    missing = "no server is installed: pip install 'cloudid[server]'"
    for name in names or SERVERS:
        try:
            found: Server = import_module(f"..{name}_server.serve", __package__).SERVER
        except ImportError as error:
            text = extras.remedy(error)
            if text is None:
                raise
            missing = text if names else missing
        else:
            return found
    raise Failed(missing)


def _choose(ctx: click.Context, option: click.Parameter, name: str | None) -> None:
    if name:
        ctx.obj = partial(load, name)


def _with_choice(command: click.Command) -> click.Command:
    """The command with the option `--server` besides its own."""
    chosen = copy(command)
    choice = click.Option(
        ["--server"],
        type=click.Choice(SERVERS),
        callback=_choose,
        expose_value=False,
        help="The server to run. Default: trio, if it is installed.",
    )
    chosen.params = [choice, *command.params]
    return chosen


serve: Final = _with_choice(commands.serve)
dev: Final = _with_choice(commands.dev)
