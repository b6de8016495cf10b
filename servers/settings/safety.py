"""Safety: ways to run a server that give secrets away to others.

`init` and a server in memory refuse them. A store that exists is served: the log warns at the start, and health tells
it, until it is mended or a setting accepts it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from ipaddress import ip_address
from stat import S_IMODE, S_ISREG
from typing import Final

from cloudid_core.health.problems import HealthProblem, Occurrence

from .settings import ServerSettings, SettingsError, parse_address

OTHERS: Final = 0o077
"""The permissions of all but the owner of a file."""


def doubts(server: ServerSettings) -> Mapping[HealthProblem, Occurrence]:
    """What is unsafe, and not accepted by a setting."""
    found: dict[HealthProblem, Occurrence] = {}
    if server.is_store_misnamed:
        found[HealthProblem.STORE_MISNAMED] = {}
    mode = _mode(server)
    if mode & OTHERS and not server.allow_shared_store:
        found[HealthProblem.STORE_SHARED] = {"mode": f"{mode:04o}"}
    if not (server.tls_certificate or server.allow_plain_http or is_on_loopback(server.listen)):
        found[HealthProblem.PLAIN_HTTP] = {}
    return found


def refuse_doubts(server: ServerSettings) -> None:
    """Raises `SettingsError` with what is unsafe and what mends or accepts it. The name of a file is no reason."""
    for problem, occurrence in doubts(server).items():
        if problem is not HealthProblem.STORE_MISNAMED:
            raise SettingsError(f"{problem.text(occurrence)}: {problem.remedy(occurrence)}")


def refuse_exposed_dev(server: ServerSettings) -> None:
    """Raises `SettingsError` where a server for trying things out can be reached from elsewhere."""
    if not (server.allow_exposed_dev or is_on_loopback(server.listen)):
        raise SettingsError(
            "--dev is for this machine only, and others could reach it: listen on loopback, or set allow_exposed_dev"
        )


def is_on_loopback(listen: str) -> bool:
    """Whether only this machine reaches an address; a host that has no address is no danger."""
    host, _ = parse_address(listen)
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        return True
    return all(ip_address(str(address[0]).partition("%")[0]).is_loopback for *_, address in found)


def _mode(server: ServerSettings) -> int:
    """The permissions of the store's file; 0 where there is none. Those of a folder or a device mend nothing."""
    try:
        mode = 0 if server.is_in_database else os.stat(server.store).st_mode
        return S_IMODE(mode) if S_ISREG(mode) else 0
    except OSError:
        return 0
