"""IP networks in CIDR notation.

An IPv4-mapped IPv6 address (`::ffff:192.0.2.1`, RFC 4291 section 2.5.5.2) is treated as its IPv4 address, because
dual-stack sockets report IPv4 peers in this way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, collapse_addresses, ip_address, ip_network
from typing import Any, Final, TypeAlias

from . import listing

Network: TypeAlias = Any
"""An `IPv4Network` or an `IPv6Network`; the two have no common base that type checkers know."""
MOST: Final = 1000
"""Maximum networks in a list, because each use of a token checks all of them."""

_MESSAGE: Final = "must be IP addresses or networks in CIDR notation"
_LONGEST: Final = 64
_PREFIX: Final = re.compile(r"[0-9]{1,3}")
_SUBNET: Final = 64
_parsed: Final = lru_cache(4096)(ip_network)
"""Parsed networks. Parsing one takes ten times as long as checking an address against it."""

_MAPPED_PREFIX: Final = 96
"""The prefix length of the block of all IPv4-mapped addresses."""


def network(raw: object) -> str:
    """Return the canonical text of a network: "10.1.2.3/8" is "10.0.0.0/8"; a bare address is a network of one."""
    if not isinstance(raw, str) or len(raw) > _LONGEST:
        raise ValueError(_MESSAGE)
    text, slash, prefix = raw.partition("/")
    address = _address(text)
    if address is None or (slash and not _PREFIX.fullmatch(prefix)):
        raise ValueError(_MESSAGE)
    length = int(prefix) if slash else address.max_prefixlen
    if length > address.max_prefixlen:
        raise ValueError(_MESSAGE)
    plain = _plain(address)
    if plain is not address and length >= _MAPPED_PREFIX:
        address, length = plain, length - _MAPPED_PREFIX
    return str(ip_network(f"{address}/{length}", strict=False))


def networks(raw: object) -> tuple[str, ...]:
    """Return the canonical networks of a list or a comma-separated string, at most `MOST`."""
    elements = listing.comma_list(raw)
    if len(elements) > MOST:
        raise ValueError(f"must be at most {MOST} IP addresses or networks")
    return tuple(map(network, elements))


def contains(networks: tuple[str, ...], address: str | None) -> bool:
    """Return whether an address is in one of the networks. Without networks there is no restriction.

    A missing or malformed address is in none.
    """
    if not networks:
        return True
    found = _address(address or "")
    return found is not None and any(_plain(found) in _parsed(each) for each in networks)


def intersection(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """Return the networks that both lists contain. An empty list is no restriction.

    Raise `ValueError` if nothing is left, because an empty result would remove the restriction, and if more than `MOST`
    are left.
    """
    if not first or not second:
        return first or second
    shared = [each for version in (4, 6) for each in _shared(_sorted(first, version), _sorted(second, version))]
    if not shared:
        raise ValueError("have no address in common")
    if len(shared) > MOST:
        raise ValueError(f"have more than {MOST} networks in common")
    return tuple(map(str, shared))


def _sorted(networks: tuple[str, ...], version: int) -> list[Network]:
    """Return the sorted networks of one IP version, without those that others contain."""
    parsed: list[Network] = [*map(ip_network, networks)]
    return [*collapse_addresses(network for network in parsed if network.version == version)]


def _shared(first: list[Network], second: list[Network]) -> Iterator[Network]:
    """Yield the networks that two sorted lists of disjoint networks share, in one pass.

    Of two networks that overlap, one contains the other (RFC 4632 section 3.1), so they share the smaller one.
    """
    ours, theirs = iter(first), iter(second)
    one, other = next(ours, None), next(theirs, None)
    while one is not None and other is not None:
        if one.overlaps(other):
            yield one if one.prefixlen >= other.prefixlen else other
        if one.broadcast_address <= other.broadcast_address:
            one = next(ours, None)
        else:
            other = next(theirs, None)


def source(address: str) -> str:
    """Return the network that counts as one source.

    It is an IPv4 address, or the /64 of an IPv6 address (RFC 4291 section 2.5.4). All malformed addresses count as one
    source.
    """
    found = _address(address)
    if found is None:
        return ""
    plain = _plain(found)
    return str(plain) if isinstance(plain, IPv4Address) else str(ip_network(f"{plain}/{_SUBNET}", strict=False))


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Return an address.

    An address with a zone (RFC 4007) is refused, because zones are only meaningful on one machine.
    """
    if "%" in text:
        return None
    try:
        return ip_address(text)
    except ValueError:
        return None


def _plain(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address
