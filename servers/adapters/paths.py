"""Paths of requests, and the prefix that the application is mounted at."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

_ORIGIN: Final = re.compile("^https?://[^/]+", re.IGNORECASE)


def checked_prefix(prefix: str) -> str:
    """Return a prefix without a slash at its end. Raises `ValueError` if it is not a path."""
    stripped = prefix.rstrip("/")
    if stripped and not stripped.startswith("/"):
        raise ValueError("prefix must begin with /")
    return stripped


def path_in(target: str) -> str:
    """Return the path of a request target, without its query.

    Some servers leave the host in the absolute form of a target (RFC 9112, section 3.2.2).
    """
    path = target.partition("?")[0]
    return path if path.startswith("/") else _ORIGIN.sub("", path) or "/"


def without_prefix(prefix: str, path: str) -> str:
    """Return a path without a prefix, if it begins with it. The path may be quoted, the prefix is not."""
    beginning = "/".join(path.split("/")[: prefix.count("/") + 1])
    return path[len(beginning) :] if prefix and unquote(beginning) == prefix else path
