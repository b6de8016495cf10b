"""Which quota counts for a request, and which for a lease."""

from __future__ import annotations

import pytest
from attrs import evolve

from cloudid_core.errors import Refused
from cloudid_core.quotas.record import (
    MOST_QUOTAS,
    LeaseCount,
    QuotaConfig,
    Quotas,
    RateLimit,
    quota_named,
    with_quota,
    without_quota,
)
from cloudid_core.routing import ALIASES

QUOTAS = Quotas(
    rate_limits={
        "all": RateLimit(rate=1),
        "mount": RateLimit(rate=2, path="auth/cloud"),
        "path": RateLimit(rate=3, path="auth/cloud/login"),
        "role": RateLimit(rate=4, path="auth/cloud/login", role="dev"),
        "open": RateLimit(rate=5, path="cloud/creds/web*"),
        "exact": RateLimit(rate=6, path="cloud/creds/web"),
        "below": RateLimit(rate=7, path="cloud/roles/*"),
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
        ("auth/cloud/login", "prod", None),
        ("auth/cloud/login", "dev", 4),
        ("auth/cloud/role/dev", "dev", None),
        ("cloud/creds/web-1", "", 5),
        ("cloud/creds/web", "", 6),
        ("cloud/creds/wet", "", 1),
        ("cloud/roles/web", "", 7),
        ("cloud/roles", "", 1),
        ("cloud/role", "", 1),
    ],
)
def test_the_most_specific_quota_counts(path: str, role: str, rate: float | None) -> None:
    """Those for a role apart from the others: a request is counted by its path first, and by its role later."""
    limit = QUOTAS.rate_limit_of(path, role)
    assert (limit and limit.rate) == rate


@pytest.mark.parametrize("path", ["sys/health", "sys/seal-status", "sys/leader"])
def test_what_load_balancers_ask_is_never_limited(path: str) -> None:
    assert QUOTAS.rate_limit_of(path, "") is None


def test_paths_and_roles_count_in_any_spelling() -> None:
    quotas = Quotas(
        rate_limits={"a": RateLimit(rate=1, path="/Auth/Cloud/", role="Dev")},
        lease_counts={"b": LeaseCount(max_leases=2, path="Cloud/", role="Web")},
        config=QuotaConfig(rate_limit_exempt_paths=("Sys/Health/",)),
    )
    limit, count = quotas.rate_limit_of("auth/cloud/login", "dev"), quotas.lease_count_of("cloud", "web")
    assert limit is not None
    assert count is not None
    assert (limit.path, limit.role, count.path, count.role) == ("auth/cloud", "dev", "cloud", "web")
    assert evolve(quotas, rate_limits={"all": RateLimit(rate=1)}).rate_limit_of("sys/health", "") is None


def test_a_quota_has_one_name_in_any_spelling() -> None:
    quotas = with_quota({"web": RateLimit(rate=1)}, "Web", RateLimit(rate=2))
    assert quotas == {"Web": RateLimit(rate=2)}
    assert quota_named(quotas, "WEB") == ("Web", RateLimit(rate=2))
    assert without_quota(quotas, "web") == {}
    assert quota_named({}, "web") is None


def test_two_spellings_of_a_path_are_the_same_requests() -> None:
    with pytest.raises(Refused):
        with_quota({"a": RateLimit(rate=1, path="cloud")}, "b", RateLimit(rate=1, path="CLOUD/"))


def test_without_quotas_nothing_is_limited() -> None:
    assert Quotas(config=QuotaConfig(rate_limit_exempt_paths=())).rate_limit_of("sys/health", "") is None


def test_two_quotas_for_the_same_requests_are_refused() -> None:
    limits = QUOTAS.rate_limits
    with pytest.raises(Refused):
        with_quota(limits, "other", RateLimit(rate=9, path="auth/cloud"))
    assert with_quota(limits, "mount", RateLimit(rate=9, path="auth/cloud"))["mount"].rate == 9


def test_there_is_a_limit_of_quotas() -> None:
    full = {str(number): RateLimit(rate=1, path=str(number)) for number in range(MOST_QUOTAS)}
    with pytest.raises(Refused):
        with_quota(full, "more", RateLimit(rate=1))
    assert with_quota(full, "0", RateLimit(rate=1))["0"].path == ""
    assert "0" not in without_quota(full, "0")


LEASES = Quotas(
    lease_counts={
        "all": LeaseCount(max_leases=1),
        "mount": LeaseCount(max_leases=2, path="team"),
        "role": LeaseCount(max_leases=3, path="team", role="dev"),
    }
)


@pytest.mark.parametrize(
    "mount, role, most",
    [("cloud", "dev", 1), ("team", "prod", 2), ("Team", "prod", 2), ("team", "dev", 3), ("team/d", "dev", 1)],
)
def test_the_most_specific_quota_counts_a_lease(mount: str, role: str, most: int) -> None:
    count = LEASES.lease_count_of(mount, role)
    assert count is not None
    assert count.max_leases == most


def test_without_quotas_no_lease_is_counted() -> None:
    assert QUOTAS.lease_count_of("cloud", "dev") is None


def test_a_quota_that_moves_replaces_those_that_a_disabled_mount_left_in_an_earlier_release() -> None:
    """Two for the same would count by chance, and could not be written."""
    left = {"a": RateLimit(rate=1, path="Team"), "b": RateLimit(rate=1, path="team/creds/web")}
    own = {"c": RateLimit(rate=1, path="cloud"), "d": RateLimit(rate=1, path="cloudy")}
    moved = Quotas(rate_limits=left | own).with_moved("cloud", "team").rate_limits
    assert {name: limit.path for name, limit in moved.items()} == {"c": "team", "d": "cloudy"}


@pytest.mark.parametrize("alias, counted", ALIASES)
def test_a_quota_counts_a_path_under_each_of_its_names(alias: str, counted: str) -> None:
    for written, asked_for in ((alias, counted), (counted, alias), (counted.rpartition("/")[0], alias)):
        quotas = Quotas(rate_limits={"q": RateLimit(path=written, rate=1.0)})
        assert quotas.rate_limit_of(f"{asked_for}/a") is not None, (written, asked_for)
    pattern = Quotas(rate_limits={"q": RateLimit(path=f"{alias}*", rate=1.0)})
    assert pattern.rate_limit_of(alias) is not None
