"""Address: where the members are, below which prefix the store lies, and how members are trusted."""

from __future__ import annotations

import ssl
from ipaddress import ip_address
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from attrs import field, frozen

from cloudid_core.errors import StoreFailed
from cloudid_core.values.secret import Secret

PORT: Final = 2379
OPTIONS: Final = frozenset({"tls", "ca", "certificate", "key"})


@frozen
class Address:
    """`etcd://[USER@]HOST[:PORT],HOST…/PREFIX[?tls=true&ca=FILE&certificate=FILE&key=FILE]`, read."""

    members: tuple[str, ...]
    """The URL of each."""
    prefix: str
    tls: ssl.SSLContext | None = field(repr=False)
    user: str = ""
    password: Secret | None = None

    @classmethod
    def parse(cls, text: str, password: Secret | None = None) -> Address:
        """Raises `StoreFailed`, without the text. A file that is named for TLS turns TLS on."""
        parts = urlsplit(text)
        places, prefix = parts.netloc.rpartition("@")[2], unquote(parts.path).strip("/")
        user, colon, _ = parts.netloc.rpartition("@")[0].partition(":")
        try:
            options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
            ports = [urlsplit(f"//{place}").port for place in places.split(",")]
        except ValueError:
            raise StoreFailed("the store's address is malformed") from None
        if colon:
            raise StoreFailed("the store's address must hold no password: name a file in store_password_file")
        if unknown := sorted(options.keys() - OPTIONS):
            raise StoreFailed(
                f"the store's address has options other than {', '.join(sorted(OPTIONS))}: {unknown[0]!r}"
            )
        if not all(urlsplit(f"//{place}").hostname for place in places.split(",")) or not prefix:
            raise StoreFailed("the store's address must be etcd://HOST:PORT,HOST:PORT/PREFIX")
        if options.get("tls", "true") not in ("true", "false"):
            raise StoreFailed("the option tls of the store's address must be true or false")
        if bool(user) != (password is not None):
            raise StoreFailed("a user of etcd needs store_password_file, and a password needs USER@ in the address")
        tls = _tls(options) if options and options.get("tls") != "false" else None
        if password is not None and tls is None and not all(_is_this_machine(place) for place in places.split(",")):
            raise StoreFailed("a password of etcd travels by TLS alone: add ?tls=true to the store's address")
        scheme = "https" if tls else "http"
        members = [
            f"{scheme}://{place}" + ("" if port else f":{PORT}")
            for place, port in zip(places.split(","), ports, strict=True)
        ]
        return cls(tuple(members), prefix, tls, unquote(user), password)

    def __str__(self) -> str:
        return f"etcd://{','.join(member.partition('://')[2] for member in self.members)}/{self.prefix}"


def _is_this_machine(place: str) -> bool:
    host = urlsplit(f"//{place}").hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tls(options: dict[str, str]) -> ssl.SSLContext:
    try:
        tls = ssl.create_default_context(cafile=options.get("ca"))
        if "certificate" in options:
            tls.load_cert_chain(options["certificate"], options.get("key"))
    except (OSError, ValueError) as error:
        raise StoreFailed(f"the TLS files of the store's address cannot be used ({type(error).__name__})") from None
    return tls
