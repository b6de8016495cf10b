"""URLs of the provider: built from encoded segments, and compared before a link is followed."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, urlencode, urljoin, urlsplit

_LONGEST: Final = 8192
_PRINTABLE: Final = re.compile(rf"[!-\[\]-~]{{1,{_LONGEST}}}")  # no blank, control character or backslash
_PORTS: Final = {"http": 80, "https": 443}


def url(base: str, *segments: str, **query: str) -> str:
    """The URL of a path below `base`; whatever a segment or value of the query holds, it stays in its place.

    Raises `ValueError` for a segment that would be dropped or resolved: "", "." and "..".
    """
    if not {"", ".", ".."}.isdisjoint(segments):
        raise ValueError("an empty or relative segment has no place in a URL")
    path = "/".join((base, *(quote(segment, safe="") for segment in segments)))
    return f"{path}?{urlencode(query, quote_via=quote, safe='')}" if query else path


def resolve(base: str, link: str) -> str:
    """The URL of a link in a document at `base` (RFC 3986 section 5), its blanks encoded; "" if it is no link."""
    encoded = link.replace(" ", "%20")
    try:
        return urljoin(base, encoded) if _PRINTABLE.fullmatch(encoded) else ""
    except ValueError:
        return ""


def same_origin(base: str, link: str) -> bool:
    """Whether a link that the provider gave leads to the scheme, host and port of `base` (RFC 6454 section 4)."""
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
