"""How long a token or lease may live: one algorithm for issue and renewal."""

from __future__ import annotations

import msgspec

from ..effects import Instant
from ..errors import Code, Refused


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What limits a life, in whole seconds; zero is unset. `default` and `max` come from the mount, never zero."""

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
    """So many seconds from now, and what the caller should know about it."""

    ttl: int
    warnings: tuple[str, ...] = ()


def grant(terms: Terms, *, start: Instant, now: Instant, increment: int = 0) -> Grant:
    """The life that is granted now to what was made at `start`.

    `increment` is what the caller asks for, counted from now; 0: the TTL of the terms, or else the mount's default.
    Periodic: the period again and again; only the explicit maximum limits the whole life. A TTL that is asked for or
    set, and cannot be granted, causes a warning; a default that cannot be granted does not. Raises `TOKEN_PAST_MAX_TTL`
    when nothing is left.
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
