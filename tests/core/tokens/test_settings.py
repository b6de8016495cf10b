"""The token settings of a role, and how partial writes change them."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.errors import Code, Refused
from cloudid_core.forms.fields import parse, show
from cloudid_core.mounts import TOKEN
from cloudid_core.settings import Settings
from cloudid_core.tokens.settings import TokenSettings, check, merged
from cloudid_core.values.secret import Secret

SETTINGS = Settings(master_key=Secret("00" * 32), max_lease_ttl=1000)


def written(role: TokenSettings, **body: object) -> TokenSettings:
    return merged(role, parse(TokenSettings, body))


def shown(role: TokenSettings) -> dict[str, Any]:
    return show(role, spelled_old=role.spelled_old)


def test_a_write_keeps_the_settings_that_it_does_not_name() -> None:
    role = written(TokenSettings(), token_ttl="1h", token_num_uses=3)
    assert written(role, token_ttl=60).token_num_uses == 3


def test_policies_count_in_lower_case_in_order_and_each_once_and_read_back_as_they_were_written() -> None:
    role = written(TokenSettings(), token_policies="b, A,a ,,")
    assert (role.token_policies, role.normal.token_policies) == (("b", "A", "a"), ("a", "b"))
    assert role.policies == ("a", "b", "default")


def test_a_name_of_root_in_any_spelling_is_refused() -> None:
    with pytest.raises(Refused):
        check(written(TokenSettings(), token_policies=" RooT "), TOKEN, SETTINGS)


@pytest.mark.parametrize(
    "old, new, value",
    [
        ("ttl", "token_ttl", 60),
        ("max_ttl", "token_max_ttl", 60),
        ("period", "token_period", 60),
        ("num_uses", "token_num_uses", 60),
        ("policies", "token_policies", ["dev"]),
        ("bound_cidrs", "token_bound_cidrs", ["10.0.0.0/8"]),
    ],
)
def test_a_deprecated_name_is_read_back_only_if_it_was_used_last(old: str, new: str, value: object) -> None:
    role = written(TokenSettings(), **{old: value})
    assert shown(role)[old] == shown(role)[new] == value
    assert old in shown(written(role, token_no_default_policy=True))
    assert old not in shown(written(role, **{new: value}))


def test_an_empty_type_is_the_default() -> None:
    assert written(TokenSettings(token_type="batch"), token_type="").token_type == "default"


@pytest.mark.parametrize("token_type", ["default-service", "default-batch", "Service", "x"])
def test_types_that_only_other_roles_know_are_refused(token_type: str) -> None:
    with pytest.raises(Refused) as refusal:
        written(TokenSettings(), token_type=token_type)
    assert refusal.value.code is Code.FIELD_INVALID


@pytest.mark.parametrize(
    "contradiction, code",
    [
        ({"token_policies": ("root",)}, Code.ROOT_POLICY_REFUSED),
        ({"token_policies": ("response-wrapping",)}, Code.FIELD_INVALID),
        ({"token_type": "batch", "token_period": 1}, Code.FIELDS_EXCLUSIVE),
        ({"token_type": "batch", "token_num_uses": 1}, Code.FIELDS_EXCLUSIVE),
        ({"token_ttl": 2, "token_max_ttl": 1}, Code.TTL_EXCEEDS_MAX),
        ({"token_period": 1001}, Code.TTL_EXCEEDS_MAX),
    ],
)
def test_settings_that_contradict_each_other_are_refused(contradiction: dict[str, Any], code: Code) -> None:
    with pytest.raises(Refused) as refusal:
        check(TokenSettings(**contradiction), TOKEN, SETTINGS)
    assert refusal.value.code is code


def test_a_maximum_above_that_of_the_mount_causes_a_warning() -> None:
    assert check(TokenSettings(token_max_ttl=1000), TOKEN, SETTINGS) == ()
    assert len(check(TokenSettings(token_max_ttl=1001), TOKEN, SETTINGS)) == 1


@pytest.mark.parametrize(
    "field, value",
    [("token_ttl", -1), ("token_num_uses", -1), ("token_bound_cidrs", "x"), ("token_policies", "p," * 257)],
)
def test_values_that_make_no_sense_are_refused(field: str, value: object) -> None:
    with pytest.raises(Refused) as refusal:
        written(TokenSettings(), **{field: value})
    assert refusal.value.code is Code.FIELD_INVALID
