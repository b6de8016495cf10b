"""Limits."""

from __future__ import annotations

import pytest

from cloudid_core.values.limits import least


@pytest.mark.parametrize("first, second, expected", [(0, 0, 0), (5, 0, 5), (0, 5, 5), (3, 5, 3), (5, 3, 3)])
def test_no_limit_is_not_the_least(first: int, second: int, expected: int) -> None:
    assert least(first, second) == expected
