"""What both servers do with the bytes that a client sends: one table, strictly by RFC 9110 and RFC 9112.

Where an RFC leaves a choice, the table takes the one that is safest beside a proxy: what two readers could understand
differently is refused with 400, and the connection ends. A refusal is a JSON error of our own. Statuses are only those
that the service has: 400 also stands where RFC 9112 would rather have 501 or 505.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from attrs import frozen

HEAD_LIMIT: Final = 16 * 1024
"""Longest head in bytes: from the request line to the empty line, both included."""

TARGET_LIMIT: Final = 8192
BODY_LIMIT: Final = 1024 * 1024
ENDLESS: Final = 4 * HEAD_LIMIT
"""More bytes than a server keeps of what does not end."""

REFUSALS: Final = {
    400: "malformed_request",
    408: "client_too_slow",
    413: "body_too_large",
    414: "target_too_long",
    431: "head_too_large",
}
"""The error code of each status with which a server itself refuses a request."""

PUBLIC: Final = "/v1/sys/seal-status"
"""Needs no token; always answers the same."""

LOGIN: Final = "/v1/auth/cloud/login"
ECHO: Final = "/v1/sys/capabilities-self"
"""Answers the paths that it was asked about: a body that was misread does not come back."""

ECHOED: Final = b'{"paths": ["echo/abc"]}'
HOST: Final = b"Host: test"
TOKEN: Final = b"X-Vault-Token: root"

Piece: TypeAlias = bytes | int
"""Bytes to send, or the status of an answer to wait for before the next piece is sent."""


@frozen
class Case:
    """One connection: what is sent, and everything that comes back."""

    name: str
    section: str
    """Where RFC 9110 or RFC 9112 decides it."""

    sent: tuple[Piece, ...]
    statuses: tuple[int, ...]
    """Of the answers, in order. None: the server closes the connection without a word."""

    closes: bool = False
    """Whether the server ends the connection after the last answer, and says so in it."""

    shows: bytes = b""
    """What the last answer's body contains."""

    finishes: bool = False
    """Whether the client says, by a FIN after the last byte, that it will send nothing more."""

    to_head: bool = False
    """Whether the answers have no body because they answer HEAD."""

    is_refusal: bool = False
    """Whether the last answer is the server's own, with the code of its status in `REFUSALS`."""


def answered(
    name: str,
    section: str,
    *sent: Piece,
    statuses: tuple[int, ...] = (200,),
    closes: bool = False,
    shows: bytes = b"",
    to_head: bool = False,
) -> Case:
    """The service answers; the connection stays open unless `closes`."""
    return Case(name, section, sent, statuses, closes=closes, shows=shows, to_head=to_head)


def refused(
    name: str, section: str, *sent: Piece, status: int = 400, before: tuple[int, ...] = (), to_head: bool = False
) -> Case:
    """The server itself refuses, and ends the connection; `before` are the answers that come first."""
    return Case(name, section, sent, (*before, status), closes=True, to_head=to_head, is_refusal=True)


def finished(name: str, section: str, *sent: Piece, statuses: tuple[int, ...] = (200,)) -> Case:
    """The client sends a FIN; the server answers what was whole and closes."""
    return Case(name, section, sent, statuses, closes=True, finishes=True)


def get(*fields: bytes, target: str = PUBLIC, method: str = "GET", version: str = "1.1") -> bytes:
    """A request without a body. `Host` is in it; `fields` are lines without their ends."""
    return head(f"{method} {target} HTTP/{version}", HOST, *fields)


def head(line: str | bytes, *fields: bytes) -> bytes:
    """A head of exactly these lines."""
    first = line.encode("latin-1") if isinstance(line, str) else line
    return b"\r\n".join((first, *fields, b"", b""))


def post(content: bytes, *framing: bytes, version: str = "1.1") -> bytes:
    """A request whose body is described by `framing`, or by its length if that is empty."""
    lines = framing or (b"Content-Length: %d" % len(content),)
    return head(f"POST {ECHO} HTTP/{version}", HOST, TOKEN, *lines) + content


def chunked(content: bytes, *fields: bytes) -> bytes:
    """A request whose chunks are exactly `content`."""
    return post(content, b"Transfer-Encoding: chunked", *fields)


def in_chunks(size: bytes = b"17", data_end: bytes = b"\r\n", last: bytes = b"0\r\n\r\n") -> bytes:
    """The echoed body as one chunk of 23 bytes, each part spelt as the case wants it."""
    return size + b"\r\n" + ECHOED + data_end + last


def padded_to(size: int) -> bytes:
    """A whole head of exactly `size` bytes."""
    plain = get(b"X-Pad: ")
    return get(b"X-Pad: " + b"a" * (size - len(plain)))


def byte_by_byte(data: bytes) -> tuple[bytes, ...]:
    return tuple(data[place : place + 1] for place in range(len(data)))


def body_of(size: int) -> bytes:
    """A JSON body of exactly `size` bytes."""
    return ECHOED[:-1] + b" " * (size - len(ECHOED)) + b"}"


START: Final = f"GET {PUBLIC} HTTP/1.1"


def request_lines() -> Iterator[Case]:
    yield answered("a plain request", "9112 3", get())
    yield answered("an empty line before the request line", "9112 2.2", b"\r\n" + get())
    yield answered("two empty lines before the request line", "9112 2.2", b"\r\n\r\n" + get())
    yield answered(
        "an empty line after a body", "9112 2.2", post(ECHOED) + b"\r\n" + get(), statuses=(200, 200), shows=b"sealed"
    )
    yield refused("empty lines without end", "9112 2.2", b"\r\n" * ENDLESS, status=431)
    yield refused("a bare LF before the request line", "9112 2.2", b"\n" + get())
    yield refused("a blank before the request line", "9112 3", b" " + get())
    yield refused("two blanks before the target", "9112 3", head(f"GET  {PUBLIC} HTTP/1.1", HOST))
    yield refused("two blanks before the version", "9112 3", head(f"GET {PUBLIC}  HTTP/1.1", HOST))
    yield refused("a blank after the version", "9112 3", head(f"GET {PUBLIC} HTTP/1.1 ", HOST))
    yield refused("tabs in the request line", "9112 3", head(f"GET\t{PUBLIC}\tHTTP/1.1", HOST))
    yield refused("a blank in the target", "9112 3.2", get(target="/v1/sys/seal status"))
    yield refused("a control character in the target", "9112 3.2", get(target="/v1/sys/\x01health"))
    yield refused("a NUL in the target", "9112 3.2", get(target="/v1/sys/health\0"))
    yield refused("a DEL in the target", "9112 3.2", get(target="/v1/sys/health\x7f"))
    yield refused("a target that is not ASCII", "9112 3.2", get(target="/v1/sys/h\xe9alth"))
    yield refused("a fragment in the target", "9112 3.2", get(target=f"{PUBLIC}#x"))
    yield refused("no target", "9112 3", head("GET HTTP/1.1", HOST))
    yield refused("an empty target", "9112 3", head("GET  HTTP/1.1", HOST))
    yield refused("a target without its slash", "9112 3.2.1", get(target=PUBLIC.removeprefix("/")))
    yield refused("no version: HTTP/0.9", "9112 2.3", f"GET {PUBLIC}\r\n\r\n".encode())
    yield refused("garbage", "9112 3", b"\x16\x03\x01 garbage\r\n\r\n")
    yield refused("a method that is no token", "9110 5.6.2", get(method="G@T"))
    yield answered("a method in lower case is another method", "9110 9.1", get(TOKEN, method="get"), statuses=(405,))
    yield answered("a method that does not exist", "9110 9.1", get(TOKEN, method="FROBNICATE"), statuses=(405,))


def versions() -> Iterator[Case]:
    yield answered("HTTP/1.0", "9112 9.3", get(version="1.0"), closes=True)
    yield answered("HTTP/1.0 without Host", "9112 3.2", head(f"GET {PUBLIC} HTTP/1.0"), closes=True)
    yield answered(
        "HTTP/1.0 that wants to be kept alive", "9112 9.3", get(b"Connection: keep-alive", version="1.0"), closes=True
    )
    yield answered("HTTP/1.0 with a body", "9112 6.3", post(ECHOED, version="1.0"), closes=True, shows=b"echo/abc")
    yield answered("HTTP/1.0 with another request behind it", "9112 9.3", get(version="1.0") + get(), closes=True)
    yield answered("HTTP/1.2 is served as HTTP/1.1", "9110 2.5", get(version="1.2"))
    yield refused("HTTP/2.0", "9110 2.5", get(version="2.0"))
    yield refused("the preface of HTTP/2", "9112 2.3", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    yield refused("HTTP/3.0", "9110 2.5", get(version="3.0"))
    yield refused("a version in lower case", "9112 2.3", head(f"GET {PUBLIC} http/1.1", HOST))
    yield refused("a version with leading zeros", "9112 2.3", get(version="01.1"))
    yield refused("a version of two digits", "9112 2.3", get(version="1.10"))
    yield refused("a version without its minor number", "9112 2.3", get(version="1"))
    yield refused("a version with a sign", "9112 2.3", get(version="+1.1"))


def targets() -> Iterator[Case]:
    yield answered("an absolute target", "9112 3.2.2", get(target=f"http://test{PUBLIC}"), shows=b"sealed")
    yield answered(
        "an absolute target with a port", "9112 3.2.2", get(target=f"http://test:8200{PUBLIC}"), shows=b"sealed"
    )
    yield answered("an absolute target with a scheme in upper case", "9110 4.2.3", get(target=f"HTTP://test{PUBLIC}"))
    yield answered("an absolute target that counts more than Host", "9112 3.2.2", get(target=f"http://other{PUBLIC}"))
    yield answered(
        "an absolute target with a query",
        "9112 3.2.2",
        get(target="http://test/v1/sys/health?activecode=218"),
        statuses=(218,),
    )
    yield answered("an absolute target without a path", "9112 3.2.1", get(TOKEN, target="http://test"), statuses=(404,))
    yield refused("an absolute target without Host", "9112 3.2", head(f"GET http://test{PUBLIC} HTTP/1.1"))
    yield refused("an absolute target without a host", "9110 4.2.1", get(target=f"http://{PUBLIC}"))
    yield refused("an absolute target with a user", "9110 4.2.4", get(target=f"http://user@test{PUBLIC}"))
    yield refused("an absolute target of another scheme", "9110 7.4", get(target=f"ftp://test{PUBLIC}"))
    yield refused("an https target over a plain connection", "9110 7.4", get(target=f"https://test{PUBLIC}"))
    yield answered(
        "OPTIONS of the whole server", "9112 3.2.4", get(TOKEN, method="OPTIONS", target="*"), statuses=(404,)
    )
    yield refused("an asterisk for another method", "9112 3.2.4", get(target="*"))
    yield refused("an authority for another method", "9112 3.2.3", get(target="test:443"))
    yield refused("CONNECT", "9110 9.3.6", head("CONNECT test:443 HTTP/1.1", b"Host: test:443"))


def hosts() -> Iterator[Case]:
    yield refused("no Host", "9112 3.2", head(START))
    yield refused("two equal Hosts", "9112 3.2", get(HOST))
    yield refused("two unequal Hosts", "9112 3.2", get(b"Host: other"))
    yield refused("two Hosts in HTTP/1.0", "9112 3.2", get(b"Host: other", version="1.0"))
    yield answered("an empty Host", "9112 3.2", head(START, b"Host:"))
    yield answered("a Host with a port", "9110 7.2", head(START, b"Host: test:8200"))
    yield answered("a Host that is an IPv6 address", "9110 7.2", head(START, b"Host: [::1]:8200"))
    yield refused("a Host with a path", "9112 3.2", head(START, b"Host: test/path"))
    yield refused("a Host with a user", "9112 3.2", head(START, b"Host: user@test"))
    yield refused("a Host with a blank", "9112 3.2", head(START, b"Host: te st"))
    yield refused("a list of Hosts", "9112 3.2", head(START, b"Host: test, other"))


def fields() -> Iterator[Case]:
    yield answered("a field without a value", "9110 5.5", get(b"X-One:"))
    yield answered("blanks and tabs around a value", "9112 5.1", get(b"X-One: \t one \t "))
    yield answered("a tab within a value", "9110 5.5", get(b"X-One: a\tb"))
    yield answered("bytes above ASCII in a value", "9110 5.5", get(b"X-One: \xe9\xff"))
    yield answered("six hundred fields", "9110 5.4", get(*(b"X-%d: 1" % number for number in range(600))))
    yield answered("one field over several lines of the same name", "9110 5.3", get(b"X-One: a", b"X-One: b"))
    yield refused("a blank before the colon", "9112 5.1", get(b"X-One : 1"))
    yield refused("a tab before the colon", "9112 5.1", get(b"X-One\t: 1"))
    yield refused("a blank before the first field", "9112 2.2", head(START, b" X-One: 1", HOST))
    yield refused("a folded value", "9112 5.2", get(b"X-One: a", b" b"))
    yield refused("a value folded by a tab", "9112 5.2", get(b"X-One: a", b"\tb"))
    yield refused("a line without a colon", "9112 5", get(b"X-One"))
    yield refused("an empty name", "9112 5.1", get(b": 1"))
    yield refused("a blank within a name", "9110 5.1", get(b"X One: 1"))
    yield refused("a bracket in a name", "9110 5.6.2", get(b"X(One): 1"))
    yield refused("a byte above ASCII in a name", "9110 5.6.2", get(b"X-\xe9: 1"))
    yield refused("a NUL in a name", "9110 5.6.2", get(b"X-\0: 1"))
    yield refused("a NUL in a value", "9110 5.5", get(b"X-One: a\0b"))
    yield refused("a bare CR in a value", "9112 2.2", get(b"X-One: a\rb"))
    yield refused("a control character in a value", "9110 5.5", get(b"X-One: a\x01b"))
    yield refused("a DEL in a value", "9110 5.5", get(b"X-One: a\x7fb"))
    yield refused("a bare LF after the request line", "9112 2.2", START.encode() + b"\nHost: test\r\n\r\n")
    yield refused("a bare LF after a field", "9112 2.2", START.encode() + b"\r\nHost: test\n\r\n")
    yield refused("a bare LF instead of the empty line", "9112 2.2", START.encode() + b"\r\nHost: test\r\n\n")
    yield refused("bare LFs throughout", "9112 2.2", START.encode() + b"\nHost: test\n\n")
    yield answered(
        "two different tokens",
        "9110 5.3",
        get(TOKEN, b"X-Vault-Token: other", target="/v1/sys/policies/acl?list=true"),
        statuses=(403,),
    )


def long_bodies_of_strangers() -> Iterator[Case]:
    """Without a good token a long body is not read."""
    for place, target, limit, status in (("a route", ECHO, 64 * 1024, 403), ("a login", LOGIN, 32 * 1024, 400)):
        for sender, token in (("without a token", ()), ("with a wrong token", (b"X-Vault-Token: guess",))):
            start, name = (f"POST {target} HTTP/1.1", HOST, *token), f"{place} {sender}"
            fitting = head(*start, b"Content-Length: %d" % limit) + body_of(limit)
            longer = head(*start, b"Content-Length: %d" % (limit + 1), b"Expect: 100-continue")
            chunk = head(*start, b"Transfer-Encoding: chunked") + b"%x\r\n" % (limit + 1)
            yield answered(f"the largest body for {name}", "9110 15.5.14", fitting, statuses=(status,))
            yield refused(f"a larger body for {name}", "9110 15.5.14", longer, status=413)
            yield refused(f"a larger chunk for {name}", "9110 15.5.14", chunk, status=413)


def limits() -> Iterator[Case]:
    longest = "/v1/sys/seal-status?" + "a" * (TARGET_LIMIT - len("/v1/sys/seal-status?"))
    yield answered("the longest target", "9112 3", get(target=longest))
    yield refused("a target one byte too long", "9112 3", get(target=longest + "a"), status=414)
    yield refused("a target without end", "9112 3", b"GET /" + b"a" * ENDLESS, status=414)
    yield refused("a method without end", "9112 3", b"G" * ENDLESS, status=414)
    yield answered("the largest head", "9110 5.4", padded_to(HEAD_LIMIT))
    yield refused("a head one byte too large", "9110 5.4", padded_to(HEAD_LIMIT + 1), status=431)
    yield refused("a field without end", "9110 5.4", get()[:-2] + b"X-One: " + b"a" * ENDLESS, status=431)
    yield refused("a name without end", "9110 5.4", get()[:-2] + b"x" * ENDLESS, status=431)
    yield refused("fields without end", "9110 5.4", get()[:-2] + b"X-One: a\r\n" * ENDLESS, status=431)
    yield answered("the largest body", "9110 15.5.14", post(body_of(BODY_LIMIT)), shows=b"echo/abc")
    yield refused("a body one byte too large", "9110 15.5.14", post(body_of(BODY_LIMIT + 1)), status=413)
    yield refused("a body announced to be too large", "9110 15.5.14", post(b"", b"Content-Length: 1048577"), status=413)
    yield refused("a length of 26 digits", "9110 8.6", post(b"", b"Content-Length: " + b"9" * 26), status=413)
    yield refused("a length of 5000 digits", "9110 8.6", post(b"", b"Content-Length: " + b"9" * 5000), status=413)
    yield refused(
        "chunks that are too large together",
        "9110 15.5.14",
        chunked(b"80000\r\n" + b" " * 0x80000 + b"\r\n" + b"80001\r\n" + b" " * 0x80001 + b"\r\n0\r\n\r\n"),
        status=413,
    )
    yield refused("a chunk announced to be too large", "9112 7.1", chunked(b"100001\r\n"), status=413)
    yield refused("a chunk size of 17 digits", "9112 7.1", chunked(b"F" * 17 + b"\r\n"), status=413)
    yield from long_bodies_of_strangers()
    yield refused("a head that does not end in time", "9110 15.5.9", get()[:-2], status=408)
    yield refused("a body that does not end in time", "9110 15.5.9", post(ECHOED)[:-1], status=408)
    yield refused("chunks that do not end in time", "9110 15.5.9", chunked(in_chunks()[:-2]), status=408)


def lengths() -> Iterator[Case]:
    yield answered("a body", "9112 6.2", post(ECHOED), shows=b"echo/abc")
    yield answered("no length and no body", "9112 6.3", get(TOKEN, method="POST", target=ECHO), statuses=(400,))
    yield answered(
        "a GET with a body",
        "9110 9.3.1",
        get(b"Content-Length: 2") + b"{}" + get(),
        statuses=(200, 200),
        shows=b"sealed",
    )
    yield answered("a length with leading zeros", "9110 8.6", post(ECHOED, b"Content-Length: 00023"), shows=b"echo/abc")
    yield answered(
        "a length with blanks around it", "9112 5.1", post(ECHOED, b"Content-Length: \t23 "), shows=b"echo/abc"
    )
    yield refused("two equal lengths", "9112 6.3", post(ECHOED, b"Content-Length: 23", b"Content-Length: 23"))
    yield refused("two unequal lengths", "9112 6.3", post(ECHOED, b"Content-Length: 23", b"Content-Length: 5"))
    yield refused("a list of equal lengths", "9112 6.3", post(ECHOED, b"Content-Length: 23, 23"))
    yield refused("a list of unequal lengths", "9112 6.3", post(ECHOED, b"Content-Length: 23, 5"))
    for what, value in {
        "is empty": b"",
        "is negative": b"-1",
        "has a sign": b"+23",
        "is a fraction": b"23.0",
        "is hexadecimal": b"0x17",
        "has an underscore": b"2_3",
        "has a blank inside": b"2 3",
        "has a digit that is not ASCII": b"\xb2\xb3",
        "is a word": b"many",
    }.items():
        yield refused(f"a length that {what}", "9112 6.3", post(ECHOED, b"Content-Length: " + value))


def codings() -> Iterator[Case]:
    yield answered("chunks", "9112 7.1", chunked(in_chunks()), shows=b"echo/abc")
    yield answered(
        "a coding in upper case", "9112 7", post(in_chunks(), b"Transfer-Encoding: CHUNKED"), shows=b"echo/abc"
    )
    yield refused(
        "chunks and a length", "9112 6.1", post(in_chunks(), b"Content-Length: 23", b"Transfer-Encoding: chunked")
    )
    yield refused(
        "a length and chunks", "9112 6.1", post(in_chunks(), b"Transfer-Encoding: chunked", b"Content-Length: 23")
    )
    yield refused("chunks in HTTP/1.0", "9112 6.1", post(in_chunks(), b"Transfer-Encoding: chunked", version="1.0"))
    for what, values in {
        "gzip": (b"gzip",),
        "gzip before chunks": (b"gzip, chunked",),
        "gzip before chunks, on two lines": (b"gzip", b"chunked"),
        "gzip after chunks": (b"chunked, gzip",),
        "chunks twice": (b"chunked, chunked",),
        "chunks twice, on two lines": (b"chunked", b"chunked"),
        "identity": (b"identity",),
        "identity before chunks": (b"identity, chunked",),
        "nothing": (b"",),
        "chunks with a parameter": (b"chunked;q=1",),
        "chunks in quotes": (b'"chunked"',),
        "chunks behind a vertical tab": (b"\x0bchunked",),
        "a word that ends like chunks": (b"xchunked",),
    }.items():
        lines = (b"Transfer-Encoding: " + value for value in values)
        yield refused(f"a coding that is {what}", "9112 6.1", post(in_chunks(), *lines))


def chunks() -> Iterator[Case]:
    def works(name: str, section: str, content: bytes) -> Case:
        return answered(name, section, chunked(content), shows=b"echo/abc")

    def breaks(name: str, section: str, content: bytes) -> Case:
        return refused(name, section, chunked(content))

    yield works("a chunk size with leading zeros", "9112 7.1", in_chunks(b"00017"))
    yield works("several chunks", "9112 7.1", b"A\r\n" + ECHOED[:10] + b"\r\nd\r\n" + ECHOED[10:] + b"\r\n0\r\n\r\n")
    yield works("a chunk size of 20 digits", "9112 7.1", in_chunks(b"17".zfill(20)))
    yield works("a last chunk of several zeros", "9112 7.1", in_chunks(last=b"000\r\n\r\n"))
    yield answered("no chunk but the last", "9112 7.1", chunked(b"0\r\n\r\n"), statuses=(400,))
    yield works("a chunk extension", "9112 7.1.1", in_chunks(b"17;name=value"))
    yield works("a chunk extension without a value", "9112 7.1.1", in_chunks(b"17;name"))
    yield works("a chunk extension in quotes", "9112 7.1.1", in_chunks(b'17;name="a;b"'))
    yield works("an extension of the last chunk", "9112 7.1.1", in_chunks(last=b"0;name=value\r\n\r\n"))
    yield breaks("a chunk extension without end", "9112 7.1.1", b"17;" + b"a" * ENDLESS)
    yield breaks("a control character in a chunk extension", "9112 7.1.1", in_chunks(b"17;a=\x01"))
    yield breaks("a bare CR in a chunk extension", "9112 7.1.1", in_chunks(b"17;a\rb"))
    yield breaks("a bare LF in a chunk extension", "9112 7.1.1", in_chunks(b"17;a\nb"))
    yield breaks("chunk extensions without end", "9112 7.1.1", b"1;a=bcdefgh\r\n \r\n" * ENDLESS)
    for what, size in {
        "is empty": b"",
        "has a prefix": b"0x17",
        "has a sign": b"+17",
        "is negative": b"-17",
        "has an underscore": b"1_7",
        "is no number": b"zz",
        "begins with a blank": b" 17",
        "ends with a blank": b"17 ",
        "ends with a tab": b"17\t",
        "has a digit that is not ASCII": b"\xb9\xb7",
    }.items():
        yield breaks(f"a chunk size that {what}", "9112 7.1", in_chunks(size))
    yield breaks("a chunk size of 21 digits", "9112 7.1", in_chunks(b"17".zfill(21)))
    yield breaks("a chunk size of zeros without end", "9112 7.1", b"0" * ENDLESS)
    yield breaks("a bare LF after a chunk size", "9112 7.1", in_chunks().replace(b"17\r\n", b"17\n"))
    yield breaks("a bare CR after a chunk size", "9112 7.1", in_chunks().replace(b"17\r\n", b"17\r"))
    yield breaks("a bare LF after a chunk", "9112 7.1", in_chunks(data_end=b"\n"))
    yield breaks("nothing after a chunk", "9112 7.1", in_chunks(data_end=b""))
    yield breaks("a chunk longer than its size", "9112 7.1", in_chunks(b"16"))
    yield breaks("a chunk shorter than its size", "9112 7.1", in_chunks(b"18"))
    yield breaks("a bare LF after the last chunk", "9112 7.1", in_chunks(last=b"0\n\r\n"))
    yield breaks("a bare LF at the end of the chunks", "9112 7.1", in_chunks(last=b"0\r\n\n"))


def trailers() -> Iterator[Case]:
    def trailer(*lines: bytes) -> bytes:
        return chunked(in_chunks(last=b"\r\n".join((b"0", *lines, b"", b""))))

    yield answered("trailers", "9112 7.1.2", trailer(b"X-One: 1", b"X-Two: 2"), shows=b"echo/abc")
    yield refused("a length in a trailer", "9110 6.5.1", trailer(b"Content-Length: 5") + get())
    yield refused("a transfer coding in a trailer", "9110 6.5.1", trailer(b"X-One: 1", b"transfer-encoding: chunked"))
    yield answered(
        "a token in a trailer is none",
        "9110 6.5.1",
        head(f"POST {ECHO} HTTP/1.1", HOST, b"Transfer-Encoding: chunked")
        + in_chunks(last=b"0\r\nX-Vault-Token: root\r\n\r\n"),
        statuses=(403,),
    )
    yield refused("a blank before a trailer's colon", "9112 5.1", trailer(b"X-One : 1"))
    yield refused("a blank within a trailer's name", "9110 5.1", trailer(b"X One: 1"))
    yield refused("a folded trailer", "9112 5.2", trailer(b"X-One: a", b" b"))
    yield refused("a trailer without a colon", "9112 5", trailer(b"X-One"))
    yield refused("a trailer with an empty name", "9112 5.1", trailer(b": 1"))
    yield refused("a NUL in a trailer", "9110 5.5", trailer(b"X-One: \0"))
    yield refused("a bare LF after a trailer", "9112 2.2", trailer(b"X-One: 1\nX-Two: 2"))
    yield refused("a trailer without end", "9112 7.1.2", trailer(b"X-One: " + b"a" * ENDLESS), status=431)
    yield refused("trailers without end", "9112 7.1.2", trailer(*(b"X-One: 1",) * ENDLESS), status=431)


def expectations() -> Iterator[Case]:
    go_ahead = b"Expect: 100-continue"
    length = b"Content-Length: 23"
    yield answered(
        "a body that waits for the go-ahead",
        "9110 10.1.1",
        post(b"", length, go_ahead),
        100,
        ECHOED,
        statuses=(100, 200),
        shows=b"echo/abc",
    )
    yield answered(
        "a body that does not wait for it",
        "9110 10.1.1",
        post(ECHOED, length, go_ahead),
        statuses=(100, 200),
        shows=b"echo/abc",
    )
    yield answered(
        "chunks that wait for it",
        "9110 10.1.1",
        post(b"", b"Transfer-Encoding: chunked", go_ahead),
        100,
        in_chunks(),
        statuses=(100, 200),
        shows=b"echo/abc",
    )
    yield answered(
        "an expectation in upper case",
        "9110 10.1.1",
        post(b"", length, b"Expect: 100-CONTINUE"),
        100,
        ECHOED,
        statuses=(100, 200),
        shows=b"echo/abc",
    )
    yield answered(
        "an expectation in HTTP/1.0",
        "9110 10.1.1",
        post(ECHOED, length, go_ahead, version="1.0"),
        closes=True,
        shows=b"echo/abc",
    )
    yield answered("an expectation without a body", "9110 10.1.1", get(go_ahead))
    yield answered("an expectation of an empty body", "9110 10.1.1", get(go_ahead, b"Content-Length: 0"))
    yield answered(
        "an expectation that nobody knows", "9110 10.1.1", post(ECHOED, length, b"Expect: cake"), shows=b"echo/abc"
    )
    yield refused(
        "a body that is too large is not asked for",
        "9110 10.1.1",
        post(b"", b"Content-Length: 1048577", go_ahead),
        status=413,
    )
    yield refused(
        "a body that is framed twice is not asked for",
        "9110 10.1.1",
        post(b"", length, b"Transfer-Encoding: chunked", go_ahead),
    )


def connections() -> Iterator[Case]:
    pair = get() + get()
    yield answered(
        "requests one behind the other", "9112 9.3.2", pair + post(ECHOED), statuses=(200, 200, 200), shows=b"echo/abc"
    )
    yield answered("a request byte by byte", "9112 2.2", *byte_by_byte(post(ECHOED)), shows=b"echo/abc")
    yield answered(
        "chunks byte by byte",
        "9112 7.1",
        *byte_by_byte(chunked(in_chunks(b"17;a=b", last=b"0\r\nX-One: 1\r\n\r\n"))),
        shows=b"echo/abc",
    )
    yield answered(
        "a request that ends in the middle of the next", "9112 9.3.2", pair[:-30], pair[-30:], statuses=(200, 200)
    )
    yield answered("a client that closes", "9112 9.6", get(b"Connection: close"), closes=True)
    yield answered("a client that closes, in capitals", "9110 7.6.1", get(b"Connection: CLOSE"), closes=True)
    yield answered("a client that closes, in a list", "9110 7.6.1", get(b"Connection: x-one , close"), closes=True)
    yield answered(
        "a client that closes, on two lines", "9110 7.6.1", get(b"Connection: x-one", b"Connection: close"), closes=True
    )
    yield answered(
        "a client that closes, with another request behind it",
        "9112 9.6",
        get(b"Connection: close") + get(),
        closes=True,
    )
    yield answered(
        "a client that closes, with garbage behind it",
        "9112 9.6",
        get(b"Connection: close") + b"\0\0\0\r\n\r\n",
        closes=True,
    )
    yield answered("a client that wants to be kept alive", "9112 9.3", get(b"Connection: keep-alive"))
    yield answered("an offer to upgrade", "9110 7.8", get(b"Connection: Upgrade", b"Upgrade: websocket"))
    yield answered(
        "an offer of HTTP/2",
        "9110 7.8",
        get(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk"),
    )
    yield refused("garbage behind a request", "9112 3", get() + b"\0\0\0\r\n\r\n", before=(200,))
    yield refused("bytes behind a body", "9112 6.3", post(ECHOED) + b"}\r\n\r\n", before=(200,))
    yield finished("a request and a FIN", "9112 9.6", get())
    yield finished("a request with a body and a FIN", "9112 9.6", post(ECHOED))
    yield finished("chunks and a FIN", "9112 9.6", chunked(in_chunks()))
    yield finished("two requests and a FIN", "9112 9.6", pair, statuses=(200, 200))
    yield finished("a FIN and no request", "9112 9.6", statuses=())
    yield finished("an empty line and a FIN", "9112 2.2", b"\r\n", statuses=())
    yield finished("a FIN within a request line", "9112 8", b"GET /v1", statuses=())
    yield finished("a FIN within a head", "9112 8", get()[:-2], statuses=())
    yield finished("a FIN within a body", "9112 8", post(ECHOED)[:-1], statuses=())
    yield finished("a FIN within chunks", "9112 8", chunked(in_chunks(last=b"")), statuses=())
    yield finished("a FIN before the last line of the chunks", "9112 8", chunked(in_chunks(last=b"0\r\n")), statuses=())
    yield finished("a FIN within the second request", "9112 8", pair[:-5], statuses=(200,))


def answers() -> Iterator[Case]:
    yield answered("HEAD", "9110 9.3.2", get(method="HEAD"), to_head=True)
    yield answered(
        "HEAD of what is denied",
        "9110 9.3.2",
        get(method="HEAD", target="/v1/sys/mounts"),
        statuses=(403,),
        to_head=True,
    )
    yield answered("HEAD twice", "9110 9.3.2", get(method="HEAD") * 2, statuses=(200, 200), to_head=True)
    yield refused(
        "HEAD with a body that is too large",
        "9110 9.3.2",
        get(b"Content-Length: 1048577", method="HEAD"),
        status=413,
        to_head=True,
    )
    yield refused("HEAD with two Hosts", "9110 9.3.2", get(HOST, method="HEAD"), to_head=True)
    for status in (204, 205, 218, 299, 429, 473, 599):
        yield answered(
            f"a health that is to be {status}",
            "9110 15",
            get(target=f"/v1/sys/health?activecode={status}"),
            statuses=(status,),
        )
    for status in (99, 100, 101, 199, 300, 304, 399, 600):
        yield answered(
            f"a health that may not be {status}",
            "9110 15",
            get(target=f"/v1/sys/health?activecode={status}"),
            statuses=(400,),
        )
    yield answered("a wrong verb", "9110 15.5.6", get(TOKEN, method="DELETE"), statuses=(405,))
    yield answered("a body that is no JSON", "9110 15.5.1", post(b"not JSON"), statuses=(400,))


CASES: Final = tuple(
    case
    for group in (
        request_lines,
        versions,
        targets,
        hosts,
        fields,
        limits,
        lengths,
        codings,
        chunks,
        trailers,
        expectations,
        connections,
        answers,
    )
    for case in group()
)
