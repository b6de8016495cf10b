"""URLs of Azure: built from encoded segments, and compared before a link is followed."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, urlencode, urljoin, urlsplit

_LONGEST: Final = 8192
_PRINTABLE: Final = re.compile(rf"[!-\[\]-~]{{1,{_LONGEST}}}")  # no blank, control character or backslash
_PORTS: Final = {"http": 80, "https": 443}


def url(base: str, *segments: str, **query: str) -> str:
    """Return the URL of a path below `base`. Segments and query values cannot change its structure.

    Raise `ValueError` for a segment that would be dropped or resolved: "", "." and "..".
    """
    if not {"", ".", ".."}.isdisjoint(segments):
        raise ValueError("a URL must not have an empty or relative segment")
    path = "/".join((base, *(quote(segment, safe="") for segment in segments)))
    return f"{path}?{urlencode(query, quote_via=quote, safe='')}" if query else path


def resolve(base: str, link: str) -> str:
    """Return the URL of a link in a document at `base` (RFC 3986 section 5).

    Spaces in it are encoded. "" if it is not a link.
    """
    encoded = link.replace(" ", "%20")
    try:
        return urljoin(base, encoded) if _PRINTABLE.fullmatch(encoded) else ""
    except ValueError:
        return ""


def same_origin(base: str, link: str) -> bool:
    """Return whether a link from Azure leads to the scheme, host and port of `base` (RFC 6454 section 4)."""
    origin = _origin(base)
    return origin is not None and origin == _origin(link)


def _origin(address: str) -> tuple[str, str, int] | None:
    if not _PRINTABLE.fullmatch(address):
        return None
    try:
        parts = urlsplit(address)
        port = parts.port or _PORTS[parts.scheme]
    except (ValueError, KeyError):
        return None
    if not parts.hostname or "@" in parts.netloc:
        return None
    return parts.scheme, parts.hostname, port
