"""The wire: what HTTP leaves to a server to decide, decided once for both servers.

Their libraries find the ends of messages; whether a head is acceptable and what an answer looks like, byte for byte, is
said here. (RFC 9110, RFC 9112.)
"""

from __future__ import annotations

import select
import time
from collections.abc import Iterable, Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final

from attrs import field, frozen

from cloudid_core.api.request import TARGET_LIMIT
from cloudid_core.api.response import HEADERS, Response, error_body
from cloudid_core.errors import Code, Refused
from cloudid_core.values import network

HEAD_LIMIT: Final = 16 * 1024
"""Longest head of a request, in bytes."""

LINGER_SECONDS: Final = 1.0
"""How long a refused client may go on sending before the connection is cut: it shall read the refusal first."""

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
TOO_MANY_CONNECTIONS: Final = Response(503, error_body(()), {**HEADERS, "retry-after": "1"})


@frozen
class Head:
    """The head of a request. Header names are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str] = field(repr=False)
    closes: bool
    """Whether the connection ends after the answer."""

    @property
    def expects_continue(self) -> bool:
        """Whether the client waits for a go-ahead before it sends a body."""
        has_body = "transfer-encoding" in self.headers or self.headers.get("content-length", "0") != "0"
        return has_body and self.headers.get("expect", "").lower() == "100-continue"


def read_head(method: bytes, target: bytes, version: bytes, fields: Iterable[tuple[bytes, bytes]]) -> Head:
    """A head that a parser has taken apart; `version` is like `1.1`. Raises `Refused`."""
    if len(target) > TARGET_LIMIT:
        raise Refused(Code.TARGET_TOO_LONG)
    headers: dict[str, str] = {}
    size = len(method) + len(target) + len("  HTTP/1.1\r\n\r\n")
    for raw_name, raw_value in fields:
        size += len(raw_name) + len(raw_value) + len(": \r\n")
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    if size > HEAD_LIMIT:
        raise Refused(Code.HEAD_TOO_LARGE)
    is_framed_twice = "transfer-encoding" in headers and ("content-length" in headers or version == b"1.0")
    if is_framed_twice or version not in (b"1.0", b"1.1") or method == b"CONNECT" or not target.isascii():
        raise Refused(Code.MALFORMED_REQUEST)
    connection = {token.strip().lower() for token in headers.get("connection", "").split(",")}
    closes = version == b"1.0" or "close" in connection
    return Head(method.decode("latin-1"), target.decode("ascii"), headers, closes)


def check_length(head: Head, limit: int) -> None:
    """Refuse a body that is announced to be too large, before it is sent."""
    length = head.headers.get("content-length", "")
    if length.isdecimal() and int(length) > limit:
        raise Refused(Code.BODY_TOO_LARGE)


def has_hung_up(socket: int) -> bool:
    """Whether the peer of a socket (its file number) has already closed it, as far as that is known here."""
    poll = select.poll()
    poll.register(socket, getattr(select, "POLLRDHUP", 0))
    return bool(poll.poll(0))


def write(response: Response, *, is_head: bool, closes: bool) -> bytes:
    """The bytes of an answer. `is_head`: to a HEAD request, so without its body."""
    lines = [_status_line(response.status)]
    lines += [f"{name}: {value}\r\n" for name, value in response.headers.items()]
    if response.status != 204:
        lines.append(f"content-length: {len(response.body)}\r\n")
    lines.append(_date_line(int(time.time())))
    lines.append("connection: close\r\n\r\n" if closes else "\r\n")
    head = "".join(lines).encode("latin-1")
    return head if is_head or response.status == 204 else head + response.body


@lru_cache(64)
def _status_line(status: int) -> str:
    try:
        return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
    except ValueError:  # some statuses of health checks have no phrase
        return f"HTTP/1.1 {status} \r\n"


@lru_cache(1)
def _date_line(now: int) -> str:
    return f"date: {formatdate(now, usegmt=True)}\r\n"


def remote_address(peer: str, headers: Mapping[str, str], trusted: tuple[str, ...]) -> str:
    """Who sent a request: the peer, or, where proxies are trusted, the last address that none of them vouches for."""
    if not trusted or not network.contains(trusted, peer):
        return peer
    address = peer
    for hop in reversed(headers.get("x-forwarded-for", "").split(",")):
        found = _address(hop.strip())
        if not found:
            break
        address = found
        if not network.contains(trusted, address):
            break
    return address


def _address(hop: str) -> str:
    """An IP address as proxies write it, perhaps with a port; empty when it is none."""
    bracketed, closed, _ = hop.removeprefix("[").partition("]")
    text = bracketed if closed else hop.partition(":")[0] if hop.count(":") == 1 else hop
    try:
        return str(ip_address(text))
    except ValueError:
        return ""
