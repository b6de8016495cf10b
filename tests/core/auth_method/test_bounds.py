"""Bounds: how the lists of a role are read."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.auth_method.bounds import Bounds

from ...cases import LISTS, bounds


def test_case_and_the_blanks_of_locations_do_not_matter() -> None:
    found = bounds(
        bound_service_principal_ids=("A",),
        bound_group_ids=("B",),
        bound_locations=("West US 2",),
        bound_subscription_ids=("C",),
        bound_resource_groups=("D e",),
        bound_scale_sets=("F",),
    )
    assert found == Bounds(
        principals=frozenset("a"),
        any_principal=False,
        groups=frozenset("b"),
        locations=frozenset({"westus2"}),
        subscriptions=frozenset("c"),
        resource_groups=frozenset({"d e"}),
        scale_sets=frozenset("f"),
        token_types=frozenset({"app"}),
    )


@pytest.mark.parametrize("name", LISTS)
def test_some_lists_bind_resources(name: str) -> None:
    found = bounds(**{name: ("x",)})
    assert found.bind_resources == (name not in ("bound_service_principal_ids", "bound_group_ids"))
    assert not found.bind_nothing


def test_no_list_binds_nothing() -> None:
    """Nor do the kinds of tokens."""
    assert bounds().bind_nothing
    assert bounds(bound_token_types=("user",)).bind_nothing
    assert not bounds().bind_resources


@pytest.mark.parametrize("ids, is_wildcard", [(("*",), True), (("*", "a"), False), (("a*",), False), ((), False)])
def test_only_an_asterisk_alone_means_any_principal(ids: tuple[str, ...], is_wildcard: bool) -> None:
    found = bounds(bound_service_principal_ids=ids)
    assert found.any_principal == is_wildcard
    assert found.principals == (frozenset() if is_wildcard else frozenset(ids))


@pytest.mark.parametrize("name", [name for name in LISTS if name != "bound_service_principal_ids"])
def test_an_asterisk_means_nothing_elsewhere(name: str) -> None:
    changes: dict[str, Any] = {name: ("*",)}
    assert not bounds(**changes).any_principal
    assert not bounds(**changes).bind_nothing
