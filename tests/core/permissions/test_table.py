"""The table of permissions: each feature once, below its kind of mount."""

from __future__ import annotations

from cloudid_core.mounts import AUTH, SECRET
from cloudid_core.permissions.table import FEATURES, Api, features_of


def test_every_feature_stands_once_below_its_kind_of_mount() -> None:
    for kind in (AUTH, SECRET):
        names = [feature.name for feature in features_of(kind)]
        assert names
        assert len(names) == len(set(names))


def test_every_permission_is_taken_from_a_page_of_the_provider() -> None:
    pages = {"directory": "graph/api/", "resource manager": "azure/role-based-access-control/permissions/"}
    for need in (need for features in FEATURES.values() for feature in features for need in feature.needs):
        assert need.source.startswith(f"https://learn.microsoft.com/{pages[need.api.value]}")


def test_the_groups_of_a_principal_can_be_read_with_the_right_to_read_applications_alone() -> None:
    """The provider documents no permission for groups beside it, and none that covers only one's own applications."""
    (feature,) = [feature for feature in features_of(AUTH) if feature.name.startswith("bound_group_ids")]
    (need,) = feature.needs
    assert (need.api, need.any_of[0]) == (Api.DIRECTORY, "Application.Read.All")
    assert "Application.ReadWrite.OwnedBy" not in need.any_of
