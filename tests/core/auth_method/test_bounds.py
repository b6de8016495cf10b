"""Bounds: how the lists of a role are read."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.auth_method.roles import BOUNDS, Role


def test_case_and_the_blanks_of_locations_do_not_matter() -> None:
    role = Role(
        bound_service_principal_ids=("A",),
        bound_group_ids=("B",),
        bound_locations=("West US 2",),
        bound_subscription_ids=("C",),
        bound_resource_groups=("D e",),
        bound_scale_sets=("F",),
        bound_token_types=("App",),
    )
    assert role.bounds.lists == {
        "bound_service_principal_ids": frozenset("a"),
        "bound_group_ids": frozenset("b"),
        "bound_locations": frozenset({"westus2"}),
        "bound_subscription_ids": frozenset("c"),
        "bound_resource_groups": frozenset({"d e"}),
        "bound_scale_sets": frozenset("f"),
        "bound_token_types": frozenset({"app"}),
    }


def bound_by(name: str, *entries: str) -> Role:
    lists: dict[str, Any] = {name: entries}
    return Role(**lists)


@pytest.mark.parametrize("name", BOUNDS)
def test_some_lists_bind_machines(name: str) -> None:
    bounds = bound_by(name, "x").bounds
    assert bounds.bind_machines == (name not in ("bound_service_principal_ids", "bound_group_ids"))
    assert not bounds.bind_nothing


def test_no_list_binds_nothing() -> None:
    """Nor do the kinds of tokens."""
    assert Role().bounds.bind_nothing
    assert Role(bound_token_types=("user",)).bounds.bind_nothing
    assert not Role().bounds.bind_machines


@pytest.mark.parametrize("ids, is_wildcard", [(("*",), True), (("*", "a"), False), (("a*",), False)])
def test_only_an_asterisk_alone_means_any_principal(ids: tuple[str, ...], is_wildcard: bool) -> None:
    bounds = bound_by("bound_service_principal_ids", *ids).bounds
    assert not bounds.bind_nothing
    assert ("bound_service_principal_ids" not in bounds.lists) == is_wildcard


@pytest.mark.parametrize("name", [name for name in BOUNDS if name != "bound_service_principal_ids"])
def test_an_asterisk_means_nothing_elsewhere(name: str) -> None:
    assert bound_by(name, "*").bounds.lists[name] == {"*"}


def test_without_a_kind_no_token_is_admitted() -> None:
    assert bound_by("bound_token_types").bounds.lists["bound_token_types"].isdisjoint({"app", "user"})
