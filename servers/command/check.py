"""`check`: looks at settings and at what they name, and starts nothing."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from stat import S_IMODE
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import click

from cloudid_core.auth_method import config as auth_method
from cloudid_core.context.keyring import open_entry
from cloudid_core.errors import CloudidError, Refused, StoreFailed
from cloudid_core.forms.environment import FALLBACK, OVERRIDE, effective
from cloudid_core.forms.fields import fields_of
from cloudid_core.health import HealthProblem
from cloudid_core.secrets_engine import config as secrets_engine
from cloudid_core.store import keys
from cloudid_core.values.secret import Secret

from ..folders import read_folder
from ..host import Proxies, credential_in, why_unreachable
from ..machine import Platform, why_unreadable
from ..processes import AddressTaken, bind
from ..settings import OTHERS, ServerSettings, SettingsError, SettingsFile, doubts, master_key, read_settings
from ..stores import glance
from ..terminal import Exit, Format, Output, table, with_output
from .bootstrap import absent_store, database, is_store_lost, tracing_class
from .certificate import Validity, tls_context
from .settings_option import REQUIRED_SETTINGS

OK: Final = "ok"
NOTE: Final = "note"
UNSAFE: Final = "UNSAFE"
WRONG: Final = "WRONG"
FORMS: Final = (auth_method.Config, secrets_engine.Config)
Result: TypeAlias = tuple[str, str]
Found: TypeAlias = Iterator[Result]
"""Results with what was found. The text contains no secret, and says how to fix a problem."""

LEAST_FREE: Final = 16 << 20
"""Bytes that must be free where the store and the files of audit devices are."""
CONNECT_SECONDS: Final = 2.0
"""How long a connection to a member of etcd may take."""
LIKE: Final = 0.85
"""How like a variable must be to one of ours to be taken for it; 1: equal."""
HEADS: Final = ("result", "check", "found")


@click.command()
@REQUIRED_SETTINGS
@with_output(Format.TABLE)
def check(settings: Path, output: Output) -> int:
    """Check a settings file without starting a server.

    The command checks everything that the settings name: addresses, the store, the master key, the certificate, audit
    files and permissions. It opens a SQLite store with the master key, even while a server uses it. It only connects
    to a database, and for PostgreSQL it also checks who else may connect. The exit code is 1 if a server would not
    start or would be unsafe.
    """
    found = list(findings(settings))
    output.text(table(found, HEADS), [dict(zip(HEADS, row, strict=True)) for row in found])
    return Exit.FAILED if any(result in (UNSAFE, WRONG) for result, *_ in found) else Exit.DONE


def findings(path: Path) -> Iterator[tuple[str, str, str]]:
    """Result, check and what was found, of all looks at a settings file. A file that cannot be read is the only one."""
    try:
        file = read_settings(path)
    except SettingsError as error:
        yield WRONG, "settings", str(error)
        return
    yield OK, "settings", str(path)
    for name, look in LOOKS.items():
        try:
            for result, found in look(file):
                yield result, name, found
        except CloudidError as error:
            yield WRONG, name, str(error)
        except OSError as error:
            yield WRONG, name, f"{error.filename or name} cannot be used: {why_unreadable(error)}"
    for problem, occurrence in doubts(file.server).items():
        yield UNSAFE, problem.name.lower(), f"{problem.text(occurrence)}: {problem.remedy(occurrence)}"


def _environment(file: SettingsFile) -> Found:
    """The variables that change the configurations of mounts."""
    given = {
        name: Secret(value) for name, value in os.environ.items() if name.startswith((OVERRIDE, FALLBACK)) and value
    }
    known = {
        prefix + row.env for form in FORMS for row in fields_of(form) if row.env for prefix in (OVERRIDE, FALLBACK)
    }
    for form in FORMS:
        effective(form(), given)
    used = sorted(known & set(given))
    yield (
        OK,
        (f"variables that change configurations: {', '.join(used)}")
        if used
        else ("no variable changes a configuration"),
    )
    for name in sorted(set(given) - known):
        for meant in get_close_matches(name, known, 1, LIKE):
            yield NOTE, f"{name} has no effect; did you mean {meant}?"
    Proxies.of(file.server, Platform.of(file.server.metadata_address, os.environ).addresses)


def _listen(file: SettingsFile) -> Found:
    server = file.server
    yield _address(server.listen, f"{server.scheme}://{server.listen}")
    if server.metrics_listen:
        yield _address(server.metrics_listen, f"{server.metrics_listen}, only for metrics")


def _address(listen: str, text: str) -> Result:
    try:
        for listener in bind(listen):
            listener.close()
    except AddressTaken:
        return NOTE, f"{text}: already in use, perhaps by the server with these settings"
    return OK, text


def _store(file: SettingsFile) -> Found:
    server = file.server
    if server.is_in_database:
        yield from _database(server)
        return
    store = Path(server.store)
    if not store.parent.is_dir():
        yield WRONG, f"the folder {store.parent} does not exist: create it, accessible only to the server's user"
    elif not os.access(store.parent, os.W_OK | os.X_OK):
        yield WRONG, f"the folder {store.parent} is not writable: SQLite creates files beside the store"
    elif not store.exists():
        yield WRONG if is_store_lost(server) else NOTE, absent_store(server)
    elif not store.is_file():
        yield WRONG, f"{server.store_name} is not a file: name a file"
    elif not os.access(store, os.R_OK | os.W_OK):
        yield WRONG, f"{server.store_name} is not readable and writable by this user"
    else:
        yield OK, server.store_name
    if store.parent.is_dir():
        yield from _free_space(str(store.parent))


def _free_space(folder: str) -> Found:
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE:
        yield WRONG, f"the disk of {folder} is full: only {free >> 10} KiB are free, so make room for at least 16 MiB"


def _database(server: ServerSettings) -> Found:
    engine, address = database(server)
    if server.is_in_etcd:
        yield from _etcd_members(str(address), address.members)
        return
    try:
        public = engine.public_database(address)
    except StoreFailed as failure:
        yield WRONG, f"{address}: {failure}"
        return
    yield OK, str(address)
    if public:
        problem, occurrence = HealthProblem.DATABASE_PUBLIC, {"database": public}
        yield UNSAFE, f"{problem.text(occurrence)}: {problem.remedy(occurrence)}"


def _etcd_members(address: str, members: Sequence[str]) -> Found:
    """Whether the members of a cluster can be connected to. One is enough for a start."""
    reasons = {member: reason for member in members if (reason := _why_unconnected(member))}
    yield (WRONG if len(reasons) == len(members) else OK), address
    for member, reason in reasons.items():
        yield NOTE, f"{member} cannot be reached: {reason}"


def _why_unconnected(url: str) -> str:
    """Why no connection to the host and port of a URL can be made; empty if one can."""
    place = urlsplit(url)
    try:
        socket.create_connection((place.hostname or "", place.port or 0), CONNECT_SECONDS).close()
    except OSError as error:
        return why_unreachable(error, url).partition(": ")[2]
    return ""


def _master_key(file: SettingsFile) -> Found:
    server, key_file = file.server, master_key.key_file(file.server)
    if key_file and not (key_file.exists() or server.is_in_database or Path(server.store).exists()):
        yield NOTE, f"{key_file} does not exist yet: init creates it"
        return
    known = master_key.find(server)
    place = str(key_file or "from the environment, a command or the service manager")
    if server.is_in_database or not Path(server.store).exists():
        yield OK, place
        return
    try:
        opened = open_entry(file.settings(known), glance(Path(server.store), keys.RING, server.store_name))
    except Refused as refusal:
        yield (
            WRONG,
            (f"{place}: {refusal}: name the key of {server.store_name}, which after rekey --finish is the new one"),
        )
    else:
        yield OK, f"{place}; it opens {server.store_name}"
        if others := len(opened.root_keys) - 1:
            yield (
                NOTE,
                (
                    f"{others} more master key{'s' * (others > 1)} can open it: run rekey --finish to complete "
                    "the change"
                ),
            )


def _certificate(file: SettingsFile) -> Found:
    server = file.server
    if not server.tls_certificate:
        yield OK, "none: plain HTTP"
        return
    tls_context(server)
    validity = Validity.of(server.tls_certificate)
    if validity is None:
        yield NOTE, f"{server.tls_certificate}: its expiry is unknown, because only OpenSSL can read its format"
    else:
        yield WRONG if validity.is_wrong else NOTE if validity.needs_somebody else OK, str(validity)
    yield from _only_for_owner(server.tls_key)


def _permissions(file: SettingsFile) -> Found:
    """Files and folders whose contents or names others could change or read."""
    server = file.server
    folders = {
        str(Path(path).parent) for path in (server.key_file, *(() if server.is_in_database else (server.store,)))
    }
    for folder in sorted(folders):
        mode = _mode(folder)
        if mode & 0o022 and not mode & 0o1000:
            yield UNSAFE, f"other users can replace files in {folder} (mode {mode:04o}): run chmod go-w {folder}"
    if server.store_password_file:
        yield from _only_for_owner(server.store_password_file)


def _audit(file: SettingsFile) -> Found:
    server = file.server
    is_new = not (server.is_in_database or Path(server.store).exists())
    for device in file.audit:
        path = device.options.get("file_path", "")
        folder = os.path.dirname(path)
        if is_new and folder in server.audit_folders and not os.path.exists(folder):
            yield NOTE, f"the folder of {path} does not exist yet: init creates it"
        elif path.startswith("/") and not os.access(folder, os.W_OK | os.X_OK):
            yield WRONG, f"the folder of {path} does not exist or is not writable"
        elif path.startswith("/") and (reason := _why_no_log(path)):
            yield WRONG, f"{path} of {device.name} {reason}"
        else:
            yield OK, f"{device.name} of type {device.type}"
    paths = [device.options.get("file_path", "") for device in file.audit]
    for folder in sorted({os.path.dirname(path) for path in paths if path.startswith("/")}):
        if os.path.isdir(folder):
            yield from _free_space(folder)
    if not file.audit:
        yield NOTE, "the settings declare no device: cloudid read sys/audit lists those that requests enabled"
    command = server.audit_checkpoint_command
    if command and not shutil.which(command[0]):
        yield WRONG, f"the program {command[0]} of audit_checkpoint_command cannot be found"


def _why_no_log(path: str) -> str:
    """Why a server could not write to an audit file that exists; empty if it could."""
    if not os.path.lexists(path):
        return ""
    mode = os.lstat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISCHR(mode)):
        return "is not a file: name one that is"
    return "" if os.access(path, os.R_OK | os.W_OK) else "is not readable and writable by this user: change its mode"


def _tracing(file: SettingsFile) -> Found:
    if file.server.tracing:
        tracing_class()
        yield OK, "spans are exported as the OTEL_* variables configure"


def _publication(file: SettingsFile) -> Found:
    """Where the issuers' documents go. An address is not asked."""
    place, credential_file = file.server.publish_to, file.server.publish_credential_file
    if not place:
        return
    if "://" in place:
        credential_in(credential_file)
        yield OK, f"{place}; not contacted"
    elif os.access(place, os.W_OK | os.X_OK):
        yield OK, place
    else:
        yield WRONG, f"the folder {place} does not exist or is not writable: create it where the web server serves it"
    if credential_file:
        yield from _only_for_owner(credential_file)


def _folder(file: SettingsFile) -> Found:
    if folder := file.server.apply_folder:
        yield OK, f"{folder}: {len(read_folder(Path(folder)))} files"


def _only_for_owner(path: str) -> Found:
    if mode := _mode(path) & OTHERS:
        yield UNSAFE, f"other users can read or write {path} (mode {mode:04o}): run chmod 600 {path}"


def _mode(path: str) -> int:
    """Raises `OSError`."""
    return S_IMODE(os.stat(path).st_mode)


LOOKS: Final[Mapping[str, Callable[[SettingsFile], Found]]] = {
    "environment": _environment,
    "listen": _listen,
    "store": _store,
    "master key": _master_key,
    "certificate": _certificate,
    "permissions": _permissions,
    "audit": _audit,
    "tracing": _tracing,
    "publication": _publication,
    "folder": _folder,
}
