"""Bootstrap: everything that a server is started with, made from options, settings and the machine."""

from __future__ import annotations

import os
import secrets
import socket
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import msgspec
from attrs import evolve, field, frozen
from structlog.typing import FilteringBoundLogger

from cloudid_core.clouds import CLOUDS, Cloud
from cloudid_core.effects import HttpRequest, Program
from cloudid_core.errors import StoreFailed
from cloudid_core.health import HealthProblem, Occurrence
from cloudid_core.messages import Request, Response
from cloudid_core.metrics import merged
from cloudid_core.service import Service as OpenedService
from cloudid_core.service import initialise, open_service
from cloudid_core.settings import Settings
from cloudid_core.values import rfc3339
from cloudid_core.values.secret import Secret

from ..host import App, Host, MetricsListener, Proxies, Service
from ..logs import EventLog, LogFile, LogLevel, adopt_libraries, log_into
from ..machine import Overseer, Platform, ServiceManager, streams, why_unreadable
from ..metrics import WRITE_PAUSE, Slots, WorkerSlot
from ..processes import Reload, Worker, bind
from ..settings import (
    ServerSettings,
    SettingsError,
    SettingsFile,
    clouds_at,
    doubts,
    master_key,
    read_settings,
    refuse_exposed_dev,
)
from ..stores import GroupCommit, InMemory, SqliteStore, Store
from ..ui import Page
from . import first_steps
from .applying import Applying
from .certificate import Certificate, tls_context


@frozen(kw_only=True)
class Options:
    """What a server is started with besides its settings: by the command line, or another application in its place."""

    is_dev: bool = False
    is_prepared: bool = False
    """With `is_dev` and without `provider`: connect the service to its simulated cloud."""
    settings: Path | Mapping[str, Any] | None = None
    """A TOML file; the command line knows nothing else. Other applications may give its tables."""
    listen: str = ""
    provider: str = ""
    root_token: Secret = field(factory=Secret)


@frozen(kw_only=True)
class Setup:
    """What a server needs to know. `open` is the program that opens its service, given the address it listens on."""

    server: ServerSettings
    store: Store
    open: Callable[[str], Program[Service]]
    reload: Reload
    trusted_proxies: tuple[str, ...] = ()
    introduction: str = field(default="", repr=False)
    """Lines for stdout before the server is ready."""

    next_commands: Callable[[str], str] = field(default=lambda url: "", repr=False)
    """What a person could try next, given the server's URL; for stderr."""

    page: Callable[[Request], Response | None] | None = None
    """Answers what is asked of the page for people, if it is served."""

    doubts: Mapping[HealthProblem, Occurrence] = field(factory=dict[HealthProblem, Occurrence])
    """What is unsafe, or was lost, for log and health."""

    worker: Worker | None = None
    """Which of several processes this is; `None`: the only one."""

    metrics: Slots | None = None
    """Where workers leave their numbers for each other."""

    metrics_sockets: Sequence[socket.socket] | None = None
    """What answers metrics only, where the parent of several workers has bound it."""

    clouds: Mapping[str, Cloud] = CLOUDS

    @property
    def overseer(self) -> Overseer:
        return self.worker or ServiceManager(os.environ)

    @property
    def platform(self) -> Platform:
        return Platform.of(self.server.metadata_address, os.environ)

    @property
    def proxies(self) -> Proxies:
        """Raises `SettingsError`."""
        return Proxies.of(self.server, self.platform.addresses)

    def open_log(self, *, adopts_libraries: bool = True) -> tuple[FilteringBoundLogger, EventLog]:
        """The server's log, and what writes the core's events to it.

        It also takes what libraries log, unless the process is another application's. Its level can be reloaded.
        """
        level = LogLevel(self.server.log_level)
        number = self.worker.number if self.worker else None
        file = LogFile(level, worker=number, log_format=self.server.log_format)
        log = log_into(file)
        if adopts_libraries:
            adopt_libraries(log)
        for problem, occurrence in self.doubts.items():
            log.warning("unsafe", code=problem.code, reason=problem.text(occurrence))
        self.reload.add(level.apply)
        return log, EventLog(file)

    def tls(self, host: Host, log: FilteringBoundLogger) -> ssl.SSLContext | None:
        """Raises `SettingsError` when certificate or key cannot be used. Reloading replaces them."""
        if not self.server.tls_certificate:
            return None
        certificate = Certificate(self.server, self.reload, log)
        host.measures.gauges.append(certificate.put_gauges)
        return certificate.context

    def connect(self, host: Host, log: FilteringBoundLogger, log_event: EventLog) -> None:
        """Let a host, its audit devices and the core's events report to the log.

        Reloading reopens the devices' files, so that they can be rotated.
        """
        host.report = log.error
        host.publish_to(self.server.publish_to, self.server.publish_credential_file)
        host.sinks.append(log_event)
        host.measures.know(self.clouds.values())
        host.measures.gauges.append(host.audit.put_gauges)
        host.audit.report = log.warning
        host.audit.checkpoint_command = self.server.audit_checkpoint_command
        host.start(partial(self.overseer.keep_alive, host.sleep))
        self.reload.add(lambda server: host.audit.close())

    def app(self, service: Service, host: Host, log: FilteringBoundLogger) -> App:
        """The application over the opened service, which applies the folder of the settings, now and at each reload.

        Raises `SettingsError`.
        """
        if self.server.tracing:
            tracing = tracing_class()
            try:
                tracing(service, host, self.store, trusts_callers=self.server.trust_trace_headers)
            except ValueError:  # its text has the value, which may be secret
                raise SettingsError("the OTEL_* variables of the process environment cannot be used") from None
        app = App(service, host, log, self.trusted_proxies, self.page)
        if isinstance(service, OpenedService):
            self.reload.report = partial(_note_reload, service)
        if self.server.apply_folder and isinstance(service, OpenedService):
            applying = Applying(self.server, app, host, service, log)
            self.reload.add(lambda server: applying.ask())
        return app

    def serve_metrics(self, host: Host, service: Service) -> None:
        """Answer metrics at an address of their own, if there is one, as one of the workers. Raises `SettingsError`."""
        self._share_metrics(host, service)
        sockets = bind(self.server.metrics_listen) if self.metrics_sockets is None else self.metrics_sockets
        if isinstance(service, OpenedService):
            MetricsListener(host, service, sockets)

    def _share_metrics(self, host: Host, service: Service) -> None:
        """Let the other workers of this machine know this one's numbers, and the other way round."""
        if self.worker is None or self.metrics is None:
            return
        slot = host.slots = WorkerSlot(self.metrics, self.worker.number)

        async def write() -> None:
            while True:
                known = service.numbers(time.time()) if isinstance(service, OpenedService) else {}
                slot.write(merged([known, host.measures.numbers]))
                await host.sleep(WRITE_PAUSE)

        host.start(write)

    def listen(self) -> Sequence[socket.socket]:
        """The sockets to accept connections from. Raises `SettingsError`."""
        return self.worker.sockets if self.worker else bind(self.server.listen)

    def url(self, host: str, port: int) -> str:
        """The address of a socket that listens."""
        return url_of(self.server, host, port)

    def announce(self, host: str, port: int) -> None:
        """Write the line that says that the server is ready, and for people what to do next.

        A worker only notifies its parent.
        """
        if self.worker is None:
            url = self.url(host, port)
            streams.write(streams.STDOUT, f"{self.introduction}listening on {url}\n")
            streams.write(streams.STDERR, self.next_commands(url))
        self.overseer.ready()

    def reload_settings(self, log: FilteringBoundLogger) -> None:
        """Let what has changed in the settings count, as far as a running server can."""
        self.overseer.reloading()
        self.reload.run(log)
        self.overseer.ready()


def _note_reload(service: OpenedService, reason: str) -> None:
    """Let health report a reload that failed, until one succeeds."""
    failed = [{"at": rfc3339.show(time.time()), "reason": reason}] if reason else []
    service.context.node.note(HealthProblem.SETTINGS_NOT_RELOADED, failed)


def with_issuer(settings: Settings, url: str) -> Settings:
    """The settings with the address that the server listens on as issuer, where it is on loopback and none is set.

    The address is empty if it is not known.
    """
    host = urlsplit(url).hostname
    return evolve(settings, issuer=url) if host and not settings.issuer and ip_address(host).is_loopback else settings


def url_of(server: ServerSettings, host: str, port: int) -> str:
    return f"{server.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


@contextmanager
def set_up(options: Options, worker: Worker | None = None, file: SettingsFile | None = None) -> Iterator[Setup]:
    """For as long as the block lasts. `file`: the settings, where the parent of several workers has read them.

    Raises `SettingsError`, `StoreFailed` or `OSError`.
    """
    file = file or file_of(options)
    reload = Reload(file, partial(read_again, options))
    with ExitStack() as opened:
        setup = _dev(file, options, opened, reload) if options.is_dev else _durable(file, opened, reload, worker)
        yield evolve(setup, worker=worker)


def read_again(options: Options) -> SettingsFile:
    """For reloading. Raises `SettingsError` when certificate or key cannot be used too: no part may count then."""
    file = file_of(options)
    if file.server.tls_certificate:
        tls_context(file.server)
    return file


def file_of(options: Options) -> SettingsFile:
    """The settings in effect: options go before the file."""
    file = read_settings(options.settings) if options.settings is not None else SettingsFile()
    if options.listen:
        file = evolve(file, server=evolve(file.server, listen=options.listen))
    return evolve(file, clouds=clouds_at(options.provider)) if options.provider else file


def _durable(file: SettingsFile, opened: ExitStack, reload: Reload, worker: Worker | None) -> Setup:
    name = f"{socket.gethostname()}/{worker.number}" if worker else socket.gethostname()
    settings = evolve(file.settings(master_key.find(file.server)), node_name=name)
    store = opened.enter_context(closing(open_store(file.server)))
    told = dict(doubts(file.server))
    if isinstance(store, GroupCommit) and store.missing:
        told[HealthProblem.STORE_CUT_SHORT] = {"count": str(store.missing)}

    async def open_and_tell(url: str) -> Service:
        service = await open_service(with_issuer(settings, url))
        for problem, occurrence in told.items():
            service.context.node.note(problem, [occurrence])
        if store.public_database:
            occurrence = {"database": store.public_database}
            service.context.node.note(HealthProblem.DATABASE_PUBLIC, [occurrence])
        return service

    return Setup(
        server=file.server,
        store=store,
        open=open_and_tell,
        page=Page().answer if file.server.ui else None,
        doubts=told,
        trusted_proxies=settings.trusted_proxies,
        clouds=file.clouds,
        reload=reload,
    )


def _replaced(environments: Sequence[str]) -> str:
    """The line about environments of the settings file that a simulated cloud replaces; nothing without any."""
    if not environments:
        return ""
    tables = ", ".join(f"[clouds.{name}]" for name in environments)
    return f"warning: {tables} of the settings file is ignored, because --dev starts a simulated Azure\n"


def _dev(file: SettingsFile, options: Options, opened: ExitStack, reload: Reload) -> Setup:
    refuse_exposed_dev(file.server)
    provider, world, page = options.provider, dict[str, Any](), Page()
    replaced = [name for name, cloud in file.clouds.items() if cloud != CLOUDS[name]]
    if not provider:
        from ..provider_simulator import Simulator, start  # production servers do not load it

        simulator = Simulator()
        answer = simulator.handle(HttpRequest("GET", "/simulator/world")).response
        world = msgspec.json.decode(answer.body) if options.is_prepared else {}
        running = opened.enter_context(start(simulator))
        provider, page = running.url, Page(lambda request: running.answer(request).response)
        file = evolve(file, clouds=clouds_at(provider))
    named = file.server.audit_folders if file.server.audit_directory else ()
    settings = evolve(file.settings(master_key.make()), audit_folders=(*named, os.path.abspath(tempfile.gettempdir())))
    root_token = options.root_token or Secret(f"root.{secrets.token_urlsafe(24)}")

    async def open_initialised(url: str) -> Service:
        await initialise(settings, root_token)
        service = await open_service(with_issuer(settings, url))
        if world:
            await first_steps.prepare(service, root_token, world)
        return service

    guide = first_steps.guide if world else first_steps.addresses
    introduction = f"root token: {root_token.reveal()}\n"
    if not options.provider:
        introduction += f"provider simulator: {provider}\n{_replaced(replaced)}"
    return Setup(
        server=file.server,
        store=InMemory(),
        open=open_initialised,
        page=page.answer,
        trusted_proxies=settings.trusted_proxies,
        clouds=file.clouds,
        introduction=introduction,
        next_commands=lambda url: guide(url, root_token, provider),
        reload=reload,
    )


def open_store(
    server: ServerSettings, *, is_new: bool = False, is_exclusive: bool = False, accepts_restore: bool = False
) -> Store:
    """The durable store that the settings name. Only a new one makes its file, or its tables in a database.

    Nothing else can have it open, or in etcd write to it, at the same time if it is exclusive, as a SQLite store always
    is. `accepts_restore`: the etcd cluster may differ from the one in which the store was created.

    Raises `SettingsError` or `StoreFailed`.
    """
    if not server.is_in_database:
        if not (is_new or Path(server.store).exists()):
            raise SettingsError(f"the service is not initialised: {absent_store(server)}")
        file = SqliteStore(Path(server.store), server.store_name)
        return GroupCommit(file, file.missing)
    engine, place = database(server)
    if server.is_in_etcd:
        etcd: Store = engine.EtcdStore(place, is_new=is_new, is_exclusive=is_exclusive, accepts_restore=accepts_restore)
        return etcd
    postgres: Store = engine.PostgresStore(
        place, engine.Mode(server.store_mode) if is_new else None, is_exclusive=is_exclusive
    )
    return postgres


def is_store_lost(server: ServerSettings) -> bool:
    """Return whether a key file is there, but not the store's file: it is more likely lost than not made yet."""
    key_file = master_key.key_file(server)
    return key_file is not None and key_file.exists()


def absent_store(server: ServerSettings) -> str:
    """Say that the store's file does not exist, and what to do."""
    if is_store_lost(server):
        return (
            f"{server.store_name} does not exist, although {master_key.key_file(server)} does: mount its volume or "
            "restore a backup; run init only for a new store"
        )
    return f"{server.store_name} does not exist yet: run init, or correct store"


def database(server: ServerSettings) -> tuple[ModuleType, Any]:
    """The package of the database that the store is in, and its address, whose text has no password.

    Raises `SettingsError` or `StoreFailed`.
    """
    engine: ModuleType
    try:
        if server.is_in_etcd:
            from ..stores import etcd as engine  # httpcore on asyncio is optional
        else:
            from ..stores import postgres as engine  # psycopg is optional
    except ImportError:
        needs = "etcd needs a client" if server.is_in_etcd else "PostgreSQL needs libpq"
        extra = "etcd" if server.is_in_etcd else "postgres"
        raise SettingsError(f"a store in {needs}: pip install 'cloudid[{extra}]'") from None
    password = _password(server)
    if password is not None:
        password()  # a missing file is reported immediately
    return engine, engine.Address.parse(server.store, password)


def tracing_class() -> Callable[..., object]:
    """What exports spans. `SettingsError`: OpenTelemetry is not installed."""
    try:
        from ..tracing import Tracing  # OpenTelemetry is optional
    except ImportError:
        raise SettingsError("[server] \"tracing\" needs OpenTelemetry: pip install 'cloudid[otel]'") from None
    return Tracing


def _password(server: ServerSettings) -> Callable[[], Secret] | None:
    """Reads the database's password, if a file has it; the line end is not part of it."""

    def read() -> Secret:
        try:
            return Secret(Path(server.store_password_file).read_text("utf-8").rstrip("\r\n"))
        except (OSError, UnicodeError) as error:
            file = server.store_password_file
            raise StoreFailed(f"the password file {file} cannot be read: {why_unreadable(error)}") from None

    return read if server.store_password_file else None
