"""The command, the same for both servers.

`python -m servers.<server> [serve|init|backup|copy-store|rekey|test-roles] …`
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

from cloudid_core.context.keyring import add_master_key, drop_other_master_keys
from cloudid_core.errors import CloudidError
from cloudid_core.initialise import (
    confirm_root_token,
    initialise,
    is_initialised,
    make_root_token,
    was_root_token_shown,
)
from cloudid_core.run import run
from cloudid_core.values.secret import Secret

from ..audit.files import make_folder
from ..host.host import Host
from ..logs.logs import open_log
from ..machine import streams
from ..machine.service_manager import ServiceManager
from ..processes.listeners import bind
from ..processes.workers import Supervisor, Worker
from ..role_tests import program as role_tests
from ..runtime.interrupts import until_interrupted
from ..settings import master_key
from ..settings.safety import refuse_doubts
from ..settings.settings import ServerSettings, SettingsError, SettingsFile, read_file, read_settings
from ..stores import Store
from ..stores.backup import back_up
from ..stores.copying import copy_store
from .bootstrap import Setup, file_of, open_store, set_up, url_of
from .options import BACKUP, COPY, INIT, REKEY, TEST_ROLES, Options, read_options

Perform: TypeAlias = Callable[[Callable[[Host], Awaitable[Any]], Store], Any]
"""Does some work on a host over a store."""


def main(name: str, serve: Callable[[Setup], None], perform: Perform) -> int:
    """Do what the command line says, and answer the exit code: 0, 1 with the reason on stderr, or 130 after Ctrl-C.

    `serve` runs a server until it is told to stop.
    """
    streams.open_missing()
    if sys.argv[1:2] == [TEST_ROLES]:
        return until_interrupted(
            lambda: role_tests.main(sys.argv[2:], f"python -m cloudid_servers.{name} {TEST_ROLES}")
        )
    options = read_options(f"python -m cloudid_servers.{name}")
    return until_interrupted(lambda: _with_reasons(lambda: _run(options, serve, perform)))


def _run(options: Options, serve: Callable[[Setup], None], perform: Perform) -> int | None:
    if options.command == INIT:
        _init(options, perform)
    elif options.command == REKEY:
        _rekey(options, perform)
    elif options.command == BACKUP:
        _back_up(options)
    elif options.command == COPY:
        _copy(options, perform)
    elif options.workers > 1:
        return _serve_with_workers(options, serve)
    else:
        _serve(options, serve)
    return None


def _file_of(options: Options) -> SettingsFile:
    assert options.settings is not None
    return read_settings(options.settings)


def _serve(
    options: Options,
    serve: Callable[[Setup], None],
    worker: Worker | None = None,
) -> None:
    """Signals that come before the server handles them, or when it has ended, do no harm."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with set_up(options, worker) as setup:
        serve(setup)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)


def _serve_with_workers(options: Options, serve: Callable[[Setup], None]) -> int:
    """Everything that is opened is opened by the workers: two processes cannot share a connection."""
    file = file_of(options)
    server = file.server
    if not server.is_in_database:
        raise SettingsError(
            "several workers need a store that processes can share: a PostgreSQL database, as in "
            '[server] store = "postgresql://USER@HOST/DATABASE"'
        )
    sockets = bind(server)
    url = url_of(server, *sockets[0].getsockname()[:2])

    def work(worker: Worker) -> int:
        return _with_reasons(lambda: _serve(options, serve, worker))

    def announce() -> None:
        streams.write(streams.STDOUT, f"listening on {url}\n")

    log = open_log(server.log_level, log_format=server.log_format)
    return Supervisor(options.workers, sockets, work, announce, log, ServiceManager(os.environ)).run()


def _with_reasons(work: Callable[[], int | None]) -> int:
    """The exit code of some work: its own, or 1 with the reason on stderr when it fails as operators can expect."""
    try:
        return work() or 0
    except (SettingsError, CloudidError, OSError) as error:
        streams.write(streams.STDERR, f"error: {error}\n")
        return 1


def _init(options: Options, perform: Perform) -> None:
    file = _file_of(options)
    if not options.new_root_token:
        refuse_doubts(file.server)
    with closing(open_store(file.server, is_new=not options.new_root_token)) as store:
        for folder in file.server.audit_folders:
            make_folder(folder)
        perform(lambda host: run(_show_root_token(file, is_new=options.new_root_token), host), store)


def _rekey(options: Options, perform: Perform) -> None:
    """The first step adds the new key, the second drops the old one: at every instant a known key opens the store."""
    file = _file_of(options)
    settings = file.settings(master_key.find(file.server))
    new = _new_master_key(options)
    if new == settings.master_key:
        raise SettingsError("this is the master key of the settings already: name another")
    if new is None:
        told = "only this master key opens the store now; older copies of the store still need the old one"
    else:
        told = "both master keys open the store; name the new one in the settings, restart, then run rekey --finish"
    with closing(open_store(file.server)) as store:
        program = drop_other_master_keys(settings) if new is None else add_master_key(settings, new)
        perform(lambda host: run(program, host), store)
    streams.write(streams.STDOUT, f"{told}\n")


def _new_master_key(options: Options) -> Secret | None:
    if options.new_key_file:
        master_key.make_file(options.new_key_file)
        return master_key.from_file(options.new_key_file)
    if options.new_key_variable:
        return master_key.from_variable(options.new_key_variable)
    return master_key.from_command(options.new_key_command) if options.new_key_command else None


async def _show_root_token(file: SettingsFile, *, is_new: bool) -> None:
    """Prepare the store, or make another root token for it; print the token, and note that it was printed."""
    if is_new:
        root_token = await make_root_token(file.settings(master_key.find(file.server)))
    elif not await is_initialised():
        root_token = await initialise(file.settings(master_key.find_or_make(file.server)))
    elif await was_root_token_shown():
        raise SettingsError(
            f"{file.server.store_name} is already initialised; for a lost root token: init --new-root-token"
        )
    else:
        raise SettingsError(
            f"{file.server.store_name} is initialised, but its root token was never shown: run init --new-root-token"
        )
    if not streams.write(streams.STDOUT, f"root token: {root_token.reveal()}\n"):
        raise SettingsError("the root token cannot be written to stdout: run init --new-root-token")
    await confirm_root_token()


def _back_up(options: Options) -> None:
    server = _file_of(options).server
    if server.is_in_database:
        raise SettingsError("backup is for SQLite stores; back up a database with its own tools, such as pg_dump")
    back_up(Path(server.store), options.target, server.store_name)


def _copy(options: Options, perform: Perform) -> None:
    files = (_file_of(options), read_file(options.target))
    if len({_place_of(file.server) for file in files}) == 1:
        raise SettingsError("both settings files name the same store")
    try:
        master_keys = {master_key.find(file.server).reveal() for file in files}
    except SettingsError:
        master_keys = set()
    if len(master_keys) != 1:
        raise SettingsError("both settings files must name the same master key: it opens what is copied")
    with (
        closing(open_store(files[0].server, is_exclusive=True)) as source,
        closing(open_store(files[1].server, is_new=True, is_exclusive=True)) as target,
    ):
        count = perform(lambda host: copy_store(host, source, target, _show_progress), target)
    streams.write(streams.STDOUT, f"copied and compared: {count} entries\n")


def _place_of(server: ServerSettings) -> str:
    return server.store if server.is_in_database else os.path.realpath(server.store)


def _show_progress(text: str) -> None:
    """For a person who waits: the line is written anew each time."""
    if sys.stderr is not None and sys.stderr.isatty():
        streams.write(streams.STDERR, f"\r{text}\033[K")
