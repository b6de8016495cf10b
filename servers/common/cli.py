"""The command: `python -m servers.<server> [serve|init|backup] …`, the same for both servers."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from cloudid_core.effects import Program
from cloudid_core.errors import CloudidError
from cloudid_core.initialise import (
    confirm_root_token,
    initialise,
    is_initialised,
    make_root_token,
    was_root_token_shown,
)

from ..stores import Store
from ..stores.backup import back_up
from . import master_key, streams
from .bootstrap import Setup, open_store, set_up
from .options import BACKUP, INIT, Options, read_options
from .settings import SettingsError, SettingsFile, read_file


def main(name: str, serve: Callable[[Setup], None], perform: Callable[[Program[Any], Store], Any]) -> int:
    """Do what the command line says, and answer the exit code: 0, or 1 with the reason on stderr.

    `serve` runs a server until it is told to stop; `perform` runs one program over a store.
    """
    streams.open_missing()
    options = read_options(f"python -m servers.{name}")
    try:
        if options.command == INIT:
            _init(options, perform)
        elif options.command == BACKUP:
            back_up(Path(_file_of(options).server.store), options.target)
        else:
            _serve(options, serve)
    except (SettingsError, CloudidError, OSError) as error:
        streams.write(streams.STDERR, f"error: {error}\n")
        return 1
    return 0


def _file_of(options: Options) -> SettingsFile:
    assert options.settings is not None
    return read_file(options.settings)


def _serve(options: Options, serve: Callable[[Setup], None]) -> None:
    """Signals that come before the server handles them, or when it has ended, do no harm."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with set_up(options) as setup:
        serve(setup)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)


def _init(options: Options, perform: Callable[[Program[Any], Store], Any]) -> None:
    file = _file_of(options)
    with closing(open_store(file.server)) as store:
        perform(_show_root_token(file, is_new=options.new_root_token), store)


async def _show_root_token(file: SettingsFile, *, is_new: bool) -> None:
    """Prepare the store, or make another root token for it; print the token, and note that it was printed."""
    if is_new:
        root_token = await make_root_token(file.settings(master_key.find(file.server)))
    elif not await is_initialised():
        root_token = await initialise(file.settings(master_key.find_or_make(file.server)))
    elif await was_root_token_shown():
        raise SettingsError(f"{file.server.store} is already initialised; for a lost root token: init --new-root-token")
    else:
        raise SettingsError(
            f"{file.server.store} is initialised, but its root token was never shown: run init --new-root-token"
        )
    if not streams.write(streams.STDOUT, f"root token: {root_token.reveal()}\n"):
        raise SettingsError("the root token cannot be written to stdout: run init --new-root-token")
    await confirm_root_token()
