"""Lines: where the lines of a head, or of the trailers behind a body, end in a buffer that is still growing."""

from __future__ import annotations

import re
from typing import Final

from cloudid_core.errors import Code, Refused

LINES_LIMIT: Final = 16 * 1024
"""Most bytes of such lines, empty line included."""

_BARE_LF: Final = re.compile(rb"(?<!\r)\n")


def find_end(buffer: bytearray, searched: int = 0) -> int:
    """How many bytes the lines have, empty line included; 0: it has not come yet. The limit is the caller's to check.

    The first `searched` bytes were looked at before. Raises `Refused` for a line that ends in LF alone, since the end
    of these lines might never come.
    """
    end = buffer.find(b"\r\n\r\n", max(0, searched - 3), LINES_LIMIT)
    if end >= 0:
        return end + 4
    if _BARE_LF.search(buffer, searched, LINES_LIMIT):
        raise Refused(Code.MALFORMED_REQUEST)
    return 0
