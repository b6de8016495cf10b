"""Reader: takes the requests of one connection out of its bytes, for both servers.

It does no IO and knows no time: a server feeds it what arrived, and asks for the next request. The answer depends on
the bytes alone, not on the pieces in which they came.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final

from cloudid_core.dispatch.body_limit import UNASKED
from cloudid_core.errors import Code, Refused
from cloudid_core.messages.request import TARGET_LIMIT

from .chunks import Chunks
from .heads import LINES_LIMIT, Head, Heads, find_end

HEAD_LIMIT: Final = LINES_LIMIT
"""Longest head of a request in bytes, from the request line to the empty line."""

RETRY_SECONDS: Final = 1.0
"""After how long a client that found no room should try again."""

_HEALTH_CHECK: Final = re.compile(rb"(?:GET|HEAD) /v1/sys/health(?:\?[^ ]*)? HTTP/1\.[01]")
_EMPTY_LINES: Final = re.compile(rb"(?:\r\n)+")


class Stage(Enum):
    """What a server waits for on a connection. Each but the last three has a time-out of its own.

    In every stage there is a rule for when a connection makes room for a new one, see `connections`.
    """

    HANDSHAKE = auto()
    IDLE = auto()
    """The first byte of a request."""

    HEAD = auto()
    BODY = auto()
    ANSWER = auto()
    """Nothing of the client: the service works on its request."""

    SEND = auto()
    """The client reads what is sent."""

    LINGER = auto()
    """The client closes the connection: it has had its last answer."""


HANDSHAKE, IDLE, HEAD, BODY, ANSWER, SEND, LINGER = Stage
"""Each request needs them several times, and in Python 3.11 `Stage.IDLE` takes seven times as long as `IDLE`."""


def no_room(code: Code) -> Refused:
    """The refusal of a request that would have been answered at another time."""
    return Refused(code, retry_after=RETRY_SECONDS)


class Reader:
    """The requests of one connection. After a refusal nothing more can be read from it."""

    def __init__(self, heads: Heads, unasked: int = UNASKED) -> None:
        """`unasked` bytes of a body are read before its limit is asked for."""
        self._heads = heads
        self._unasked = unasked
        self._limit: int | None = None
        self._buffer = bytearray()
        self._searched = 0
        self._skipped = 0
        self._head: Head | None = None
        self._chunks: Chunks | None = None
        self._awaits_continue = False
        self.is_health_only = False
        """Whether every request is refused, as soon as its first line has come, that is no health check."""

        self.wants_continue = False
        """Whether the client must be sent 100 Continue. The server sets it back once it has done so."""

        self.asks_limit: Head | None = None
        """The head of the request whose body is longer than it may be unasked. The server calls `allow` then."""

        self.answers_head = False
        """Whether the request that is being read, or was read last, is a HEAD, whose answer has no body."""

    @property
    def stage(self) -> Stage:
        """What is missing while there is no next request."""
        if self._head is not None:
            return BODY
        return HEAD if self._buffer else IDLE

    @property
    def unread(self) -> int:
        """How many bytes have come for requests that were not asked for yet."""
        return len(self._buffer)

    @property
    def held(self) -> int:
        """How many bytes are kept, for the request that is being read and for later ones."""
        return len(self._buffer) + (self._chunks.taken if self._chunks is not None else 0)

    def drop(self) -> None:
        """Forget all bytes: there will be no next request."""
        self._buffer.clear()
        self._chunks = self._head = self.asks_limit = None

    def feed(self, data: bytes) -> None:
        """Add what has arrived."""
        self._buffer += data

    def allow(self, limit: int) -> None:
        """Read a body of at most so many bytes; a longer one is cut off."""
        self._limit, self.asks_limit = limit, None
        if self._chunks is not None:
            self._chunks.limit = limit

    def next_request(self) -> tuple[Head, bytes | None] | None:
        """The next request and its body; None: more must arrive, or `wants_continue` or `asks_limit` is set.

        A body of `None` is longer than it may be: it is not read, and nothing after it. Raises `Refused`.
        """
        head = self._head
        if head is None:
            head = self._read_head() if self._buffer else None
            if head is None:
                return None
            self._limit = None
            self._chunks = Chunks(self._unasked) if head.length is None else None
            self._awaits_continue = head.expects_continue
        length = head.length
        if length is not None and length > self._unasked and (self._limit is None or length > self._limit):
            return self._ask_or_cut(head)
        if self._awaits_continue:
            self._head = head
            self._awaits_continue, self.wants_continue = False, True
            return None
        body: bytes | None
        if length is None:
            assert self._chunks is not None
            try:
                body = self._chunks.take(self._buffer)
            except Refused as refusal:
                if refusal.code is Code.BODY_TOO_LARGE:
                    return self._ask_or_cut(head)
                raise
        elif length:
            body = _cut(self._buffer, length) if len(self._buffer) >= length else None
        else:
            body = b""
        if body is None:
            self._head = head
            return None
        self._head = self._chunks = None
        return head, body

    def _ask_or_cut(self, head: Head) -> tuple[Head, None] | None:
        if self._limit is not None:
            self.drop()
            return head, None
        self._head = self.asks_limit = head
        return None

    def _read_head(self) -> Head | None:
        buffer = self._buffer
        self.answers_head = False
        if buffer[0] < 0x21 and not self._skip_empty_lines():
            return None
        self.answers_head = buffer.startswith(b"HEAD ")
        if self.is_health_only:
            line, line_end, _ = buffer[:HEAD_LIMIT].partition(b"\r\n")
            if line_end and not _HEALTH_CHECK.fullmatch(line):
                raise no_room(Code.TOO_MANY_CONNECTIONS)
        end = find_end(buffer, self._searched)
        if not end:
            if len(buffer) >= HEAD_LIMIT:
                raise Refused(self._excess())
            self._searched = len(buffer)
            return None
        self._searched = self._skipped = 0
        return self._heads.read(_cut(buffer, end))

    def _skip_empty_lines(self) -> bool:
        """Before a request line they mean nothing (RFC 9112, section 2.2). Whether a request line has begun."""
        buffer = self._buffer
        if empty := _EMPTY_LINES.match(buffer):
            self._skipped += empty.end()
            del buffer[: empty.end()]
        if self._skipped > HEAD_LIMIT:
            raise Refused(Code.HEAD_TOO_LARGE)
        if not buffer or buffer == b"\r":
            return False
        if buffer[0] < 0x21:
            raise Refused(Code.MALFORMED_REQUEST)
        return True

    def _excess(self) -> Code:
        """What of a head is too long."""
        line, end, _ = self._buffer[:HEAD_LIMIT].partition(b"\r\n")
        is_line = not end or any(len(word) > TARGET_LIMIT for word in line.split(b" "))
        return Code.TARGET_TOO_LONG if is_line else Code.HEAD_TOO_LARGE


def _cut(buffer: bytearray, length: int) -> bytes:
    """Take so many bytes from the start of the buffer; mostly that is all of it."""
    if length == len(buffer):
        cut = bytes(buffer)
        buffer.clear()
    else:
        cut = bytes(buffer[:length])
        del buffer[:length]
    return cut
