"""Locations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.values import location


@pytest.mark.parametrize("raw", ["westus2", "West US 2", " WEST US\t2 ", "WestUS2"])
def test_spellings_of_one_location(raw: str) -> None:
    assert location.fold(raw) == "westus2"


def test_different_locations_stay_apart() -> None:
    assert location.fold("West US 2") != location.fold("West US 3")


@pytest.mark.parametrize("raw", [None, 2, ["westus2"]])
def test_what_is_no_location(raw: object) -> None:
    with pytest.raises(ValueError, match=r"^must be a location$"):
        location.fold(raw)


@given(st.text())
def test_folding_is_done_once(raw: str) -> None:
    assert location.fold(location.fold(raw)) == location.fold(raw)
