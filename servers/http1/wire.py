"""The wire: what an answer looks like, byte for byte, and who sent a request; the same for both servers.

`reader` is the other direction. (RFC 9110, RFC 9112.)
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final

from cloudid_core.messages.response import HEADERS, Response
from cloudid_core.values import network

from ..http_rules import NO_CONTENT, NO_LENGTH

LINGER_SECONDS: Final = 1.0
"""How long a client may keep sending after the last response. If cut off earlier, it might not read the response."""

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
MOST_HOPS: Final = 32
"""Most addresses of `X-Forwarded-For` that are looked at, the last ones: a client can send hundreds."""


def write(response: Response, *, is_head: bool, closes: bool) -> bytes:
    """The bytes of an answer. `is_head`: to a HEAD request, so without its body."""
    content = b"" if response.status in NO_CONTENT else response.body
    length = b"" if response.status in NO_LENGTH else b"content-length: %d\r\n" % len(content)
    end = b"connection: close\r\n\r\n" if closes else b"\r\n"
    if response.headers is HEADERS:
        start = _usual_start(response.status)
    else:
        start = _start(response.status, response.headers)
    return b"".join((start, length, _date_line(int(time.time())), end, b"" if is_head else content))


@lru_cache(64)
def _usual_start(status: int) -> bytes:
    return _start(status, HEADERS)


def _start(status: int, headers: Mapping[str, str]) -> bytes:
    lines = (_status_line(status), *(f"{name}: {value}\r\n" for name, value in headers.items()))
    return "".join(lines).encode("latin-1")


@lru_cache(64)
def _status_line(status: int) -> str:
    try:
        return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
    except ValueError:  # some statuses of health checks have no phrase
        return f"HTTP/1.1 {status} \r\n"


@lru_cache(1)
def _date_line(now: int) -> bytes:
    return f"date: {formatdate(now, usegmt=True)}\r\n".encode("ascii")


LONGEST_PORT: Final = 5


def remote_address(peer: str, headers: Mapping[str, str], trusted: tuple[str, ...]) -> str:
    """Who sent a request: the peer, or, where proxies are trusted, the last address that none of them vouches for.

    Of more than `MOST_HOPS` that are all trusted, it is the earliest one that is looked at.
    """
    if not trusted or not network.contains(trusted, peer):
        return peer
    address = peer
    hops = headers.get("x-forwarded-for", "").rsplit(",", MOST_HOPS)[-MOST_HOPS:]
    for hop in reversed(hops):
        found = _address(hop.strip())
        if not found:
            break
        address = found
        if not network.contains(trusted, address):
            break
    return address


def forwarded_port(address: str, headers: Mapping[str, str]) -> int:
    """The port that a proxy wrote beside an address in X-Forwarded-For; 0 if none did."""
    for hop in reversed(headers.get("x-forwarded-for", "").split(",")):
        text = hop.strip()
        if _address(text) == address:
            _, colon, port = text.rpartition(":")
            has_port = colon and (text.count(":") == 1 or "]:" in text)
            return int(port) if has_port and port.isascii() and port.isdigit() and len(port) <= LONGEST_PORT else 0
    return 0


def _address(hop: str) -> str:
    """An IP address as proxies write it, perhaps with a port; empty when it is none.

    An address with a zone (RFC 4007) is none: a zone means something on one machine only, and may be any text.
    """
    bracketed, closed, _ = hop.removeprefix("[").partition("]")
    text = bracketed if closed else hop.partition(":")[0] if hop.count(":") == 1 else hop
    try:
        return "" if "%" in text else str(ip_address(text))
    except ValueError:
        return ""
