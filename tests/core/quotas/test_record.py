"""Which quota counts for a request."""

from __future__ import annotations

import pytest

from cloudid_core.errors import Refused
from cloudid_core.quotas.record import MOST_QUOTAS, QuotaConfig, Quotas, RateLimit

QUOTAS = Quotas(
    rate_limits={
        "all": RateLimit(rate=1),
        "mount": RateLimit(rate=2, path="auth/cloud"),
        "path": RateLimit(rate=3, path="auth/cloud/login"),
        "role": RateLimit(rate=4, path="auth/cloud/login", role="dev"),
        "open": RateLimit(rate=5, path="cloud/creds/web*"),
    }
)


@pytest.mark.parametrize(
    "path, role, rate",
    [
        ("sys/mounts", "", 1),
        ("auth/cloudy/login", "", 1),
        ("auth/cloud/config", "", 2),
        ("auth/cloud", "", 2),
        ("auth/cloud/login", "", 3),
        ("AUTH/cloud/LOGIN", "", 3),
        ("auth/cloud/login", "prod", 3),
        ("auth/cloud/login", "dev", 4),
        ("auth/cloud/role/dev", "dev", 2),
        ("cloud/creds/web-1", "web-1", 5),
        ("cloud/creds/wet", "wet", 1),
    ],
)
def test_the_most_specific_quota_counts(path: str, role: str, rate: float) -> None:
    limit = QUOTAS.limit_of(path, role)
    assert limit is not None
    assert limit.rate == rate


@pytest.mark.parametrize("path", ["sys/health", "sys/seal-status", "sys/leader"])
def test_what_load_balancers_ask_is_never_limited(path: str) -> None:
    assert QUOTAS.limit_of(path, "") is None


def test_without_quotas_nothing_is_limited() -> None:
    assert Quotas(config=QuotaConfig(rate_limit_exempt_paths=())).limit_of("sys/health", "") is None


def test_two_quotas_for_the_same_requests_are_refused() -> None:
    with pytest.raises(Refused):
        QUOTAS.with_rate_limit("other", RateLimit(rate=9, path="auth/cloud"))
    assert QUOTAS.with_rate_limit("mount", RateLimit(rate=9, path="auth/cloud")).rate_limits["mount"].rate == 9


def test_there_is_a_limit_of_quotas() -> None:
    full = Quotas(rate_limits={str(number): RateLimit(rate=1, path=str(number)) for number in range(MOST_QUOTAS)})
    with pytest.raises(Refused):
        full.with_rate_limit("more", RateLimit(rate=1))
    assert full.with_rate_limit("0", RateLimit(rate=1)).rate_limits["0"].path == ""
    assert "0" not in full.without_rate_limit("0").rate_limits
