"""The lifetimes of tokens and leases: one algorithm for issue and renewal."""

from __future__ import annotations

import msgspec

from ..effects import Instant
from ..errors import Code, Refused


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a lifetime, in whole seconds; zero means unset.

    `default` and `max` come from the mount, and are never zero.
    """

    default: int
    max: int
    ttl: int = 0
    max_ttl: int = 0
    period: int = 0
    explicit_max_ttl: int = 0

    @property
    def effective_max(self) -> int:
        return min(limit for limit in (self.max, self.max_ttl, self.explicit_max_ttl) if limit)


class Grant(msgspec.Struct, frozen=True):
    """The granted seconds from now on, and warnings for the caller."""

    ttl: int
    warnings: tuple[str, ...] = ()


def grant(terms: Terms, *, start: Instant, now: Instant, increment: int = 0) -> Grant:
    """Return the lifetime that is granted now to something that was created at `start`.

    `increment` is the requested lifetime from now on; 0 means the TTL of the terms, or else the mount's default. If a
    period is set, each renewal grants it again, and only the explicit maximum limits the total. If a requested or
    configured TTL cannot be granted, there is a warning, but not for a default. Raise `TOKEN_PAST_MAX_TTL` if nothing
    can be granted.
    """
    if terms.period:
        limit = min(terms.period, terms.effective_max)
        ttl = min(limit, int(start + terms.explicit_max_ttl - now)) if terms.explicit_max_ttl else limit
        granted = Grant(ttl, _capped("period", terms.period, limit))
    else:
        wanted = increment or terms.ttl
        ttl = min(wanted or terms.default, int(start + terms.effective_max - now))
        granted = Grant(ttl, _capped("TTL", wanted, ttl))
    if granted.ttl <= 0:
        raise Refused(Code.TOKEN_PAST_MAX_TTL)
    return granted


def _capped(what: str, wanted: int, granted: int) -> tuple[str, ...]:
    if granted >= wanted:
        return ()
    return (f"{what} of {wanted}s exceeded the effective maximum; it is capped to {granted}s",)
