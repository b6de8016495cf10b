"""The stored quotas: one record, because every request needs all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from attrs import evolve, field, frozen

from ..errors import Code, Refused
from ..forms import BOOLEAN, INTEGER, SHORT, AsWritten, FieldType, bounded, lasting, one_of, schemas, setting
from ..routing import without_alias
from ..values import LONGEST_INTERVAL, coercion, fold, listing, names

QUOTA_PATHS: Final = "sys/quotas/"
"""Where quotas are read, written and deleted, because two quotas may each cover the path of the other."""
LONGEST_BLOCK: Final = 3600
"""Maximum `block_interval` in seconds: a longer one would lock its own operators out."""
MOST_QUOTAS: Final = 1000
MOST_EXEMPT: Final = 256
"""Maximum exempt paths, because each request is compared with all of them."""
LONGEST_PATH: Final = 1024
LEAST_RATE: Final = 1e-6
MOST_RATE: Final = 1e9
"""Limits of a rate. Beyond them, the time until a retry would not be a number."""


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
    """The fields of both kinds of quotas. A quota is used in its normal form."""

    path: str
    role: str

    def covers(self, path: str, role: str) -> bool:
        """Return whether it covers a path, in lower case, with a role."""
        raise NotImplementedError

    @property
    def rank(self) -> tuple[bool, int, bool]:
        """Return how specific it is.

        A quota for a role precedes one for a path, and a longer path precedes a shorter one.
        """
        return bool(self.role), len(self.path.removesuffix("*")), not self.path.endswith("*")


Q = TypeVar("Q", bound=Quota)


@frozen(kw_only=True)
class RateLimit(Quota):
    """How many requests each source may make to a path and everything below it."""

    path: str = setting(
        PATH, "", "The path of a mount, or a path in a mount. A `*` at the end matches anything. Empty: all paths."
    )
    rate: float = setting(RATE, 0.0, "How many requests each source address may make in an interval.", required=True)
    interval: int = setting(lasting(LONGEST_INTERVAL, least=1), 1, "The interval.")
    block_interval: int = setting(
        lasting(LONGEST_BLOCK), 0, "How long a source address is refused after it exceeded the limit."
    )
    role: str = setting(ROLE, "", "Count only logins and credentials of this role. Requires a path.")
    group_by: str = setting(
        one_of("ip"), "", "Accepted. Requests are always counted for each source address.", shown_empty=False
    )
    inheritable: bool = setting(BOOLEAN, False, "Accepted. There are no namespaces.", shown_empty=False)

    @property
    def block(self) -> int:
        """The effective seconds. A longer `block_interval` was stored before there was a maximum."""
        return min(self.block_interval, LONGEST_BLOCK)

    def covers(self, path: str, role: str) -> bool:
        if self.role and self.role != role:
            return False
        if self.path.endswith("*"):  # as with existing services, `roles/*` counts neither a read nor a list of `roles`
            return path.startswith(self.path[:-1])
        return not self.path or f"{path}/".startswith(f"{self.path}/")


@frozen(kw_only=True)
class LeaseCount(Quota):
    """How many leases a mount, one of its roles, or all mounts together may have."""

    path: str = setting(PATH, "", "The path of a secrets engine. Empty: all mounts together.")
    max_leases: int = setting(bounded(INTEGER, 1, 2**31), 0, "Maximum number of leases.", required=True)
    role: str = setting(ROLE, "", "Count only leases of this role. Requires a path.")
    inheritable: bool = setting(BOOLEAN, False, "Accepted. There are no namespaces.", shown_empty=False)

    def covers(self, path: str, role: str) -> bool:
        return self.path in ("", path) and self.role in ("", role)


@frozen(kw_only=True)
class QuotaConfig(AsWritten):
    """Options for all quotas."""

    rate_limit_exempt_paths: tuple[str, ...] = setting(
        PATHS, ("sys/health", "sys/leader", "sys/seal-status"), "Paths that are exempt from all rate limits."
    )
    enable_rate_limit_audit_logging: bool = setting(
        BOOLEAN, False, "Stored, but has no effect: refusals by a quota are always audited."
    )
    enable_rate_limit_response_headers: bool = setting(
        BOOLEAN, False, "Whether responses have the headers `X-RateLimit-Limit`, `-Remaining` and `-Reset`."
    )


@frozen(kw_only=True)
class Quotas:
    """All quotas by their names, and the options for all of them."""

    rate_limits: dict[str, RateLimit] = field(factory=dict[str, RateLimit])
    lease_counts: dict[str, LeaseCount] = field(factory=dict[str, LeaseCount])
    config: QuotaConfig = QuotaConfig()

    def rate_limit_of(self, path: str, role: str = "") -> RateLimit | None:
        """Return the quota that counts the requests to a path or, with a role, the requests that name it there."""
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
        """Return the quota that counts a lease of a role."""
        return most_specific(self.lease_counts, fold(mount_path), role)

    def with_moved(self, source: str, target: str) -> Quotas:
        """Return the quotas after a mount was moved. Quotas for the mount or for paths in it move too."""

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
        """Return the quotas after a mount was deleted, without quotas for the mount or for paths in it."""

        def left(quotas: dict[str, Q]) -> dict[str, Q]:
            return {name: quota for name, quota in quotas.items() if not _is_at(quota, path)}

        return evolve(self, rate_limits=left(self.rate_limits), lease_counts=left(self.lease_counts))


def _is_at(quota: Quota, mount_path: str) -> bool:
    """Return whether it is for a mount, or for a path in it."""
    return f"{quota.normal.path.removesuffix('*')}/".startswith(f"{fold(mount_path)}/")


def most_specific(quotas: Mapping[str, Q], path: str, role: str) -> Q | None:
    """Return the most specific of several quotas, in its normal form."""
    covering = (normal for quota in quotas.values() if (normal := quota.normal).covers(path, role))
    return max(covering, key=lambda quota: quota.rank, default=None)


def with_quota(quotas: Mapping[str, Q], name: str, quota: Q) -> dict[str, Q]:
    """Return the quotas with a new or replaced quota.

    Refuse a second quota for the same requests, which would never apply.
    """
    others = without_quota(quotas, name)
    if any(_what(each) == _what(quota) for each in others.values()):
        raise Refused(Code.FIELD_INVALID, "another quota has the same path and role")
    if len(others) >= MOST_QUOTAS:
        raise Refused(Code.MALFORMED_REQUEST, f"at most {MOST_QUOTAS} quotas are possible")
    return {**others, name: quota}


def _what(quota: Quota) -> tuple[str, str]:
    """Return what it counts: only one quota may count the same."""
    return quota.normal.path, quota.normal.role


def without_quota(quotas: Mapping[str, Q], name: str) -> dict[str, Q]:
    return {other: quota for other, quota in quotas.items() if not names.are_same(other, name)}


def quota_named(quotas: Mapping[str, Q], name: str) -> tuple[str, Q] | None:
    """Return the quota with a name in any spelling, and the spelling under which it was written."""
    return next(((other, quota) for other, quota in quotas.items() if names.are_same(other, name)), None)
