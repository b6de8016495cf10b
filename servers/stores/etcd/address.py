"""Address: where the members are, below which prefix the store lies, and how members are trusted."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from attrs import field, frozen

from cloudid_core.errors import StoreFailed
from cloudid_core.values.secret import Secret

from ...machine import is_loopback

PORT: Final = 2379
FORM: Final = "etcd://HOST:PORT,HOST:PORT/PREFIX"
OPTIONS: Final = frozenset({"tls", "ca", "certificate", "key"})


@frozen
class Address:
    """`etcd://[USER@]HOST[:PORT],HOST…/PREFIX[?tls=true&ca=FILE&certificate=FILE&key=FILE]`, read."""

    members: tuple[str, ...]
    """The URL of each."""
    prefix: str
    tls: ssl.SSLContext | None = field(repr=False)
    user: str = ""
    password: Callable[[], Secret] | None = field(default=None, repr=False)
    """Reads the password of the user: it may change. Raises `StoreFailed`."""

    @classmethod
    def parse(cls, text: str, password: Callable[[], Secret] | None = None) -> Address:
        """Raises `StoreFailed`, without the text. A file that is named for TLS turns TLS on."""
        parts = urlsplit(text)
        user, _, netloc = parts.netloc.rpartition("@")
        prefix = unquote(parts.path).strip("/")
        places = netloc.split(",")
        try:
            options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
            found = [(urlsplit(f"//{place}").hostname, urlsplit(f"//{place}").port) for place in places]
        except ValueError:
            raise StoreFailed("the store's URL is malformed") from None
        unknown = sorted(options.keys() - OPTIONS)
        is_tls = bool(options) and options.get("tls") != "false"
        is_sent_in_clear = password is not None and not is_tls and not all(is_loopback(host or "") for host, _ in found)
        for is_wrong, reason in (
            (":" in user, "the store's URL must not contain a password: name a file in store_password_file"),
            (unknown, f"the store's address has options other than {', '.join(sorted(OPTIONS))}: {unknown[:1]}"),
            (not prefix or not all(host for host, _ in found), f"the store's URL must be {FORM}"),
            (options.get("tls", "true") not in ("true", "false"), "tls in the store's URL must be true or false"),
            (
                bool(user) != (password is not None),
                "an etcd user needs store_password_file, and a password needs USER@ in the URL",
            ),
            (is_sent_in_clear, "an etcd password is sent only over TLS: add ?tls=true to the store's URL"),
        ):
            if is_wrong:
                raise StoreFailed(reason)
        tls = _tls(options) if is_tls else None
        urls = (
            f"http{'s' * is_tls}://{place}" + ("" if port else f":{PORT}")
            for place, (_, port) in zip(places, found, strict=True)
        )
        return cls(tuple(urls), prefix, tls, unquote(user), password)

    def claim(self) -> dict[str, str]:
        """Who this node is. Blocks."""
        return {"name": self.user, "password": self.password().reveal() if self.password else ""}

    def __str__(self) -> str:
        return f"etcd://{','.join(member.partition('://')[2] for member in self.members)}/{self.prefix}"


def _tls(options: dict[str, str]) -> ssl.SSLContext:
    try:
        tls = ssl.create_default_context(cafile=options.get("ca"))
        if "certificate" in options:
            tls.load_cert_chain(options["certificate"], options.get("key"))
    except (OSError, ValueError) as error:
        raise StoreFailed(f"the TLS files of the store's address cannot be used ({type(error).__name__})") from None
    return tls
