"""The quotas of requests as they are stored: one record, since every request needs all of them."""

from __future__ import annotations

from typing import Final

from attrs import evolve, field, frozen

from ..api.fields import BOOLEAN, SECONDS, TEXTS, FieldType, bounded, setting
from ..errors import Code, Refused
from ..values import coercion
from ..values.folding import fold

MOST_QUOTAS: Final = 1000
LEAST_RATE: Final = 1e-6
MOST_RATE: Final = 1e9
"""Bounds of a rate: beyond them, the time after which to come again would not be a number."""


def _rate(raw: object) -> float:
    try:
        rate = float(coercion.text(raw))
    except ValueError:
        raise ValueError("must be a number") from None
    if not LEAST_RATE <= rate <= MOST_RATE:
        raise ValueError(f"must be between {LEAST_RATE:f} and {MOST_RATE:.0f}")
    return rate


RATE: Final = FieldType(f"number from {LEAST_RATE:f} to {MOST_RATE:.0f}", _rate)


def _path(raw: object) -> str:
    return fold(coercion.text(raw).strip("/"))


PATH: Final = FieldType("path", _path)
ROLE: Final = FieldType("string", lambda raw: coercion.text(raw).lower())


@frozen(kw_only=True)
class RateLimit:
    """How many requests each source may make to a path and all below it."""

    path: str = setting(PATH, "", "A mount, or a path in one; a `*` at the end stands for anything. Empty: all paths.")
    rate: float = setting(RATE, 0.0, "How many requests one source may make in an interval.", required=True)
    interval: int = setting(bounded(SECONDS, 1, 31_536_000), 1, "The interval.")
    block_interval: int = setting(SECONDS, 0, "For how long a source that made too many is refused.")
    role: str = setting(ROLE, "", "Only logins and credentials of this role count. Needs a path.")
    inheritable: bool = setting(BOOLEAN, False, "Accepted; there are no namespaces.")

    def covers(self, path: str, role: str) -> bool:
        """Whether requests to a path with a role count."""
        if self.role and self.role != role:
            return False
        if self.path.endswith("*"):
            return path.startswith(self.path[:-1])
        return not self.path or f"{path}/".startswith(f"{self.path}/")

    @property
    def rank(self) -> tuple[bool, int, bool]:
        """How specific it is: one for a role goes before one for a path, and a longer path before a shorter one."""
        return bool(self.role), len(self.path.removesuffix("*")), not self.path.endswith("*")


@frozen(kw_only=True)
class QuotaConfig:
    """What holds for all quotas."""

    rate_limit_exempt_paths: tuple[str, ...] = setting(
        TEXTS, ("sys/health", "sys/leader", "sys/seal-status"), "Paths that no quota limits."
    )
    enable_rate_limit_response_headers: bool = setting(
        BOOLEAN, False, "Whether answers tell what a rate limit leaves: `X-RateLimit-Limit`, `-Remaining`, `-Reset`."
    )


@frozen(kw_only=True)
class Quotas:
    """All quotas of requests by their names, and what holds for all."""

    rate_limits: dict[str, RateLimit] = field(factory=dict[str, RateLimit])
    config: QuotaConfig = QuotaConfig()

    def limit_of(self, path: str, role: str) -> RateLimit | None:
        """The most specific quota for a request."""
        if not self.rate_limits:
            return None
        path = fold(path)
        if path in self.config.rate_limit_exempt_paths:
            return None
        covering = (limit for limit in self.rate_limits.values() if limit.covers(path, role))
        return max(covering, key=lambda limit: limit.rank, default=None)

    def with_rate_limit(self, name: str, limit: RateLimit) -> Quotas:
        """Refuses a second quota for the same requests: it would never count."""
        others = {other: each for other, each in self.rate_limits.items() if other != name}
        if any((each.path, each.role) == (limit.path, limit.role) for each in others.values()):
            raise Refused(Code.FIELD_INVALID, "another quota has the same path and role")
        if len(others) >= MOST_QUOTAS:
            raise Refused(Code.MALFORMED_REQUEST, f"there may be {MOST_QUOTAS} quotas")
        return evolve(self, rate_limits={**others, name: limit})

    def without_rate_limit(self, name: str) -> Quotas:
        return evolve(self, rate_limits={other: each for other, each in self.rate_limits.items() if other != name})
