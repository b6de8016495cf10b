"""Bodies in chunks, which have no announced length (RFC 9112, section 7.1).

h11 also reads chunks, but accepts more than the RFC allows: blanks after a size, folded trailers, trailers that end in
LF alone, and control characters in an extension. Everything that this module accepts, h11 reads as the same body.
"""

from __future__ import annotations

import re
from typing import Final

from cloudid_core.errors import Code, Refused

from .heads import LINES_LIMIT, find_end

SIZE_LINE_LIMIT: Final = 1024
"""Maximum bytes of the line before a chunk."""

PADDING_LIMIT: Final = 16 * 1024
"""Maximum bytes of all extensions and leading zeros in a body."""

MOST_CHUNKS: Final = 2048
"""Reading a chunk, however short, takes as long as copying several thousand bytes."""

_SIZE_LINE: Final = re.compile(rb"([0-9A-Fa-f]{1,20})(?:;[\t\x20-\x7e\x80-\xff]*)?")
_BEGUN_SIZE_LINE: Final = re.compile(rb"[0-9A-Fa-f]{0,20}(?:;[\t\x20-\x7e\x80-\xff]*)?\r?")
_FRAMING: Final = rb"(?i:content-length|transfer-encoding):"
"""Headers that have no meaning after a body, but that another reader might obey (RFC 9110, section 6.5.1)."""

_TRAILERS: Final = re.compile(rb"(?:(?!%s)[!#$%%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*\r\n)+\r\n" % _FRAMING)


class Chunks:
    """Extracts a body of at most `limit` bytes from its chunks. Extensions and trailers are checked and ignored.

    After `BODY_TOO_LARGE`, reading can continue with a higher limit.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._body = bytearray()
        self._size = 0
        """Bytes of the body that the sizes announced so far."""

        self._count = 0
        self._padding = 0
        self._is_after_data = False
        self._is_in_trailers = False
        self._searched = 0

    @property
    def taken(self) -> int:
        """Return the number of bytes of the body that were taken."""
        return len(self._body)

    def take(self, buffer: bytearray) -> bytes | None:
        """Remove the chunks at the start of `buffer`. Return the body when it is complete. Raises `Refused`."""
        while not self._is_in_trailers:
            missing = self._size - len(self._body)
            if missing:
                self._body += buffer[:missing]
                del buffer[:missing]
                if len(self._body) < self._size:
                    return None
                self._is_after_data = True
            if self._is_after_data:
                if buffer[:2] != b"\r\n"[: len(buffer)]:
                    raise Refused(Code.MALFORMED_REQUEST)
                if len(buffer) < 2:
                    return None
                del buffer[:2]
                self._is_after_data = False
            if not self._take_size_line(buffer):
                return None
        return bytes(self._body) if self._take_trailers(buffer) else None

    def _take_size_line(self, buffer: bytearray) -> bool:
        end = buffer.find(b"\r\n", 0, SIZE_LINE_LIMIT)
        if end < 0:
            if len(buffer) >= SIZE_LINE_LIMIT or not _BEGUN_SIZE_LINE.fullmatch(buffer):
                raise Refused(Code.MALFORMED_REQUEST)
            return False
        line = _SIZE_LINE.fullmatch(buffer, 0, end)
        if line is None:
            raise Refused(Code.MALFORMED_REQUEST)
        size = int(line[1], 16)
        if self._size + size > self.limit:
            raise Refused(Code.BODY_TOO_LARGE)
        self._size += size
        self._padding += end - len(line[1].lstrip(b"0"))
        self._count += 1
        if self._padding > PADDING_LIMIT or self._count > MOST_CHUNKS:
            raise Refused(Code.MALFORMED_REQUEST, "the chunks of the body are too many, or their sizes are too long")
        del buffer[: end + 2]
        self._is_in_trailers = not size
        return True

    def _take_trailers(self, buffer: bytearray) -> bool:
        if buffer.startswith(b"\r\n"):
            del buffer[:2]
            return True
        end = find_end(buffer, self._searched)
        if not end:
            if len(buffer) >= LINES_LIMIT:
                raise Refused(Code.HEAD_TOO_LARGE)
            self._searched = len(buffer)
            return False
        if not _TRAILERS.fullmatch(buffer, 0, end):
            raise Refused(Code.MALFORMED_REQUEST)
        del buffer[:end]
        return True
