"""The form of a login: its fields and their grammar."""

from __future__ import annotations

import pytest

from cloudid_core.auth_method.form import LoginForm, validate
from cloudid_core.errors import Code, Refused
from cloudid_core.forms.fields import fields_of, parse, require

from ...cases import form
from ...minting import SUBSCRIPTION, VM, code_of


def problems(**changes: str) -> list[tuple[Code, str]]:
    """The field that each problem is about."""
    try:
        validate(form(**changes))
    except Refused as refusal:
        return [(problem.code, problem.detail.split('"')[1]) for problem in refusal.problems]
    return []


def test_the_contract_names_the_fields() -> None:
    table = {field.name: field.required for field in fields_of(LoginForm)}
    assert table == {
        "role": True,
        "jwt": True,
        "subscription_id": False,
        "resource_group_name": False,
        "vm_name": False,
        "vmss_name": False,
        "resource_id": False,
    }


@pytest.mark.parametrize("name", ["role", "jwt"])
def test_what_is_required_must_be_there_and_not_empty(name: str) -> None:
    whole = {"role": "a", "jwt": "b"}
    require(LoginForm, parse(LoginForm, whole))
    for body in ({**whole, name: ""}, {field: value for field, value in whole.items() if field != name}):
        assert code_of(require, LoginForm, parse(LoginForm, body)) is Code.FIELD_REQUIRED


def test_the_jwt_is_never_printed() -> None:
    assert "s3cret" not in repr(form(jwt="s3cret"))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"role": "Web.Servers-1_x"},
        {"subscription_id": SUBSCRIPTION.upper()},
        {"resource_group_name": "Gruppe(ä)._-٣"},
        {"vm_name": "15abc_0"},
        {"vmss_name": "a"},
        {"resource_id": VM},
        {"subscription_id": "", "resource_group_name": ""},
        {"subscription_id": ""},
        {"resource_group_name": "", "vm_name": "web"},
        {"subscription_id": "", "resource_group_name": "", "resource_id": VM},
    ],
)
def test_good_names_pass(changes: dict[str, str]) -> None:
    assert problems(**changes) == []


@pytest.mark.parametrize(
    "name, value",
    [
        ("role", "a b"),
        ("role", "-a"),
        ("role", "a/b"),
        ("subscription_id", "5"),
        ("subscription_id", SUBSCRIPTION + "\n"),
        ("subscription_id", f"{{{SUBSCRIPTION}}}"),
        ("resource_group_name", "a/b"),
        ("resource_group_name", ".."),
        ("resource_group_name", "a."),
        ("resource_group_name", "a" * 91),
        ("vm_name", "../vm"),
        ("vm_name", "vm?x"),
        ("vm_name", "vm\n"),
        ("vmss_name", "set/virtualMachines/0"),
        ("role", ""),
        ("resource_id", "web"),
        ("resource_id", VM + "?api-version=1"),
        ("resource_id", VM.replace("/Prod/", "/../")),
    ],
)
def test_a_name_that_breaks_its_grammar_is_told(name: str, value: str) -> None:
    assert problems(**{name: value}) == [(Code.FIELD_INVALID, name)]


@pytest.mark.parametrize("name", ["role", "subscription_id", "resource_group_name", "vm_name"])
def test_no_name_can_pass_for_several(name: str) -> None:
    several = "\n".join(("web", SUBSCRIPTION, "prod", "web"))
    assert problems(**{name: several}) == [(Code.FIELD_INVALID, name)]
    empty = {"role": "", "subscription_id": "", "resource_group_name": "", "vm_name": ""}
    assert (Code.FIELD_INVALID, name) in problems(**{**empty, name: several})


def test_all_problems_are_told_at_once_and_no_value_is() -> None:
    with pytest.raises(Refused) as refusal:
        validate(form(role="s3cret!", subscription_id="s3cret!", resource_group_name="s3cret!", vm_name="s3cret!"))
    assert len(refusal.value.problems) == 4
    assert "s3cret" not in str(refusal.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"vmss_name": "set", "vm_name": "../vm"},
        {"vmss_name": "set", "resource_id": "nonsense"},
        {"vm_name": "vm", "resource_id": "nonsense"},
    ],
)
def test_a_name_that_is_ignored_is_not_looked_at(changes: dict[str, str]) -> None:
    assert problems(**changes) == []
