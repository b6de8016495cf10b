"""Safety: ways to run a server that give secrets away to others.

`init` and a server in memory refuse them. A store that exists is served: the log warns at the start, and health reports
it, until it is fixed or a setting accepts it.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from ipaddress import ip_address
from stat import S_IMODE, S_ISREG
from typing import Final
from urllib.parse import parse_qs, unquote

from cloudid_core.health.problems import HealthProblem, Occurrence

from .settings import ServerSettings, SettingsError, parse_address

OTHERS: Final = 0o077
"""The permissions of all but the owner of a file."""
WRITABLE: Final = 0o022
"""The permission to write of all but the owner."""
REPORTED: Final = frozenset({HealthProblem.STORE_MISNAMED, HealthProblem.FOLDER_WRITABLE})
"""Found when the server runs: neither the name of a file nor the mode of a folder is a reason not to make a store."""


def doubts(server: ServerSettings) -> Mapping[HealthProblem, Occurrence]:
    """What is unsafe, and not accepted by a setting."""
    found: dict[HealthProblem, Occurrence] = {}
    if server.is_store_misnamed:
        found[HealthProblem.STORE_MISNAMED] = {}
    mode = _mode(server)
    if mode & OTHERS and not server.allow_shared_store:
        found[HealthProblem.STORE_SHARED] = {"mode": f"{mode:04o}", "path": server.store_name}
    if writable := [folder for folder in trusted_folders(server) if is_writable_by_others(folder)]:
        found[HealthProblem.FOLDER_WRITABLE] = {"folders": ", ".join(writable)}
    if not (server.tls_certificate or server.allow_plain_http or is_on_loopback(server.listen)):
        found[HealthProblem.PLAIN_HTTP] = {}
    sslmode = weak_sslmode(server.store) if server.is_in_postgres else ""
    if sslmode and not server.allow_exposed_database:
        found[HealthProblem.DATABASE_EXPOSED] = {"mode": sslmode}
    return found


def refuse_doubts(server: ServerSettings) -> None:
    """Raise `SettingsError` with what is unsafe and what corrects it. What is `REPORTED` does not prevent a start."""
    for problem, occurrence in doubts(server).items():
        if problem not in REPORTED:
            raise SettingsError(f"{problem.text(occurrence)}: {problem.remedy(occurrence)}")


def trusted_folders(server: ServerSettings) -> list[str]:
    """Return the folders whose writers can act through the server: what it applies, and what its issuer publishes."""
    published = "" if "://" in server.publish_to else server.publish_to
    return [folder for folder in (server.apply_folder, server.apply_secrets, published) if folder]


def is_writable_by_others(folder: str) -> bool:
    """Return whether another user than the server's own, or root, can write to a folder. One that is absent cannot."""
    try:
        found = os.stat(folder)
    except OSError:
        return False
    return bool(found.st_mode & WRITABLE) or found.st_uid not in {os.geteuid(), 0}


def refuse_exposed_dev(server: ServerSettings) -> None:
    """Raises `SettingsError` where a server for trying things out can be reached from elsewhere."""
    if not (server.allow_exposed_dev or is_on_loopback(server.listen)):
        raise SettingsError(
            "--dev must not be reachable from other machines: listen on loopback, or set allow_exposed_dev"
        )


def is_on_loopback(listen: str) -> bool:
    """Whether only this machine reaches an address; a host that has no address is no danger."""
    host, _ = parse_address(listen)
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        return True
    return all(ip_address(str(address[0]).partition("%")[0]).is_loopback for *_, address in found)


def weak_sslmode(address: str) -> str:
    """The `sslmode` of a connection to PostgreSQL that leaves this machine without `verify-full`; empty: it is safe.

    A service file of libpq is not read: what it sets goes into the address, or is accepted by the setting.
    """
    location, _, query = address.partition("://")[2].partition("?")
    options = {name: values[-1] for name, values in parse_qs(query).items()}
    default = "verify-full" if options.get("sslrootcert", os.environ.get("PGSSLROOTCERT")) == "system" else "prefer"
    mode = options.get("sslmode") or os.environ.get("PGSSLMODE") or default
    named = re.sub(r":\d*(?=,|$)", "", location.partition("/")[0].rpartition("@")[2])
    hosts = options.get("hostaddr") or options.get("host") or named
    hosts = hosts or os.environ.get("PGHOSTADDR") or os.environ.get("PGHOST") or ""
    is_local = all(_is_local_host(unquote(host)) for host in hosts.split(","))
    return "" if is_local or mode == "verify-full" else mode


def _is_local_host(host: str) -> bool:
    """Whether a host of libpq is this machine: a folder of Unix sockets, as without a host, or a loopback address."""
    bare = host.strip("[]")
    if not bare or bare.startswith(("/", "@")) or bare == "localhost":
        return True
    try:
        return ip_address(bare.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _mode(server: ServerSettings) -> int:
    """The permissions of the store's file; 0 where there is none. Those of a folder or a device cannot be fixed."""
    try:
        mode = 0 if server.is_in_database else os.stat(server.store).st_mode
        return S_IMODE(mode) if S_ISREG(mode) else 0
    except OSError:
        return 0
