"""The page about permissions names every permission of the table."""

from __future__ import annotations

from cloudid_core.permissions.table import FEATURES

from .permissions import page


def test_every_permission_is_named_on_the_page() -> None:
    printed = "\n".join(page())
    names = {
        name for features in FEATURES.values() for feature in features for need in feature.needs for name in need.any_of
    }
    assert names
    assert [name for name in names if f"`{name}`" not in printed] == []
