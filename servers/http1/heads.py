"""Heads: what the first lines of a request say.

h11 alone judges whether a head is well formed. Around it stands what RFC 9110 and RFC 9112 leave to a server, decided
strictly: what two readers could understand differently is refused.

**Verdicts are remembered.** For h11, a head is the same as another that differs only in the values of `content-length`,
of tokens and of request ids, as long as these are visible ASCII (digits, for the length). So these values are cut out,
and what is left is the key under which the verdict is kept. A token never is part of a key. Nearly all requests of a
client have one head in this sense; to look it up costs a tenth of reading it. Heads that hold neither tokens nor
request ids are remembered as a whole, too: many are repeated byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

import h11
import msgspec

from cloudid_core.caches import Bounded
from cloudid_core.errors import Code, Refused
from cloudid_core.messages.request import TARGET_LIMIT

from ..http_rules import joined

LINES_LIMIT: Final = 16 * 1024
"""Maximum bytes of the lines of a head, or of the trailers after a body, including the empty line."""

_BARE_LF: Final = re.compile(rb"(?<!\r)\n")
HEADS_KEPT: Final = 1024
LONGEST_KEPT: Final = 2048
"""Maximum bytes of a head whose verdict is cached."""

SECRETS: Final = frozenset({"authorization", "cookie", "proxy-authorization", "x-service-token", "x-vault-token"})
"""Headers whose values are never part of a cache key."""

_VARYING: Final = re.compile(
    rb"\r\n((?i:content-length|x-vault-token|x-service-token|authorization|x-request-id|traceparent)): ?"
    rb"([!-~]+(?:[\t ]+[!-~]+)*)(?=\r\n)"
)
_LINES: Final = re.compile(rb"(?:[!-\xff][\t\x20-\x7e\x80-\xff]*\r\n)+\r\n")
"""Lines that end in CRLF, contain no control character and are not folded."""

_LENGTH: Final = re.compile(rb"\r\ncontent-length:([^\r]*)(?=\r\n)", re.IGNORECASE)
"""Includes the blanks around the value. Without them, the pattern would try every way to divide a run of blanks."""

_HOST: Final = r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~%-]*)(?::[0-9]*)?"
_IS_HOST: Final = re.compile(_HOST).fullmatch
_ABSOLUTE: Final = re.compile(rf"(?P<scheme>[A-Za-z]+)://(?!/)(?:{_HOST})(?P<path>(?:[/?].*)?)").fullmatch
_DIGITS: Final = 18
"""A longer length is read as the largest number with this many digits, which exceeds every limit."""

Parts: TypeAlias = tuple[bytes, ...]
"""A head without its varying values, as text, name, text, name, and so on."""


class Head(msgspec.Struct, frozen=True):
    """The head of a request. Header names are lowercase, and headers with the same name are joined with a comma."""

    method: str
    target: str
    """The path and the query."""

    headers: Mapping[str, str]
    closes: bool
    """Whether the connection ends after the response."""

    length: int | None = 0
    """Bytes of the body. `None` means that it is sent in chunks."""

    expects_continue: bool = False
    """Whether the client waits for `100 Continue` before it sends the body."""

    def __repr__(self) -> str:
        return f"<Head {self.method} {self.target.partition('?')[0]}>"


class _Verdict(msgspec.Struct, frozen=True):
    """The result for all heads with the same parts."""

    head: Head
    """The head without the varying values."""

    names: tuple[str, ...]
    """The names of the headers whose values vary."""


class Heads:
    """Reads heads and caches verdicts. All connections of a server share one instance."""

    def __init__(self, scheme: str, kept: int = HEADS_KEPT) -> None:
        """`scheme` is what clients of this server write before `://`.

        `kept` is the number of cached verdicts; 0 disables the cache.
        """
        self._scheme = scheme
        self._is_forgetful = not kept
        self._verdicts: Bounded[Parts, _Verdict] = Bounded(kept)
        self._whole: Bounded[bytes, Head] = Bounded(kept)
        """Heads in which only the length of the body varies."""

    def read(self, head: bytes) -> Head:
        """Read a complete head, including the empty line. Raises `Refused`."""
        if len(head) > LONGEST_KEPT or self._is_forgetful:
            return read_head(head, self._scheme)
        whole = self._whole.get(head)
        if whole is not None:
            return whole
        parts = _VARYING.split(head)
        values = parts[2::3]
        del parts[2::3]
        key = tuple(parts)
        verdict = self._verdicts.get(key)
        if verdict is not None:
            read = _restored(verdict, values)
        else:
            read = read_head(head, self._scheme)
            verdict = _verdict(read, key, values)
            if verdict is None:
                return read
            self._verdicts.put(key, verdict)
        if not verdict.names or verdict.names == ("content-length",):
            self._whole.put(head, read)
        return read

    def __len__(self) -> int:
        return len(self._verdicts)


def _verdict(head: Head, parts: Parts, values: list[bytes]) -> _Verdict | None:
    """Return the verdict for all heads with these parts, or `None` if they cannot share one or a part is a secret."""
    names = tuple(name.decode("ascii").lower() for name in parts[1::2])
    varying = {name: value.decode("ascii") for name, value in zip(names, values, strict=True)}
    if (
        head.length is None
        or "?" in head.target
        or {"expect", "upgrade"} & head.headers.keys()
        or (SECRETS & head.headers.keys()) - varying.keys()
        or len(varying) < len(names)
        or any(head.headers[name] != value for name, value in varying.items())
    ):
        return None
    fixed = {name: value for name, value in head.headers.items() if name not in varying}
    return _Verdict(msgspec.structs.replace(head, headers=fixed), names)


def _restored(verdict: _Verdict, values: list[bytes]) -> Head:
    """Return the head with these values. Raises `Refused`."""
    head = verdict.head
    headers, length = dict(head.headers), head.length
    for name, value in zip(verdict.names, values, strict=True):
        headers[name] = value.decode("ascii")
        if name == "content-length":
            if not value.isdigit():
                raise Refused(Code.MALFORMED_REQUEST)
            length = _length(value)
    return Head(head.method, head.target, headers, head.closes, length)


def read_head(head: bytes, scheme: str) -> Head:
    """Read a complete head without the cache. Raises `Refused`."""
    lengths = [value.strip(b"\t ") for value in _LENGTH.findall(head)]
    if not _LINES.fullmatch(head) or len(lengths) > 1 or (lengths and not lengths[0].isdigit()):
        raise Refused(Code.MALFORMED_REQUEST)
    request = _judge(_LENGTH.sub(b"\r\ncontent-length: 0", head))  # h11 bounds its digits, we bound the number
    headers = joined(request.headers)
    if lengths:
        headers["content-length"] = lengths[0].decode("ascii")
    is_chunked = "transfer-encoding" in headers
    is_old = request.http_version == b"1.0"
    if (
        not request.http_version.startswith(b"1.")
        or (is_chunked and (lengths or is_old))
        or not (is_old or "host" in headers)
        or not _IS_HOST(headers.get("host", ""))
    ):
        raise Refused(Code.MALFORMED_REQUEST)
    method, target = request.method.decode("ascii"), _origin_form(request, scheme)
    if len(request.target) > TARGET_LIMIT:
        raise Refused(Code.TARGET_TOO_LONG)
    length = None if is_chunked else _length(lengths[0]) if lengths else 0
    connection = {token.strip().lower() for token in headers.get("connection", "").split(",")}
    expects_continue = length != 0 and not is_old and headers.get("expect", "").lower() == "100-continue"
    return Head(method, target, headers, is_old or "close" in connection, length, expects_continue)


def _judge(head: bytes) -> h11.Request:
    parser = h11.Connection(h11.SERVER, LINES_LIMIT)
    parser.receive_data(head)
    try:
        request = parser.next_event()
    except h11.RemoteProtocolError:
        raise Refused(Code.MALFORMED_REQUEST) from None
    if not isinstance(request, h11.Request):
        raise Refused(Code.MALFORMED_REQUEST)
    return request


def _origin_form(request: h11.Request, scheme: str) -> str:
    """Return the target as path and query, whatever its form (RFC 9112, section 3.2)."""
    target = request.target.decode("ascii")
    if target.startswith("/") and "#" not in target:
        return target
    absolute = _ABSOLUTE(target)
    if absolute and absolute["scheme"].lower() == scheme and "#" not in target:
        path = absolute["path"]
        return path if path.startswith("/") else f"/{path}"
    if target == "*" and request.method == b"OPTIONS":
        return target
    raise Refused(Code.MALFORMED_REQUEST)


def _length(digits: bytes) -> int:
    significant = digits.lstrip(b"0")
    return int(significant or b"0") if len(significant) <= _DIGITS else 10**_DIGITS


def find_end(buffer: bytearray, searched: int = 0) -> int:
    """Return the length of the lines, including the empty line, or 0 if the empty line has not arrived yet.

    The caller checks the limit. The first `searched` bytes were already searched. Raises `Refused` for a line that ends
    in LF alone, because the end of such lines might never arrive.
    """
    end = buffer.find(b"\r\n\r\n", max(0, searched - 3), LINES_LIMIT)
    if end >= 0:
        return end + 4
    if _BARE_LF.search(buffer, searched, LINES_LIMIT):
        raise Refused(Code.MALFORMED_REQUEST)
    return 0
