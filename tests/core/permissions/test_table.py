"""The table of permissions: each feature once, below its kind of mount."""

from __future__ import annotations

from cloudid_core.mounts.table import AUTH, SECRET
from cloudid_core.permissions.table import FEATURES, features_of


def test_every_feature_stands_once_below_its_kind_of_mount() -> None:
    assert (*features_of(AUTH), *features_of(SECRET)) == FEATURES
    names = [(feature.kind, feature.name) for feature in FEATURES]
    assert len(names) == len(set(names))
