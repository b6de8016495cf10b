"""Constraints on parameters: required, denied and allowed ones, with values and without."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw

from cloudid_core.auth_method.roles import Role
from cloudid_core.forms.fields import spellings_of
from cloudid_core.policies.document import Rule
from cloudid_core.policies.parameters import fit, merged

NONE: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    "given, fits",
    [({}, False), ({"a": 1}, False), ({"a": 1, "b": None}, True), ({"a": 1, "b": 2, "c": 3}, True)],
)
def test_required(given: dict[str, Any], fits: bool) -> None:
    assert fit(Rule("p", NONE, required_parameters=("a", "b")), given) is fits


@pytest.mark.parametrize(
    "denied, given, fits",
    [
        ({"a": ()}, {}, True),
        ({"a": ()}, {"b": 1}, True),
        ({"a": ()}, {"a": ""}, False),
        ({"a": ()}, {"A": 1}, False),
        ({"*": ()}, {}, True),
        ({"*": ()}, {"b": 1}, False),
        ({"*": ("x",)}, {"b": "y"}, False),
        ({"a": ("x", "y")}, {"a": "y"}, False),
        ({"a": ("x", "y")}, {"a": "z"}, True),
        ({"a": ("x*",)}, {"a": "xyz"}, False),
        ({"a": ("*x",)}, {"a": "yx"}, False),
        ({"a": ("*x*",)}, {"a": "yxz"}, False),
        ({"a": ("*x*",)}, {"a": "yz"}, True),
        ({"a": ("*",)}, {"a": ""}, False),
        ({"a": ("x*y",)}, {"a": "xzy"}, True),
        ({"a": ("root",)}, {"a": "ROOT"}, False),
        ({"a": ("root",)}, {"a": ["app", " root "]}, False),
        ({"a": ("root",)}, {"a": "app, Root"}, False),
        ({"a": ("x,y",)}, {"a": "x,y"}, False),
        ({"a": (5,)}, {"a": "5"}, False),
        ({"a": (5,)}, {"a": Raw("5.0")}, False),
        ({"a": ("5",)}, {"a": 5}, False),
        ({"a": (True,)}, {"a": "true"}, False),
        ({"a": (True,)}, {"a": False}, True),
        ({"a": ("x",)}, {"a": {"x": "x"}}, True),
    ],
)
def test_denied(denied: dict[str, tuple[Any, ...]], given: dict[str, Any], fits: bool) -> None:
    assert fit(Rule("p", NONE, denied_parameters=denied), given) is fits


@pytest.mark.parametrize(
    "allowed, given, fits",
    [
        ({"a": ()}, {}, True),
        ({"a": ()}, {"a": {"any": "thing"}}, True),
        ({"a": ()}, {"A": 1}, True),
        ({"a": ()}, {"a": 1, "b": 1}, False),
        ({"a": ("x",), "*": ()}, {"a": "x", "b": 1}, True),
        ({"a": ("x",), "*": ()}, {"a": "y", "b": 1}, False),
        ({"*": ("x",)}, {"b": "x"}, True),
        ({"*": ("x",)}, {"b": "y"}, False),
        ({"a": ("x", "y")}, {"a": "y"}, True),
        ({"a": ("x", "y")}, {"a": "X"}, False),
        ({"a": ("app-*",)}, {"a": "app-1"}, True),
        ({"a": ("app-*",)}, {"a": "app-1,app-2"}, True),
        ({"a": ("app-*",)}, {"a": "app-1,root"}, False),
        ({"a": ("app-*",)}, {"a": ["app-1", "root"]}, False),
        ({"a": ("app-*",)}, {"a": []}, False),
        ({"a": ("x, y",)}, {"a": "x, y"}, True),
        ({"a": (1,)}, {"a": "1"}, True),
        ({"a": (1,)}, {"a": True}, False),
        ({"a": (False,)}, {"a": False}, True),
        ({"a": ("x",)}, {"a": None}, False),
        ({"a": ("x",)}, {"a": {}}, False),
    ],
)
def test_allowed(allowed: dict[str, tuple[Any, ...]], given: dict[str, Any], fits: bool) -> None:
    assert fit(Rule("p", NONE, allowed_parameters=allowed), given) is fits


def test_what_is_denied_is_denied_although_it_is_allowed() -> None:
    rule = Rule("p", NONE, allowed_parameters={"*": ()}, denied_parameters={"a": ("x",)})
    assert [fit(rule, {"a": value}) for value in ("x", "y")] == [False, True]


def test_values_of_both_rules_count_and_any_value_wins() -> None:
    first: dict[str, tuple[Any, ...]] = {"a": ("x",), "b": (), "c": ("x",)}
    second: dict[str, tuple[Any, ...]] = {"a": ("y",), "b": ("y",), "d": ("y",)}
    assert merged(first, second) == {"a": ("x", "y"), "b": (), "c": ("x",), "d": ("y",)}


# With the fields of a route

FIELDS = spellings_of(Role)
EVERY_SPELLING: list[tuple[str, object, list[object]]] = [
    ("token_policies", "admin", ["admin", "Admin", " admin ", ["admin"], ["app", "ADMIN"], "app,admin", "app, Admin"]),
    ("token_num_uses", 5, [5, "5", Raw("5.0"), "0x5", "0b101", "05"]),
    ("token_no_default_policy", True, [True, "true", "1", 1, "t", "T", 2]),
    ("token_ttl", "1h", ["1h", "60m", 3600, "3600", "3600s", "1h0m"]),
    ("token_ttl", 3600, ["1h", "60m", 3600, "3600", "3600s", "1h0m"]),
    ("token_bound_cidrs", "10.0.0.0/8", ["10.0.0.0/8", "10.1.2.3/8", ["10.1.1.1/8"], "192.0.2.1,10.0.0.0/8"]),
]


@pytest.mark.parametrize("name, value, spellings", EVERY_SPELLING)
@pytest.mark.parametrize("at", ["new", "old"])
def test_no_spelling_of_a_value_or_a_name_evades_a_denial(
    name: str, value: str | int, spellings: list[object], at: str
) -> None:
    """In the rule as in the request, the deprecated name of a field is the field."""
    old = FIELDS[name].old_name or name
    for rule in (Rule("p", NONE, denied_parameters={each: (value,)}) for each in (name, old)):
        assert [each for each in spellings if fit(rule, {name if at == "new" else old: each}, FIELDS)] == []


@pytest.mark.parametrize("name, value, spellings", EVERY_SPELLING[1:5])
def test_every_spelling_of_an_allowed_value_is_allowed(name: str, value: str | int, spellings: list[object]) -> None:
    old = FIELDS[name].old_name or name
    rule = Rule("p", NONE, allowed_parameters={old: (value,)})
    assert [each for each in spellings if not fit(rule, {name: each}, FIELDS)] == []


@pytest.mark.parametrize(
    "given, fits",
    [({"ttl": 5}, True), ({"token_ttl": 5}, True), ({"ttl": None}, False), ({"token_ttl": "soon"}, False)]
    + [({name: 5}, False) for name in ("TTL", "Token_TTL")],
)
def test_a_required_field_is_there_by_either_name_unless_it_is_null_or_spelled_as_the_route_does_not_know_it(
    given: dict[str, Any], fits: bool
) -> None:
    assert fit(Rule("p", NONE, required_parameters=("token_ttl",)), given, FIELDS) is fits


@pytest.mark.parametrize(
    "rule",
    [Rule("p", NONE, allowed_parameters={"ttl": ("1h",)}), Rule("p", NONE, denied_parameters={"ttl": ("1h",)})],
)
def test_a_value_that_does_not_parse_fits_no_rule_that_names_its_field(rule: Rule) -> None:
    assert not fit(rule, {"token_ttl": "soon"}, FIELDS)
    assert not fit(rule, {"token_ttl": ["1h"]}, FIELDS)


def test_the_elements_of_a_list_are_each_allowed_or_not() -> None:
    rule = Rule("p", NONE, allowed_parameters={"policies": ("app-*",)})
    assert fit(rule, {"token_policies": ["app-1", "APP-2"]}, FIELDS)
    assert not fit(rule, {"token_policies": "app-1,root"}, FIELDS)


@pytest.mark.parametrize("many", [["x"] * 1000, ",".join(["x"] * 1000)])
def test_what_would_take_too_many_comparisons_does_not_fit(many: object) -> None:
    """The work of a request is bounded, whatever the lists of the rule and of the request."""
    few = tuple(f"{number}*" for number in range(99))
    too_many = tuple(f"{number}*" for number in range(101))
    assert fit(Rule("p", NONE, denied_parameters={"a": few}), {"a": many})
    assert not fit(Rule("p", NONE, denied_parameters={"a": too_many}), {"a": many})
    assert fit(Rule("p", NONE, allowed_parameters={"a": ("x", *few)}), {"a": many})
    assert not fit(Rule("p", NONE, allowed_parameters={"a": ("x", *too_many)}), {"a": many})
    assert fit(Rule("p", NONE, allowed_parameters={"a": (), "*": ()}, required_parameters=("a",)), {"a": many, "b": 1})
