"""Bounds: how the lists of a role are read, and that none of them can be forgotten."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest
from attrs import make_class

from cloudid_core.auth_method.bounds import BOUNDS, require_rows
from cloudid_core.auth_method.checks import CHECKS
from cloudid_core.auth_method.roles import Role
from cloudid_core.forms import IDENTIFIERS, fields_of, setting
from cloudid_core.verify import Verifier

from ...cases import LISTS, bounds


def test_case_and_the_blanks_of_locations_do_not_matter() -> None:
    found = bounds(
        bound_service_principal_ids=("A",),
        bound_group_ids=("B",),
        bound_locations=("West US 2",),
        bound_subscription_ids=("C",),
        bound_resource_groups=("D e",),
        bound_scale_sets=("F",),
        bound_identity_ids=("G",),
        bound_vm_ids=("H",),
    )
    assert found.lists == {
        "bound_service_principal_ids": frozenset("a"),
        "bound_group_ids": frozenset("b"),
        "bound_locations": frozenset({"westus2"}),
        "bound_subscription_ids": frozenset("c"),
        "bound_resource_groups": frozenset({"d e"}),
        "bound_scale_sets": frozenset("f"),
        "bound_identity_ids": frozenset("g"),
        "bound_vm_ids": frozenset("h"),
        "bound_token_types": frozenset({"app"}),
    }


@pytest.mark.parametrize("name", LISTS)
def test_some_lists_bind_machines(name: str) -> None:
    found = bounds(**{name: ("x",)})
    of_principals = ("bound_service_principal_ids", "bound_group_ids", "bound_identity_ids")
    assert found.bind_machines == (name not in of_principals)
    assert not found.bind_nothing


def test_no_list_binds_nothing() -> None:
    """Nor do the kinds of tokens."""
    assert bounds().bind_nothing
    assert bounds(bound_token_types=("user",)).bind_nothing
    assert not bounds().bind_machines


@pytest.mark.parametrize("ids, is_wildcard", [(("*",), True), (("*", "a"), False), (("a*",), False), ((), False)])
def test_only_an_asterisk_alone_means_any_principal(ids: tuple[str, ...], is_wildcard: bool) -> None:
    found = bounds(bound_service_principal_ids=ids)
    assert found.lists.get("bound_service_principal_ids", frozenset()) == frozenset(() if is_wildcard else ids)
    assert found.bind_nothing == (ids == ())


@pytest.mark.parametrize("name", [name for name in LISTS if name != "bound_service_principal_ids"])
def test_an_asterisk_means_nothing_elsewhere(name: str) -> None:
    changes: dict[str, Any] = {name: ("*",)}
    assert bounds(**changes).lists[name] == {"*"}
    assert not bounds(**changes).bind_nothing


def test_a_list_of_roles_without_a_row_is_noticed() -> None:
    """A role with such a field would accept, store and show it, and admit every login."""
    require_rows(Role)
    forgetful = make_class("Role", {"bound_forgotten": setting(IDENTIFIERS, (), "Names.")}, bases=(Role,), kw_only=True)
    with pytest.raises(TypeError, match="bound_forgotten"):
        require_rows(forgetful)


def test_a_row_is_a_list_of_roles_and_a_row_of_explanations() -> None:
    fields, shown = {field.name for field in fields_of(Role)}, {check.name: check.code for check in CHECKS}
    for bound in BOUNDS:
        assert bound.name in fields
        assert shown[bound.name] is bound.code


def test_the_verification_without_a_service_takes_every_bound() -> None:
    assert {bound.name for bound in BOUNDS} <= set(signature(Verifier).parameters)
