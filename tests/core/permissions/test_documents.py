"""The page about permissions is printed from the table."""

from __future__ import annotations

from pathlib import Path

from cloudid_core.permissions.documents import page
from cloudid_core.permissions.table import FEATURES

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "permissions.md"


def test_the_page_is_printed_from_the_table() -> None:
    assert PAGE.read_text() == page()


def test_every_permission_is_named_on_the_page() -> None:
    printed = page()
    names = {name for feature in FEATURES for need in feature.needs for name in need.any_of}
    assert names
    assert [name for name in names if f"`{name}`" not in printed] == []
