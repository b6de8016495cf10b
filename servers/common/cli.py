"""The command: `python -m servers.<server> [serve|init] …`, the same for both servers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any

from cloudid_core.effects import Program
from cloudid_core.errors import CloudidError
from cloudid_core.service import initialise

from ..stores import Store
from .bootstrap import Setup, initial, set_up
from .options import Options, read_options
from .settings import SettingsError, read_file


def main(name: str, serve: Callable[[Setup], None], perform: Callable[[Program[Any], Store], Any]) -> int:
    """Do what the command line says, and answer the exit code.

    `serve` runs a server until it is told to stop; `perform` runs one program over a store.
    """
    options = read_options(f"python -m servers.{name}")
    try:
        if options.is_init:
            sys.stdout.write(f"root token: {_initialise(options, perform)}\n")
        else:
            with set_up(options) as setup:
                serve(setup)
    except (SettingsError, CloudidError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


def _initialise(options: Options, perform: Callable[[Program[Any], Store], Any]) -> str:
    assert options.settings is not None
    settings, store = initial(read_file(options.settings))
    with closing(store):
        root_token: str = perform(initialise(settings), store).reveal()
    return root_token
