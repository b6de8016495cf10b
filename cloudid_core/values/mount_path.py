"""Paths of mounts: segments that need no escaping in a URL and mean nothing special in a policy."""

from __future__ import annotations

import re
from typing import Final

_LONGEST: Final = 256
_PATH: Final = re.compile(r"[A-Za-z0-9_~-][A-Za-z0-9_.~-]*(?:/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)*")


def mount_path(raw: str) -> str:
    """A path without slashes at its ends: segments of ASCII letters, digits and `_~-`, with `.` after the first."""
    path = raw.strip("/")
    if len(path) > _LONGEST or not _PATH.fullmatch(path):
        raise ValueError(
            f"must be segments of letters, digits, and any of _~-. with at most {_LONGEST} characters in all"
        )
    return path
