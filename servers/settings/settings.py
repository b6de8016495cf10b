"""Settings: the file that an operator writes, its tables, and their documentation.

`[server]` is declared here, `[service]` by the core, and `[clouds.<Name>]` changes endpoints of one environment. Every
key may be left out; an unknown one is an error.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import attrs
import msgspec
from attrs import evolve, frozen

from cloudid_core.audit.device import STDOUT, DeclaredDevice
from cloudid_core.clouds import CLOUDS, Cloud, environment_name
from cloudid_core.errors import CloudidError, Refused
from cloudid_core.forms.fields import (
    BOOLEAN,
    INTEGER,
    PRECISE_SECONDS,
    SECRET,
    TEXT,
    TEXTS,
    FieldType,
    bounded,
    fields_of,
    one_of,
    parse,
    setting,
)
from cloudid_core.policies import ROOT, normalised
from cloudid_core.settings import LOOPBACK, Settings
from cloudid_core.system.audit import check
from cloudid_core.tokens import POLICIES
from cloudid_core.values.coercion import text
from cloudid_core.values.names import mount_path
from cloudid_core.values.secret import Secret

from ..machine import METADATA_ADDRESS

MASTER_KEY_VARIABLE: Final = "CLOUDID_MASTER_KEY"
DATABASES: Final = ("postgresql://", "postgres://", "etcd://")
RELOADED: Final = ("log_level", "tls_certificate", "tls_key")
"""Settings that SIGHUP reloads. TLS cannot be switched on or off without a restart."""


def http_address(raw: object) -> str:
    """The address of a server, with nothing behind its path. Raises `ValueError`."""
    address = text(raw)
    try:
        parts = urlsplit(address)
        is_valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # of the port or of an IPv6 address
        is_valid = False
    if not is_valid or not re.fullmatch("[!-~]+", address) or parts.query or parts.fragment:
        raise ValueError("must be a URL such as http://HOST:PORT")
    return address


HTTP_ADDRESS: Final = FieldType("http address", lambda raw: http_address(raw).rstrip("/") if text(raw) else "")


def _place(raw: object) -> str:
    """A folder, or an address as http_address has it, which holds no secret."""
    place = text(raw)
    if "://" not in place:
        return place
    if "@" in place or not (place.startswith("https://") or LOOPBACK.fullmatch(place)):
        raise ValueError("must be a folder, or an https URL without a user; http is only for loopback")
    return http_address(place).rstrip("/")


PLACE: Final = FieldType("folder or https URL", _place)
PATH: Final = FieldType("path", text)
STORE: Final = FieldType("path or URL", text)
MOVED: Final = ("provider_read_rate",)
"""Settings of the service that once stood below `[server]`."""

TIMEOUT: Final = bounded(PRECISE_SECONDS, 0.1, 86_400.0)

_LIKE_ADDRESS: Final = re.compile(
    r"[a-z][a-z0-9+.-]*:/|:[^/]*@|=.*\s|\s.*=|(host|hostaddr|port|dbname|user|password|passfile|service)\s*=",
    re.DOTALL | re.IGNORECASE,
)


def is_like_address(store: str) -> bool:
    """Whether a store that is no address of ours looks like one, so that its text may have a password."""
    return _LIKE_ADDRESS.search(store) is not None


class SettingsError(CloudidError):
    """The settings cannot be used; the text says why."""


@frozen(kw_only=True)
class ServerSettings:
    """The `[server]` table: what concerns a server and not the service behind it. Paths start at the file's folder."""

    listen: str = setting(TEXT, "127.0.0.1:8200", "The address to listen on, `HOST:PORT`. Port 0 chooses a free port.")
    metrics_listen: str = setting(
        TEXT,
        "",
        "An extra address, `HOST:PORT`, for Prometheus: it returns only metrics, without a token, by "
        "plain HTTP. Empty: none; `sys/metrics` is always available at `listen`.",
    )
    ui: bool = setting(BOOLEAN, False, "Serve the web page, which needs a token, at `/ui/`. `dev` always serves it.")
    tracing: bool = setting(
        BOOLEAN,
        False,
        "Export spans with OpenTelemetry, as the `OTEL_*` environment variables configure. Needs the extra `otel`.",
    )
    trust_trace_headers: bool = setting(
        BOOLEAN,
        False,
        "With `tracing`, continue the trace in a caller's `traceparent` header, which also decides "
        "whether the request is sampled. Callers need no token for that, so set it only behind a proxy that "
        "replaces the header.",
    )
    tls_certificate: str = setting(PATH, "", "PEM file with the certificate chain. Requires `tls_key`. Empty: no TLS.")
    tls_key: str = setting(PATH, "", "PEM file with the private key of the certificate. It may be the same file.")
    store: str = setting(
        STORE,
        "cloudid.sqlite",
        "The store: the path of a SQLite file, the `postgresql://` URL of a database, or the "
        "`etcd://HOST:PORT,HOST:PORT/PREFIX` URL of a cluster.",
        repr=False,
    )
    store_password_file: str = setting(
        PATH,
        "",
        "File with the database's password, which is read for each connection. Empty: `PGPASSWORD`, "
        "`PGPASSFILE` or libpq's other sources.",
    )
    store_mode: str = setting(
        one_of("keys", "portable"),
        "keys",
        "How `init` creates the store in a database: `keys` for PostgreSQL, `portable` for databases "
        "that are only compatible with its protocol.",
    )
    allow_shared_store: bool = setting(
        BOOLEAN, False, "Accept a SQLite file that users other than its owner can access."
    )
    allow_plain_http: bool = setting(
        BOOLEAN,
        False,
        "Accept plain HTTP beyond loopback, for example behind a proxy that terminates TLS on a trusted network.",
    )
    allow_exposed_database: bool = setting(
        BOOLEAN,
        False,
        "Accept a connection to PostgreSQL beyond loopback whose `sslmode` is not `verify-full`, for "
        "example on a trusted network.",
    )
    allow_exposed_dev: bool = setting(BOOLEAN, False, "Accept `--dev` beyond loopback.")
    key_file: str = setting(
        PATH,
        "cloudid.key",
        f"File with the master key. The environment variable {MASTER_KEY_VARIABLE} and systemd's "
        "credential `cloudid.key` take precedence.",
    )
    master_key_command: str = setting(
        TEXT,
        "",
        "Command that prints the master key, for example from a key service. It takes precedence over "
        "`key_file`, and runs without a shell and with few environment variables.",
    )
    allow_shared_key_file: bool = setting(
        BOOLEAN, False, "Accept a key file that users other than its owner can read, as orchestrators mount it."
    )
    publish_to: str = setting(
        PLACE,
        "",
        "Where to publish the issuers' documents, if Azure cannot reach this server: a folder that a web "
        "server serves at the URL `issuer`, or an https URL that accepts PUT. Empty: they are read from this "
        "server.",
    )
    publish_credential_file: str = setting(
        PATH,
        "",
        "File with the credentials for PUT and GET at `publish_to`: HTTP headers, one per line, or a "
        "query that begins with `?`.",
    )
    metadata_address: str = setting(HTTP_ADDRESS, METADATA_ADDRESS, "URL of this machine's metadata service.")
    provider_proxy: Secret = setting(
        SECRET,
        Secret(),
        "Proxy for calls to Azure, `http://HOST:PORT`. `direct`: no proxy. Empty: use the environment "
        "variables HTTPS_PROXY, HTTP_PROXY and ALL_PROXY. Hosts in NO_PROXY, loopback and metadata addresses "
        "are always called directly.",
    )
    connection_limit: int = setting(
        bounded(INTEGER, 1, 2**16),
        1024,
        "Maximum open connections. At the limit, the client address (for IPv6, the /64) with the most "
        "connections loses one: an idle connection first, and a connection whose request has a verified "
        "token last. Connections of a trusted proxy are counted separately. Ten more may request "
        "`sys/health`.",
    )
    body_memory: int = setting(
        bounded(INTEGER, 2**20, 2**40),
        2**26,
        "Maximum bytes of request bodies in memory, in addition to 16 KiB for each connection. At the "
        "limit, the client address with the most bytes loses its oldest body. At least `body_limit`.",
    )
    head_timeout: float = setting(TIMEOUT, 10.0, "Timeout for receiving the head of a request.")
    body_timeout: float = setting(TIMEOUT, 30.0, "Timeout for receiving the body of a request.")
    idle_timeout: float = setting(TIMEOUT, 300.0, "How long a connection may be idle.")
    write_timeout: float = setting(TIMEOUT, 30.0, "Timeout for sending a response.")
    audit_directory: str = setting(
        PATH,
        "",
        "Folder for the audit files of devices that requests enable. Empty: `audit` beside a SQLite "
        "store; with a database, none.",
    )
    audit_checkpoint_command: tuple[str, ...] = setting(
        TEXTS,
        (),
        "Program and arguments to run for each checkpoint of the audit devices, which it gets on "
        "standard input. It runs with few environment variables.",
    )
    apply_folder: str = setting(
        PATH,
        "",
        "Folder that the server applies automatically when it takes over the background work, which "
        "includes the start, and after SIGHUP. Anyone who can write to it has the rights of "
        "`apply_policies`. Empty: none.",
    )
    apply_folder_id: str = setting(
        TEXT, "", "Id of `apply_folder`, 32 hexadecimal digits. Empty: the server stores it in the folder."
    )
    apply_secrets: str = setting(
        PATH, "", "Folder for the files with secrets that `apply_folder` may name. Empty: none."
    )
    apply_policies: tuple[str, ...] = setting(
        POLICIES, ("apply",), "Policies of the token with which the server applies the folder. `root` is not allowed."
    )
    apply_prune: bool = setting(
        BOOLEAN,
        False,
        "Also delete objects that the folder created and no longer contains, except mounts, like "
        "`cloudid apply --prune`.",
    )
    drain: float = setting(
        bounded(PRECISE_SECONDS, 0.0, 3600.0),
        30.0,
        "How long current requests may take after the server was asked to stop.",
    )
    log_level: str = setting(one_of("debug", "info", "warning", "error"), "info", "Minimum severity of events to log.")
    log_format: str = setting(
        one_of("auto", "json", "terminal"),
        "auto",
        "Format of the log: JSON lines, or columns for people. `auto`: columns if stderr is a terminal.",
    )

    is_store_misnamed: bool = False
    """The file of the store has a name that would be refused if it did not exist: nothing shows it."""

    @property
    def is_in_database(self) -> bool:
        """Whether `store` is an address, and not a file."""
        return self.store.startswith(DATABASES)

    @property
    def is_in_etcd(self) -> bool:
        """Whether that database is etcd."""
        return self.store.startswith("etcd://")

    @property
    def is_in_postgres(self) -> bool:
        return self.is_in_database and not self.is_in_etcd

    @property
    def store_name(self) -> str:
        """The store without user, password and options, to be shown."""
        if self.is_store_misnamed:
            return "the store"
        if not self.is_in_database:
            return self.store
        return re.sub(r"(?<=//).*@", "", self.store, flags=re.DOTALL).partition("?")[0]

    @property
    def audit_folders(self) -> tuple[str, ...]:
        """Below which folders requests may have audit files; absolute."""
        if self.audit_directory:
            return (os.path.abspath(self.audit_directory),)
        return () if self.is_in_database else (os.path.join(os.path.dirname(os.path.abspath(self.store)), "audit"),)

    @property
    def address(self) -> tuple[str, int]:
        return parse_address(self.listen)

    @property
    def scheme(self) -> str:
        return "https" if self.tls_certificate else "http"


@frozen(kw_only=True)
class SettingsFile:
    """A file of settings, read. The master key and the process environment are not part of it."""

    server: ServerSettings = ServerSettings()
    service: Mapping[str, Any] = attrs.field(factory=dict)
    clouds: Mapping[str, Cloud] = CLOUDS
    audit: tuple[DeclaredDevice, ...] = ()

    def settings(self, master_key: Secret) -> Settings:
        """The core's settings. The `CLOUD_*` and `AZURE_*` variables of the process environment are part of them."""
        environment = {
            name: Secret(value) for name, value in os.environ.items() if name.startswith(("CLOUD_", "AZURE_"))
        }
        return Settings(
            master_key=master_key,
            environment=environment,
            clouds=self.clouds,
            audit_devices=self.audit,
            audit_folders=self.server.audit_folders,
            publishes_to=self.server.publish_to,
            **self.service,
        )


def read_settings(given: Path | Mapping[str, Any]) -> SettingsFile:
    """A TOML file, or what such a file would hold; paths start at the working folder then. Raises `SettingsError`."""
    return read_file(given) if isinstance(given, Path) else _file_of(deepcopy(dict(given)), Path.cwd())


def read_file(path: Path) -> SettingsFile:
    """Read a TOML file. Raises `SettingsError`."""
    try:
        document = tomllib.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SettingsError(f"{path}: {reason}") from None
    try:
        return _file_of(document, path.parent)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None


def _file_of(document: dict[str, Any], folder: Path) -> SettingsFile:
    _move_settings(document)
    server = ServerSettings(**_table("server", ServerSettings, document.pop("server", {})))
    service = _table("service", Settings, document.pop("service", {}))
    clouds = dict(CLOUDS)
    for name, table in _tables("clouds", document.pop("clouds", {})).items():
        try:
            name = environment_name(name)
            clouds[name] = _changed(clouds[name], table)
        except ValueError as error:
            raise SettingsError(f"[clouds.{name}] {error}") from None
    audit = tuple(_device(name, table, folder) for name, table in _tables("audit", document.pop("audit", {})).items())
    _refuse_unknown("", document)
    address = parse_address(server.listen)
    if server.metrics_listen and parse_address(server.metrics_listen) == address and address[1]:
        raise SettingsError('[server] "metrics_listen" must differ from "listen" in its address or port')
    if bool(server.tls_certificate) != bool(server.tls_key):
        given, missing = ("tls_certificate", "tls_key") if server.tls_certificate else ("tls_key", "tls_certificate")
        raise SettingsError(f'[server] "{given}" needs "{missing}": set both for TLS, or neither')
    if ROOT in normalised(server.apply_policies):
        raise SettingsError(
            '[server] "apply_policies" must not contain root: name a policy that allows what the folder needs'
        )
    largest = service.get("body_limit", attrs.fields(Settings).body_limit.default)
    if largest > server.body_memory:
        raise SettingsError(f'[server] "body_memory" must be at least [service] "body_limit", which is {largest}')
    longest = service.get("max_lease_ttl", attrs.fields(Settings).max_lease_ttl.default)
    if service.get("default_lease_ttl", 0) > longest:
        raise SettingsError(f'[service] "default_lease_ttl" must be at most "max_lease_ttl", which is {longest} s')
    paths: dict[str, Any] = {
        row.name: str(folder / value)
        for row in fields_of(ServerSettings)
        if row.kind in (PATH, STORE, PLACE) and (value := getattr(server, row.name))
    }
    if server.is_in_database:
        del paths["store"]
    if "://" in server.publish_to:
        del paths["publish_to"]
    is_misnamed = not server.is_in_database and is_like_address(server.store)
    if is_misnamed and not os.path.exists(paths["store"]):
        raise SettingsError(
            '[server] "store" must be the postgresql://, postgres:// or etcd:// URL of a database, or a '
            "plain path, but not a libpq connection string or a URL of another scheme"
        )
    server = evolve(server, **paths, is_store_misnamed=is_misnamed)
    return SettingsFile(server=server, service=service, clouds=clouds, audit=audit)


def _move_settings(document: dict[str, Any]) -> None:
    """Put settings where they stand now: files for an earlier version still work."""
    server, service = document.get("server"), document.setdefault("service", {})
    if isinstance(server, dict) and isinstance(service, dict):
        for name in MOVED:
            if name in server:
                service.setdefault(name, server.pop(name))


def _table(name: str, form: type, table: Any) -> Mapping[str, Any]:
    if not isinstance(table, dict):
        raise SettingsError(f"[{name}] is not a table")
    try:
        given = parse(form, table)
    except Refused as refusal:
        raise SettingsError(f"[{name}] " + "; ".join(problem.detail for problem in refusal.problems)) from None
    _refuse_unknown(f"[{name}] ", given.ignored, [row.name for row in fields_of(form)])
    return {name: value for name, value in given.values.items() if value != ""}  # an empty text is no text


def _tables(name: str, tables: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise SettingsError(f"[{name}] holds something that is not a table")
    return tables


def _device(name: str, table: dict[str, Any], folder: Path) -> DeclaredDevice:
    """An audit device: its type, a description, and all other keys are its options."""
    try:
        type_name, description = text(table.pop("type", "")), text(table.pop("description", ""))
        options = {option: _option(option, value) for option, value in table.items()}
        path = options.get("file_path", STDOUT)
        if path != STDOUT:
            options["file_path"] = str((folder / path).absolute())
        device = DeclaredDevice(name=mount_path(name), type=type_name, description=description, options=options)
        check(device, "this table")
    except (ValueError, Refused) as error:
        raise SettingsError(f"[audit.{name}] {error}") from None
    return device


def _option(name: str, value: object) -> str:
    try:
        return text(value)
    except ValueError as error:
        raise ValueError(f'"{name}" {error}: write the options of a device in its table') from None


def _changed(cloud: Cloud, table: dict[str, Any]) -> Cloud:
    endpoints = set(Cloud.__struct_fields__)
    for name, value in table.items():
        if name not in endpoints:
            raise ValueError(f'"{name}" is unknown')
        try:
            http_address(value)
        except ValueError as error:
            raise ValueError(f'"{name}" {error}') from None
    return msgspec.structs.replace(
        cloud, **{n: v if n == "resource_audience" else v.rstrip("/") for n, v in table.items()}
    )


def _refuse_unknown(where: str, names: Iterable[str], known: Sequence[str] = ()) -> None:
    for name in names:
        meant = "".join(f': is "{like}" meant?' for like in get_close_matches(name, known, 1))
        raise SettingsError(f'{where}"{name}" is unknown{meant}')


def clouds_at(provider: str) -> Mapping[str, Cloud]:
    """Every environment at one address, as the provider simulator has them."""
    at = provider.rstrip("/")
    return {
        name: msgspec.structs.replace(cloud, login=f"{at}/login", resource_manager=f"{at}/arm", directory=f"{at}/graph")
        for name, cloud in CLOUDS.items()
    }


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`; an IPv6 address is in brackets. Raises `SettingsError`."""
    found = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([^:\[\]/\s]+)):([0-9]{1,5})", text)
    if found is None or int(found[3]) > 65535:
        raise SettingsError(f"{text} is not HOST:PORT")
    return found[1] or found[2], int(found[3])
