"""Paths of mounts."""

from __future__ import annotations

import pytest

from cloudid_core.values.mount_path import mount_path


@pytest.mark.parametrize(
    "raw, path",
    [
        ("cloud", "cloud"),
        ("cloud/", "cloud"),
        ("/team/a/", "team/a"),
        ("West-2_x~y.z", "West-2_x~y.z"),
        ("a" * 256,) * 2,
    ],
)
def test_slashes_at_the_ends_are_dropped_and_the_case_stays(raw: str, path: str) -> None:
    assert mount_path(raw) == path


@pytest.mark.parametrize(
    "raw", ["", "/", "a//b", "a/../b", ".", ".hidden", "a b", "a*", "+", "a/+/b", "%2e", "ä", "a\n", "a" * 257]
)
def test_what_a_url_or_a_policy_would_read_otherwise_is_refused(raw: str) -> None:
    with pytest.raises(ValueError, match="must be segments"):
        mount_path(raw)
