"""Requests for tokens: which fields parent, role and sudo allow."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.errors import Code, Refused
from cloudid_core.token_store.create import CreateForm, check_caller, check_sudo, policies_of, type_of
from cloudid_core.token_store.roles import TokenRole

from ..tokens.test_record import token


def chosen(
    asked_for: str, parent: str, role: TokenRole | None = None, *, has_sudo: bool = False, no_default: bool = False
) -> str:
    """The policies of a child, separated by spaces."""
    form = CreateForm(policies=tuple(asked_for.split()), no_default_policy=no_default)
    return " ".join(policies_of(form, role, token(policies=tuple(parent.split())), has_sudo=has_sudo))


@pytest.mark.parametrize(
    "asked_for, parent, options, given",
    [
        ("", "a default", {}, "a default"),
        ("", "a", {}, "a"),
        ("", "a default", {"no_default": True}, "a"),
        ("a", "a b default", {}, "a default"),
        ("a", "a b", {}, "a"),
        ("a", "a b default", {"no_default": True}, "a"),
        ("default", "a default", {"no_default": True}, ""),
        ("x", "a", {"has_sudo": True}, "default x"),
        ("x", "a", {"has_sudo": True, "no_default": True}, "x"),
        ("", "root", {"has_sudo": True}, "root"),
        ("root", "root", {"has_sudo": True, "no_default": True}, "root"),
        ("a root", "root", {"has_sudo": True}, "root"),
    ],
)
def test_a_child_has_no_more_policies_than_its_parent_unless_with_sudo(
    asked_for: str, parent: str, options: dict[str, Any], given: str
) -> None:
    assert chosen(asked_for, parent, **options) == given


@pytest.mark.parametrize(
    "asked_for, parent, has_sudo, code",
    [
        ("b", "a default", False, Code.POLICY_NOT_SUBSET),
        ("default", "a", False, Code.POLICY_NOT_SUBSET),
        ("root", "a", False, Code.POLICY_NOT_SUBSET),
        ("root", "a", True, Code.POLICY_NOT_SUBSET),
        ("response-wrapping", "a", True, Code.FIELD_INVALID),
    ],
)
def test_a_policy_that_the_parent_lacks_is_refused(asked_for: str, parent: str, has_sudo: bool, code: Code) -> None:
    with pytest.raises(Refused) as refusal:
        chosen(asked_for, parent, has_sudo=has_sudo)
    assert refusal.value.code is code


@pytest.mark.parametrize(
    "asked_for, rules, given",
    [
        ("x", {"allowed_policies": ("x", "y")}, "default x"),
        ("", {"allowed_policies": ("x", "y")}, "default x y"),
        ("dev-1", {"allowed_policies_glob": ("dev-*",)}, "default dev-1"),
        ("x", {"allowed_policies": ("x",), "token_no_default_policy": True}, "x"),
        ("x", {"disallowed_policies": ("default",)}, "x"),
        ("", {"disallowed_policies": ("y",)}, "a default"),
        ("z", {"disallowed_policies": ("y",)}, "default z"),
        ("a", {"orphan": True}, "a"),
        ("", {"token_no_default_policy": True}, "a"),
    ],
)
def test_a_role_decides_about_policies_instead_of_the_parent(asked_for: str, rules: dict[str, Any], given: str) -> None:
    assert chosen(asked_for, "a", TokenRole(**rules)) == given


@pytest.mark.parametrize(
    "asked_for, parent, rules",
    [
        ("z", "a", {"allowed_policies": ("x",)}),
        ("x y", "a", {"allowed_policies": ("x",)}),
        ("y", "a", {"disallowed_policies": ("y",)}),
        ("", "a y", {"disallowed_policies": ("y",)}),
        ("root", "a", {"allowed_policies": ("root",)}),
        ("", "a", {"allowed_policies": ("root",)}),
        ("b", "a", {"orphan": True}),
    ],
)
def test_what_a_role_does_not_allow_is_refused(asked_for: str, parent: str, rules: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refusal:
        chosen(asked_for, parent, TokenRole(**rules))
    assert refusal.value.code is Code.POLICY_NOT_SUBSET


NAMES = st.sets(st.sampled_from(["a", "b", "c", "default", "root"])).map(lambda names: " ".join(sorted(names)))


@given(NAMES, NAMES, st.booleans())
def test_without_sudo_no_policy_comes_from_nowhere(asked_for: str, parent: str, no_default: bool) -> None:
    try:
        policies = chosen(asked_for, parent, no_default=no_default).split()
    except Refused:
        assert not set(asked_for.split()) <= set(parent.split())
    else:
        assert set(policies) <= set(parent.split())


@pytest.mark.parametrize("fields", [{"id": "x"}, {"no_parent": True}, {"period": 1}])
def test_some_fields_need_sudo(fields: dict[str, Any]) -> None:
    form = CreateForm(**fields)
    check_sudo(form, None, has_sudo=True)
    with pytest.raises(Refused) as refusal:
        check_sudo(form, None, has_sudo=False)
    assert refusal.value.problems[0].detail == f'"{next(iter(fields))}"'


def test_an_orphan_of_a_role_that_makes_orphans_needs_no_sudo() -> None:
    check_sudo(CreateForm(no_parent=True), TokenRole(orphan=True), has_sudo=False)
    with pytest.raises(Refused):
        check_sudo(CreateForm(no_parent=True), TokenRole(), has_sudo=False)
    with pytest.raises(Refused):
        check_sudo(CreateForm(no_parent=True, period=1), TokenRole(orphan=True), has_sudo=False)


@pytest.mark.parametrize(
    "ruled, asked_for, given",
    [
        (None, "", "service"),
        (None, "batch", "batch"),
        ("default", "", "service"),
        ("default", "batch", "batch"),
        ("default-service", "", "service"),
        ("default-service", "batch", "batch"),
        ("default-batch", "", "batch"),
        ("default-batch", "service", "service"),
        ("service", "batch", "service"),
        ("batch", "service", "batch"),
    ],
)
def test_a_role_may_force_the_type(ruled: str | None, asked_for: str, given: str) -> None:
    assert type_of(CreateForm(type=asked_for), TokenRole(token_type=ruled) if ruled else None) == given


@pytest.mark.parametrize(
    "caller, last_use, code",
    [
        (token(type="batch"), False, Code.BATCH_TOKEN_UNSUPPORTED),
        (token(num_uses=3), False, Code.TOKEN_RESTRICTED),
        (token(), True, Code.TOKEN_RESTRICTED),
    ],
)
def test_a_caller_that_may_not_have_children_is_refused(caller: Any, last_use: bool, code: Code) -> None:
    with pytest.raises(Refused) as refusal:
        check_caller(caller, last_use=last_use)
    assert refusal.value.code is code
    check_caller(token(), last_use=False)


def test_the_chosen_text_is_not_printed() -> None:
    assert "s3cret" not in repr(CreateForm(id="s3cret"))
