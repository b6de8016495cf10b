"""The quotas as they are stored: one record, since every request needs all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from attrs import evolve, field, frozen

from ..errors import Code, Refused
from ..forms import BOOLEAN, INTEGER, SHORT, AsWritten, FieldType, bounded, lasting, one_of, schemas, setting
from ..routing import without_alias
from ..values import LONGEST_INTERVAL, coercion, fold, listing, names

QUOTA_PATHS: Final = "sys/quotas/"
"""Where quotas are read, written and deleted: two quotas may each cover the path of the other."""
LONGEST_BLOCK: Final = 3600
"""Longest `block_interval` in seconds: a longer one would lock its own operators out."""
MOST_QUOTAS: Final = 1000
MOST_EXEMPT: Final = 256
"""Each request is compared with all exempt paths."""
LONGEST_PATH: Final = 1024
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


RATE: Final = FieldType(f"number from {LEAST_RATE:f} to {MOST_RATE:.0f}", _rate, schema=schemas.NUMBER)


def _normal_path(path: str) -> str:
    return without_alias(fold(path.strip("/")))


PATH: Final = evolve(SHORT, name="path", normal=_normal_path)


def _paths(raw: object) -> tuple[str, ...]:
    paths = listing.comma_list(raw)
    if len(paths) > MOST_EXEMPT or any(len(path) > LONGEST_PATH for path in paths):
        raise ValueError(f"must be at most {MOST_EXEMPT} paths of at most {LONGEST_PATH} characters")
    return paths


PATHS: Final = FieldType("list", _paths, list, normal=lambda paths: tuple(map(_normal_path, paths)))
ROLE: Final = FieldType("string", lambda raw: names.identifier(coercion.text(raw)), normal=str.lower)


@frozen(kw_only=True)
class Quota(AsWritten):
    """What quotas of both kinds have. The normal form of a quota is the one that counts."""

    path: str
    role: str

    def covers(self, path: str, role: str) -> bool:
        """Whether it counts what is at a path, in lower case, with a role."""
        raise NotImplementedError

    @property
    def rank(self) -> tuple[bool, int, bool]:
        """How specific it is: one for a role goes before one for a path, and a longer path before a shorter one."""
        return bool(self.role), len(self.path.removesuffix("*")), not self.path.endswith("*")


Q = TypeVar("Q", bound=Quota)


@frozen(kw_only=True)
class RateLimit(Quota):
    """How many requests each source may make to a path and all below it."""

    path: str = setting(PATH, "", "A mount, or a path in one; a `*` at the end stands for anything. Empty: all paths.")
    rate: float = setting(RATE, 0.0, "How many requests one source may make in an interval.", required=True)
    interval: int = setting(lasting(LONGEST_INTERVAL, least=1), 1, "The interval.")
    block_interval: int = setting(lasting(LONGEST_BLOCK), 0, "For how long a source that made too many is refused.")
    role: str = setting(ROLE, "", "Only logins and credentials of this role count. Needs a path.")
    group_by: str = setting(one_of("ip"), "", "Accepted; each source address is counted by itself.", shown_empty=False)
    inheritable: bool = setting(BOOLEAN, False, "Accepted; there are no namespaces.", shown_empty=False)

    @property
    def block(self) -> int:
        """The seconds that take effect; a longer `block_interval` was stored before there was a bound."""
        return min(self.block_interval, LONGEST_BLOCK)

    def covers(self, path: str, role: str) -> bool:
        if self.role and self.role != role:
            return False
        if self.path.endswith("*"):  # as with existing services, `roles/*` counts neither a read nor a list of `roles`
            return path.startswith(self.path[:-1])
        return not self.path or f"{path}/".startswith(f"{self.path}/")


@frozen(kw_only=True)
class LeaseCount(Quota):
    """How many leases a mount, a role of it, or all mounts together may have at a time."""

    path: str = setting(PATH, "", "The mount of a secrets engine. Empty: all mounts together.")
    max_leases: int = setting(bounded(INTEGER, 1, 2**31), 0, "Most leases at a time.", required=True)
    role: str = setting(ROLE, "", "Only leases of this role count. Needs a path.")
    inheritable: bool = setting(BOOLEAN, False, "Accepted; there are no namespaces.", shown_empty=False)

    def covers(self, path: str, role: str) -> bool:
        return self.path in ("", path) and self.role in ("", role)


@frozen(kw_only=True)
class QuotaConfig(AsWritten):
    """What holds for all quotas."""

    rate_limit_exempt_paths: tuple[str, ...] = setting(
        PATHS, ("sys/health", "sys/leader", "sys/seal-status"), "Paths that no quota limits."
    )
    enable_rate_limit_audit_logging: bool = setting(
        BOOLEAN, False, "Kept and read back: audit devices get what a quota refuses in any case."
    )
    enable_rate_limit_response_headers: bool = setting(
        BOOLEAN, False, "Whether answers tell what a rate limit leaves: `X-RateLimit-Limit`, `-Remaining`, `-Reset`."
    )


@frozen(kw_only=True)
class Quotas:
    """All quotas by their names, and what holds for all."""

    rate_limits: dict[str, RateLimit] = field(factory=dict[str, RateLimit])
    lease_counts: dict[str, LeaseCount] = field(factory=dict[str, LeaseCount])
    config: QuotaConfig = QuotaConfig()

    def rate_limit_of(self, path: str, role: str = "") -> RateLimit | None:
        """The quota that counts the requests to a path or, if a role is given, the requests that name it there."""
        if not self.rate_limits:
            return None
        path = fold(path)
        if without_alias(path) in self.config.normal.rate_limit_exempt_paths:
            return None
        found = most_specific(self.rate_limits, path, role)
        if (counted := without_alias(path)) != path:
            by_alias = most_specific(self.rate_limits, counted, role)
            found = max(filter(None, (found, by_alias)), key=lambda limit: limit.rank, default=None)
        return found if found is not None and bool(found.role) is bool(role) else None

    def lease_count_of(self, mount_path: str, role: str) -> LeaseCount | None:
        """The quota that counts a lease of a role."""
        return most_specific(self.lease_counts, fold(mount_path), role)

    def with_moved(self, source: str, target: str) -> Quotas:
        """The quotas once a mount has moved: its own go with it, and so do those for paths in it."""

        def moved(quotas: dict[str, Q]) -> dict[str, Q]:
            return {
                name: evolve(quota, path=target + quota.path.lstrip("/")[len(source) :])
                for name, quota in quotas.items()
                if _is_at(quota, source)
            }

        # Releases before kept the quotas of a disabled mount: those at the target would count beside these.
        others = self.without_mount(source).without_mount(target)
        return evolve(
            others,
            rate_limits=others.rate_limits | moved(self.rate_limits),
            lease_counts=others.lease_counts | moved(self.lease_counts),
        )

    def without_mount(self, path: str) -> Quotas:
        """The quotas once a mount is gone: its own go with it, and so do those for paths in it."""

        def left(quotas: dict[str, Q]) -> dict[str, Q]:
            return {name: quota for name, quota in quotas.items() if not _is_at(quota, path)}

        return evolve(self, rate_limits=left(self.rate_limits), lease_counts=left(self.lease_counts))


def _is_at(quota: Quota, mount_path: str) -> bool:
    """Whether it is for a mount, or for a path in it."""
    return f"{quota.normal.path.removesuffix('*')}/".startswith(f"{fold(mount_path)}/")


def most_specific(quotas: Mapping[str, Q], path: str, role: str) -> Q | None:
    """The one of several quotas that counts, in its normal form."""
    covering = (normal for quota in quotas.values() if (normal := quota.normal).covers(path, role))
    return max(covering, key=lambda quota: quota.rank, default=None)


def with_quota(quotas: Mapping[str, Q], name: str, quota: Q) -> dict[str, Q]:
    """The quotas with one more, or another under its name. Refuses a second one for the same: it would never count."""
    others = without_quota(quotas, name)
    if any(_what(each) == _what(quota) for each in others.values()):
        raise Refused(Code.FIELD_INVALID, "another quota has the same path and role")
    if len(others) >= MOST_QUOTAS:
        raise Refused(Code.MALFORMED_REQUEST, f"there may be {MOST_QUOTAS} quotas")
    return {**others, name: quota}


def _what(quota: Quota) -> tuple[str, str]:
    """What it counts: only one quota may count the same."""
    return quota.normal.path, quota.normal.role


def without_quota(quotas: Mapping[str, Q], name: str) -> dict[str, Q]:
    return {other: quota for other, quota in quotas.items() if not names.are_same(other, name)}


def quota_named(quotas: Mapping[str, Q], name: str) -> tuple[str, Q] | None:
    """The quota of a name in any spelling, and the spelling that it was written under."""
    return next(((other, quota) for other, quota in quotas.items() if names.are_same(other, name)), None)
