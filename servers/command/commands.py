"""The commands that run a server and keep its store: each has its options and its help here, and nowhere else."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
from attrs import evolve, frozen

from cloudid_core.background import nodes_with_other_master_keys
from cloudid_core.context.keyring import add_master_key, drop_other_master_keys
from cloudid_core.health import HealthProblem
from cloudid_core.installation import (
    confirm_root_token,
    initialise,
    is_initialised,
    make_root_token,
    was_root_token_shown,
)
from cloudid_core.run import run
from cloudid_core.settings import Settings
from cloudid_core.store import keys
from cloudid_core.values.secret import Secret

from ..audit import make_folder
from ..host import Host
from ..logs import open_log
from ..machine import Platform, ServiceManager, streams
from ..metrics import Slots
from ..processes import Supervisor, Worker, bind, reloaded
from ..settings import (
    MASTER_KEY_VARIABLE,
    ServerSettings,
    SettingsError,
    SettingsFile,
    http_address,
    master_key,
    parse_address,
    read_file,
    read_settings,
    refuse_doubts,
)
from ..stores import Store, back_up, compact, glance
from ..stores import copy_store as copy
from ..terminal import Format, Output, show_progress, with_output, with_reasons
from .bootstrap import Options, Setup, file_of, open_store, read_again, set_up, url_of
from .settings_option import FILE, HERE, OPTION, REQUIRED_SETTINGS, SETTINGS, VARIABLE, found_settings

MOST_WORKERS: Final = 64


@frozen
class Server:
    """A server that the commands run. `serve` returns when it was asked to stop; `run` runs its event loop."""

    serve: Callable[[Setup], None]
    open_host: Callable[[Store, Platform], AbstractAsyncContextManager[Host]]
    run: Callable[[Callable[[], Coroutine[Any, Any, Any]]], Any]

    def perform(self, work: Callable[[Host], Awaitable[Any]], store: Store) -> Any:
        """Do some work on a host over a store."""

        async def main() -> Any:
            async with self.open_host(store, Platform()) as host:
                return await work(host)

        return self.run(main)


def _server() -> Server:
    """The server that the context of the command imports."""
    load: Callable[[], Server] = click.get_current_context().obj
    return load()


def _listen(ctx: click.Context, option: click.Parameter, value: str | None) -> str:
    try:
        if value is not None:
            parse_address(value)
    except SettingsError as error:
        raise click.BadParameter(str(error)) from None
    return value or ""


def _provider(ctx: click.Context, option: click.Parameter, value: str | None) -> str:
    try:
        return "" if value is None else http_address(value)
    except ValueError as error:
        raise click.BadParameter(f"{value} {error}") from None


LISTEN: Final = click.option(
    "--listen", callback=_listen, metavar="HOST:PORT", help="The address to listen on. Default: 127.0.0.1:8200."
)
PROVIDER: Final = click.option(
    "--provider",
    callback=_provider,
    metavar="URL",
    help="The URL of a simulated Azure, which is used instead of every Azure environment.",
)
ROOT_TOKEN: Final = partial(
    click.option, "--root-token", type=Secret, metavar="TOKEN", help="The root token. Default: random."
)


@click.command()
@OPTION(help=f"The settings file (TOML). Default: {VARIABLE}, then ./{HERE}.")
@LISTEN
@PROVIDER
@click.option(
    "--workers",
    type=click.IntRange(1, MOST_WORKERS),
    metavar="N",
    default=1,
    help="The number of worker processes. More than one requires a store in PostgreSQL or etcd. Default: 1.",
)
@click.option("--dev", "is_dev", is_flag=True, hidden=True)
@ROOT_TOKEN(hidden=True)
def serve(
    settings: Path | None, workers: int, is_dev: bool, root_token: Secret | None, listen: str, provider: str
) -> int:
    """Start a server.

    It runs until SIGTERM. SIGHUP reloads the certificate, the log level and the audit files, and applies the folder
    that the settings name. To try cloudid without a settings file, use `cloudid dev`, or start an empty server that
    keeps everything in memory with --dev (and --root-token TOKEN).
    """
    settings = settings if is_dev else found_settings(settings)
    if not is_dev and settings is None:
        raise click.UsageError(
            f"--settings FILE is required, because {VARIABLE} is not set and there is no {HERE} here; to "
            "try cloudid, run cloudid dev"
        )
    if root_token and not is_dev:
        raise click.UsageError("--root-token is for --dev only")
    if workers > 1 and is_dev:
        raise click.UsageError("--workers needs a shared store, which --dev does not have")
    token = root_token or Secret()
    options = Options(is_dev=is_dev, settings=settings, root_token=token, listen=listen, provider=provider)
    if workers > 1:
        return _serve_with_workers(options, workers, _server())
    _serve(options, _server())
    return 0


@click.command()
@SETTINGS
@LISTEN
@PROVIDER
@ROOT_TOKEN()
def dev(settings: Path | None, root_token: Secret | None, listen: str, provider: str) -> None:
    """Start a development server with a simulated Azure.

    Everything is kept in memory and is gone when the server stops. The machine `web` of the simulated Azure may log in
    and request credentials; the output shows which commands to try next. With --provider, the server starts without
    any configuration.
    """
    token = root_token or Secret()
    options = Options(is_dev=True, settings=settings, root_token=token, listen=listen, provider=provider)
    _serve(evolve(options, is_prepared=not provider), _server())


def _serve(
    options: Options,
    server: Server,
    worker: Worker | None = None,
    file: SettingsFile | None = None,
    metrics: Slots | None = None,
    metrics_sockets: Sequence[socket.socket] | None = None,
) -> None:
    """Signals that come before the server handles them, or when it has ended, do no harm."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with set_up(options, worker, file) as setup:
        # Programs that the server starts later must not inherit the key. An embedded service leaves the variable alone:
        # the process belongs to its application, which may open the service again.
        os.environ.pop(MASTER_KEY_VARIABLE, None)
        server.serve(evolve(setup, metrics=metrics, metrics_sockets=metrics_sockets))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)


def _serve_with_workers(options: Options, count: int, program: Server) -> int:
    """Everything that is opened is opened by the workers: two processes cannot share a connection.

    The settings are read here, so that a worker which replaces a dead one has those of the others.
    """
    file = file_of(options)
    server = file.server
    if not server.is_in_database:
        raise SettingsError(
            "several workers need a store in PostgreSQL or etcd, such as [server] store = "
            '"postgresql://USER@HOST/DATABASE"'
        )
    sockets, metrics_sockets = bind(server.listen), bind(server.metrics_listen)
    url = url_of(server, *sockets[0].getsockname()[:2])

    def work(worker: Worker) -> int:
        return with_reasons(lambda: _serve(options, program, worker, file, metrics, metrics_sockets))

    def announce() -> None:
        streams.write(streams.STDOUT, f"listening on {url}\n")

    def reload() -> None:
        nonlocal file
        with suppress(SettingsError):  # the workers log it
            file = reloaded(file, read_again(options))

    log = open_log(server.log_level, log_format=server.log_format)
    with closing(Slots(count)) as metrics:
        return Supervisor(count, sockets, work, announce, reload, log, ServiceManager(os.environ)).run()


@click.command()
@REQUIRED_SETTINGS
@click.option(
    "--new-root-token",
    is_flag=True,
    help="Print a new root token for a store that is already initialised, because the first was lost or never shown.",
)
@click.option(
    "--accept-restore",
    is_flag=True,
    help="Accept that the store is now in a different etcd cluster, because it was restored from a snapshot.",
)
@with_output(Format.TABLE)
def init(settings: Path, new_root_token: bool, accept_restore: bool, output: Output) -> None:
    """Initialise a store and print the root token.

    If the key file that the settings name does not exist, it is created too. The root token is printed once and is not
    stored: keep it safe. For a lost root token, use --new-root-token.
    """
    file = read_settings(settings)
    if accept_restore:
        if not file.server.is_in_etcd:
            raise SettingsError("--accept-restore is only for stores in etcd")
        with closing(open_store(file.server, accepts_restore=True)) as store:
            _server().perform(lambda host: run(is_initialised(), host), store)
        return
    if not new_root_token:
        refuse_doubts(file.server)
    with closing(open_store(file.server, is_new=not new_root_token)) as store:
        for folder in file.server.audit_folders:
            make_folder(folder)
        _server().perform(lambda host: run(_show_root_token(file, output.format, is_new=new_root_token), host), store)
        if store.public_database:
            problem, occurrence = HealthProblem.DATABASE_PUBLIC, {"database": store.public_database}
            streams.write(streams.STDERR, f"warning: {problem.text(occurrence)}\n{problem.remedy(occurrence)}\n")


async def _show_root_token(file: SettingsFile, shown: Format, *, is_new: bool) -> None:
    """Prepare the store, or make another root token for it; print the token, and note that it was printed."""
    if is_new:
        root_token = await make_root_token(file.settings(master_key.find(file.server)))
    elif not await is_initialised():
        root_token = await initialise(file.settings(master_key.find_or_make(file.server)))
    elif await was_root_token_shown():
        raise SettingsError(
            f"{file.server.store_name} is already initialised; if the root token is lost, run init --new-root-token"
        )
    else:
        raise SettingsError(
            f"{file.server.store_name} is initialised, but its root token was never shown: run init --new-root-token"
        )
    line = f"root token: {root_token.reveal()}"
    if shown is Format.JSON:
        line = json.dumps({"root_token": root_token.reveal()})
    if not streams.write(streams.STDOUT, f"{line}\n"):
        raise SettingsError("the root token cannot be written to stdout: run init --new-root-token")
    await confirm_root_token()
    if not is_new:
        streams.write(streams.STDERR, _what_was_made(file.server))


def _what_was_made(server: ServerSettings) -> str:
    """Say what `init` prepared, and what to keep: without the key no copy of the store can be opened."""
    key_file = master_key.key_file(server)
    place = f"in {key_file.absolute()}: back it up, but not together with the store" if key_file else "not in a file"
    return f"initialised: {server.store_name}\nmaster key: {place}\n"


@click.command()
@REQUIRED_SETTINGS
@click.argument("target", type=FILE)
@with_output(Format.TABLE)
def backup(settings: Path, target: Path, output: Output) -> None:
    """Copy a SQLite store while the server runs.

    The copy is consistent, and is written to TARGET, which must not exist yet. It does not contain the master key, so
    back up the key file separately. For a store in PostgreSQL or etcd, use pg_dump or etcdctl.
    """
    server = read_settings(settings).server
    if server.is_in_database:
        raise SettingsError(
            "backup is only for SQLite stores; for a database, use its own tools, such as pg_dump or "
            "etcdctl snapshot save"
        )
    store = Path(server.store)
    if glance(store, keys.RING, server.store_name) is None:
        raise SettingsError(f"{server.store_name} is not initialised: there is nothing to copy")
    back_up(store, target, server.store_name, show_progress)
    size = target.stat().st_size
    text = f"copied {server.store_name} to {target}: {size} bytes; the master key is not in it"
    output.text(text, {"store": server.store_name, "target": str(target), "bytes": size})


@click.command("compact")
@REQUIRED_SETTINGS
@with_output(Format.TABLE)
def compact_store(settings: Path, output: Output) -> None:
    """Shrink the file of a SQLite store.

    A SQLite file keeps the space of deleted entries. This command returns it to the disk. Stop the server first, and
    make sure that the disk has as much free space as the store has contents. PostgreSQL and etcd have their own tools.
    """
    server = read_settings(settings).server
    if server.is_in_database:
        raise SettingsError(
            "compact is only for SQLite stores; for a database, use its own tools, such as VACUUM or etcdctl defrag"
        )
    before, after = compact(Path(server.store), server.store_name)
    text = f"{server.store_name}: {before} bytes before, {after} bytes after"
    output.text(text, {"store": server.store_name, "bytes_before": before, "bytes_after": after})


@click.command()
@REQUIRED_SETTINGS
@click.option("--new-key-file", type=FILE, metavar="FILE", help="The file with the new key. It is created if missing.")
@click.option("--new-key-variable", metavar="NAME", help="The environment variable with the new key.")
@click.option("--new-key-command", metavar="COMMAND", help="A command that prints the new key.")
@click.option("--finish", is_flag=True, help="Remove every master key but the one that the settings name.")
def rekey(
    settings: Path, new_key_file: Path | None, new_key_variable: str | None, new_key_command: str | None, finish: bool
) -> None:
    """Replace the master key, in two steps.

    First, run it with a new key: from then on both keys open the store. Name the new key in the settings and restart
    all servers. Then run it with --finish, and the old key no longer opens the store.
    """
    if sum(given is not None for given in (new_key_file, new_key_variable, new_key_command)) + finish != 1:
        raise click.UsageError("give one of --new-key-file, --new-key-variable, --new-key-command and --finish")
    file = read_settings(settings)
    known = file.settings(master_key.find(file.server))
    new: Secret | None = None
    if new_key_file is not None:
        master_key.make_file(new_key_file)
        new = master_key.from_file(new_key_file)
    elif new_key_variable is not None:
        new = master_key.from_variable(new_key_variable)
    elif new_key_command is not None:
        new = master_key.from_command(new_key_command)
    if new == known.master_key:
        raise SettingsError("this is already the master key of the settings: name a different one")
    if new is None:
        key_file = master_key.key_file(file.server)
        place = f"in {key_file}" if key_file else "from the environment, command or service manager"
        told = f"only the master key {place} opens the store now; older copies of the store may need another"
    else:
        told = "both master keys open the store; name the new one in the settings, restart, then run rekey --finish"
    with closing(open_store(file.server)) as store:
        change = partial(_drop_other_master_keys, file, known) if new is None else partial(add_master_key, known, new)
        _server().perform(lambda host: run(change(), host), store)
    streams.write(streams.STDOUT, f"{told}\n")


async def _drop_other_master_keys(file: SettingsFile, known: Settings) -> None:
    """Let only the key of the settings open the store, unless a node still needs another. Raises `SettingsError`."""
    if file.server.is_in_database:  # a store in a file is this command's alone
        others = await nodes_with_other_master_keys(known)
        if others:
            raise SettingsError(
                f"servers still use another master key: {', '.join(others)}: restart them with the key of "
                "the settings; a killed server is counted for two minutes"
            )
    await drop_other_master_keys(known)


@click.command("copy-store")
@REQUIRED_SETTINGS
@click.argument("target", type=FILE)
@with_output(Format.TABLE)
def copy_store(settings: Path, target: Path, output: Output) -> None:
    """Copy the store to a different, empty store.

    TARGET is the settings file of the new store. Both stores are compared after the copy. Stop all servers that use
    either of them first.
    """
    files = (read_settings(settings), read_file(target))
    servers = [file.server for file in files]
    if len({each.store if each.is_in_database else os.path.realpath(each.store) for each in servers}) == 1:
        raise SettingsError("both settings files name the same store")
    try:
        master_keys = {master_key.find(file.server).reveal() for file in files}
    except SettingsError:
        master_keys = set()
    if len(master_keys) != 1:
        raise SettingsError("both settings files must name the same master key")
    with (
        closing(open_store(files[0].server, is_exclusive=True)) as source,
        closing(open_store(files[1].server, is_new=True, is_exclusive=True)) as other,
    ):
        count = _server().perform(lambda host: copy(host, source, other, show_progress), other)
    output.text(f"copied and compared: {count} entries", {"entries": count})
