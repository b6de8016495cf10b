"""The command: `python -m servers.<server> [serve|init] …`, the same for both servers."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import closing
from typing import Any

from cloudid_core.effects import Program
from cloudid_core.errors import CloudidError
from cloudid_core.service import initialise

from ..stores import Store
from . import streams
from .bootstrap import Setup, initial, set_up
from .options import Options, read_options
from .settings import SettingsError, read_file


def main(name: str, serve: Callable[[Setup], None], perform: Callable[[Program[Any], Store], Any]) -> int:
    """Do what the command line says, and answer the exit code.

    `serve` runs a server until it is told to stop; `perform` runs one program over a store.
    """
    streams.open_missing()
    options = read_options(f"python -m servers.{name}")
    try:
        if options.is_init:
            streams.write(streams.STDOUT, f"root token: {_initialise(options, perform)}\n")
        else:
            _serve(options, serve)
    except (SettingsError, CloudidError, OSError) as error:
        streams.write(streams.STDERR, f"error: {error}\n")
        return 1
    return 0


def _serve(options: Options, serve: Callable[[Setup], None]) -> None:
    """Signals that come before the server handles them, or when it has ended, do no harm."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with set_up(options) as setup:
        serve(setup)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)


def _initialise(options: Options, perform: Callable[[Program[Any], Store], Any]) -> str:
    assert options.settings is not None
    settings, store = initial(read_file(options.settings))
    with closing(store):
        root_token: str = perform(initialise(settings), store).reveal()
    return root_token
