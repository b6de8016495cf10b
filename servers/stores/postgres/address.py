"""Address: where the database is, as libpq's connection URIs have it, and how to reach it without a word of a secret.

https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping
from typing import Final

from attrs import field, frozen
from psycopg import OperationalError
from psycopg.pq import Conninfo
from psycopg.pq import version as pq_version

from cloudid_core.errors import StoreFailed
from cloudid_core.values.secret import Secret

from ...settings import weak_sslmode

_URI: Final = re.compile(r"postgres(?:ql)?://(?:[^@/?#\s]*@)?[^@\s]*")
"""No character that separates parts stands bare in a user or a password, where libpq would take the rest for a host."""

DEFAULTS: Final = {
    "fallback_application_name": "cloudid",
    "client_encoding": "UTF8",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}

FIRST_WITH_REQUIRE_AUTH: Final = 160_000


@frozen
class Address:
    """The connection options of a database, by their names in libpq. Its text shows neither password nor TLS files."""

    options: Mapping[str, str] = field(repr=False)
    password: Callable[[], Secret] | None = field(default=None, repr=False)
    """Reads the password for a connection: it may change. Raises `StoreFailed`."""

    @classmethod
    def parse(cls, text: str, password: Callable[[], Secret] | None = None) -> Address:
        """Read a connection URI; `password` goes before one that it holds. Raises `StoreFailed`, without its text.

        What is left out comes from libpq's environment variables (`PGPASSWORD`, `PGPASSFILE`, `PGHOST` …). Several
        hosts are tried in their order until one accepts writes, unless `target_session_attrs` says something else.
        Where another machine could pose as the database, it must prove that it knows the password (SCRAM), so that none
        passes in clear.
        """
        if not _URI.fullmatch(text):
            raise StoreFailed(
                "the store's URL is malformed: in user and password, write @ as %40, / as %2F, ? as %3F, # as %23"
            )
        try:
            parsed = Conninfo.parse(text.encode())
        except (OperationalError, UnicodeError):
            raise StoreFailed("the store's URL is not a PostgreSQL connection URI") from None
        options = {option.keyword.decode(): option.val.decode() for option in parsed if option.val is not None}
        if "," in options.get("host", ""):
            options.setdefault("target_session_attrs", "read-write")
        if pq_version() >= FIRST_WITH_REQUIRE_AUTH and weak_sslmode(text):
            options.setdefault("require_auth", "scram-sha-256")
        return cls({**DEFAULTS, **options}, password)

    def __str__(self) -> str:
        user, host, port = (self.options.get(name, "") for name in ("user", "host", "port"))
        places = f"{user}@" * bool(user) + host + f":{port}" * bool(port)
        return f"postgresql://{places}/{self.options.get('dbname', '')}"

    def conninfo(self) -> bytes:
        """The connection string for libpq."""
        quoted = (
            f"{name}='{value}'"
            for name, raw in self.options.items()
            if (value := raw.replace("\\", "\\\\").replace("'", "\\'"))
        )
        return " ".join(quoted).encode()

    def only(self, host: str, hostaddr: str, port: str) -> Address:
        """The same database at exactly this server, whatever it is at the moment."""
        exact = {"host": host, "hostaddr": hostaddr, "port": port, "target_session_attrs": "any"}
        return Address({**self.options, **exact})

    def resolved(self) -> Address:
        """The same address with the numbers of its hosts, and the password as it is now.

        Blocks: libpq itself would block the event loop here. Raises `StoreFailed` when no host is known.
        """
        known = {**self.options, "password": self.password().reveal()} if self.password else self.options
        default = {option.keyword.decode(): option.val.decode() for option in Conninfo.get_defaults() if option.val}
        names = self.options.get("host", default.get("host", ""))
        if not names or self.options.get("hostaddr", default.get("hostaddr", "")):
            return Address(known)
        hosts = names.split(",")
        ports = self.options.get("port", default.get("port", "")).split(",")
        if len(ports) == 1:
            ports *= len(hosts)
        found = [(host, number, port) for host, port in zip(hosts, ports, strict=False) for number in _numbers(host)]
        if not found:
            raise StoreFailed("the database's host is unknown")
        names, numbers, ports_found = (",".join(column) for column in zip(*found, strict=True))
        return Address({**known, "host": names, "hostaddr": numbers, "port": ports_found})


def _numbers(host: str) -> tuple[str, ...]:
    """The numeric addresses of a host; a folder of Unix sockets has an empty one."""
    if not host or host.startswith(("/", "@")):
        return ("",)
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # the latter for a name that no host can have
        return ()
    return tuple(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))
