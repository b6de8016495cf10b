"""Quotas: how many requests a source may make, and how many leases a role or mount may have."""

from .lease_count import room_for_lease
from .rate_limit import (
    READ_AGAIN,
    count_failed_login,
    forget_quotas,
    known_quotas,
    last_quotas,
    may_look_at_operator,
    read_quotas,
    take_request,
)
from .record import (
    LONGEST_BLOCK,
    QUOTA_PATHS,
    LeaseCount,
    QuotaConfig,
    Quotas,
    RateLimit,
    quota_named,
    with_quota,
    without_quota,
)
