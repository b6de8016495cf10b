"""Constraints on parameters: required, denied and allowed ones, with values and without."""

from __future__ import annotations

import json
from typing import Any, Final
from unittest.mock import Mock

import pytest
from msgspec import Raw

from cloudid_core.auth_method.roles import Role
from cloudid_core.forms.fields import spellings_of
from cloudid_core.policies import parameters
from cloudid_core.policies.document import Rule
from cloudid_core.policies.parameters import fit, merged
from cloudid_core.secrets_engine.config import Config as EngineConfig
from cloudid_core.secrets_engine.roles import Role as EngineRole
from cloudid_core.token_store.create import CreateForm

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
        ({"a": ("x*y",)}, {"a": "xzy"}, False),
        ({"a": ("x*y",)}, {"a": "xzyz"}, True),
        ({"a": ("x*y",)}, {"a": "y"}, True),
        ({"a": ("x*x",)}, {"a": "x"}, True),
        ({"a": ("*x*y*z",)}, {"a": "axbyczz"}, False),
        ({"a": ("*y*x*z",)}, {"a": "axbyczz"}, True),
        ({"a": ("**",)}, {"a": ""}, False),
        ({"a": ("root",)}, {"a": "ROOT"}, False),
        ({"a": ("root",)}, {"a": ["app", "Root"]}, False),
        ({"a": (["app", "Root"],)}, {"a": ["App", "root"]}, False),
        ({"a": (["app", "root"],)}, {"a": ["root"]}, True),
        ({"a": ({"x": "y"},)}, {"a": {"X": "Y"}}, False),
        ({"a": ({"x": "y"},)}, {"a": [{"x": "z"}, {"x": "y"}]}, False),
        ({"a": ({"x": "y"},)}, {"a": {"x": "z"}}, True),
        ({"a": ("x*",)}, {"a": {"x": "y"}}, False),
        ({"a": ("*",)}, {"a": []}, False),
        ({"a": ("*",)}, {"a": None}, False),
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
        ({"a": ("app-*",)}, {"a": ["app-1", "app-2"]}, True),
        ({"a": ("app-*",)}, {"a": ["app-1", "root"]}, False),
        ({"a": ("app-*",)}, {"a": []}, False),
        ({"a": ("x, y",)}, {"a": "x, y"}, True),
        ({"a": (1,)}, {"a": "1"}, True),
        ({"a": (1,)}, {"a": True}, False),
        ({"a": (False,)}, {"a": False}, True),
        ({"a": ("x",)}, {"a": None}, False),
        ({"a": ("x",)}, {"a": {}}, False),
        ({"a": ("",)}, {"a": {}}, False),
        ({"a": ("", "x")}, {"a": ["y"]}, False),
        ({"a": ("", "x")}, {"a": None}, False),
        ({"a": ({"x": "y"},)}, {"a": {"x": "y"}}, True),
        ({"a": ({"x": "y"},)}, {"a": {"x": "z"}}, False),
        ({"a": ("*",)}, {"a": {"x": "y"}}, True),
        ({"a": ("x*",)}, {"a": {"x": "y"}}, False),
        ({"a": (["x", "y"],)}, {"a": ["x", "y"]}, True),
        ({"a": (["x", "y"],)}, {"a": ["x"]}, False),
        ({"a": (["x", "y"],)}, {"a": ["y", "x"]}, False),
        ({"a": ("x*y",)}, {"a": "x*y"}, True),
        ({"a": ("x*y",)}, {"a": "xzy"}, False),
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
    assert merged([first, second]) == {"a": ("x", "y"), "b": (), "c": ("x",), "d": ("y",)}


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


ROLE_FIELDS: Final = spellings_of(EngineRole)
SUBSCRIPTION: Final = "/subscriptions/6b6f1c2a-0d5e-4b57-9a43-1f1f2b3c4d5e"


def grants(role: str, scope: str = SUBSCRIPTION) -> list[dict[str, str]]:
    return [{"role_name": role, "scope": scope}]


def test_a_field_of_objects_is_compared_with_the_whole_of_each_object() -> None:
    rule = Rule("p", NONE, allowed_parameters={"azure_roles": (json.dumps(grants("Reader")),)})
    assert fit(rule, {"azure_roles": grants("Reader")}, ROLE_FIELDS)
    assert fit(rule, {"azure_roles": json.dumps(grants("Reader", f"{SUBSCRIPTION}/"))}, ROLE_FIELDS)
    assert not fit(rule, {"azure_roles": grants("Owner")}, ROLE_FIELDS)
    assert not fit(rule, {"azure_roles": json.dumps(grants("Owner"))}, ROLE_FIELDS)
    assert not fit(rule, {"azure_roles": grants("Reader") + grants("Owner")}, ROLE_FIELDS)
    denial = Rule("p", NONE, denied_parameters={"azure_roles": (grants("Owner")[0],)})
    assert fit(denial, {"azure_roles": grants("Reader")}, ROLE_FIELDS)
    assert not fit(denial, {"azure_roles": grants("Reader") + grants("OWNER")}, ROLE_FIELDS)


def test_an_empty_text_allows_the_empty_list_and_no_other() -> None:
    rule = Rule("p", NONE, allowed_parameters={"token_policies": ("", "web")})
    assert fit(rule, {"token_policies": []}, FIELDS)
    assert fit(rule, {"token_policies": "web"}, FIELDS)
    assert not fit(rule, {"token_policies": ["admin"]}, FIELDS)


def test_a_text_with_commas_allows_itself_alone_in_a_field_of_texts() -> None:
    fields = spellings_of(CreateForm)
    rule = Rule("p", NONE, allowed_parameters={"display_name": ("a, b",)})
    assert [each for each in ("a, b", "a", "b", "a,b") if fit(rule, {"display_name": each}, fields)] == ["a, b"]


def test_a_text_with_commas_allows_that_list_and_denies_each_of_its_elements() -> None:
    requests = ["web,app", ["app", "web"], "web", ["app"], "other"]
    allowing = Rule("p", NONE, allowed_parameters={"token_policies": ("web,app",)})
    assert [each for each in requests if fit(allowing, {"token_policies": each}, FIELDS)] == requests[:2]
    denying = Rule("p", NONE, denied_parameters={"token_policies": ("web,app",)})
    assert [each for each in requests if fit(denying, {"token_policies": each}, FIELDS)] == requests[4:]


def test_a_list_as_a_whole_allows_that_list_alone() -> None:
    rule = Rule("p", NONE, allowed_parameters={"token_policies": (["web", "App"],)})
    requests = ["app,web", ["WEB", "app", "web"], ["web"], ["web", "app", "admin"], []]
    assert [each for each in requests if fit(rule, {"token_policies": each}, FIELDS)] == requests[:2]


def test_a_pattern_in_capitals_allows_in_a_field_without_case() -> None:
    fields = spellings_of(CreateForm)
    rule = Rule("p", NONE, allowed_parameters={"policies": ("WEB-*",), "display_name": ("WEB-*",)})
    assert fit(rule, {"policies": ["web-a"], "display_name": "WEB-a"}, fields)
    assert not fit(rule, {"policies": ["web-a"], "display_name": "web-a"}, fields)


def test_a_denial_with_a_star_inside_is_about_all_that_it_matches() -> None:
    rule = Rule("p", NONE, denied_parameters={"policies": ("OPS.*.HEAD", "a,b*c")})
    requests = ["ops.network.head", ["web", "Ops.x.y.head"], "a", ["bxc"], "ops.head", ["web", "bx"]]
    assert [each for each in requests if fit(rule, {"token_policies": each}, FIELDS)] == requests[4:]


def test_a_denied_scope_is_denied_in_each_spelling_of_a_ceiling() -> None:
    rule = Rule("p", NONE, denied_parameters={"allowed_scopes": (SUBSCRIPTION,)})
    fields = spellings_of(EngineConfig)
    spellings = [SUBSCRIPTION, f"{SUBSCRIPTION}/", [SUBSCRIPTION.upper()], f"{SUBSCRIPTION}/resourceGroups/a"]
    assert [each for each in spellings if fit(rule, {"allowed_scopes": each}, fields)] == spellings[3:]


def test_an_old_name_is_not_given_beside_the_new_one() -> None:
    """The route does not read it then."""
    rule = Rule("p", NONE, required_parameters=("token_ttl",))
    assert fit(rule, {"ttl": "1h"}, FIELDS)
    assert not fit(rule, {"token_ttl": None, "ttl": "1h"}, FIELDS)


@pytest.mark.parametrize("many", [["x"] * 1000, "x" + "y" * 255 * 1000])
def test_what_would_take_too_many_comparisons_does_not_fit(many: object) -> None:
    """The work of a request is bounded, whatever the lists of the rule and of the request."""
    few = tuple(f"{number}*" for number in range(45))
    too_many = tuple(f"{number}*" for number in range(101))
    assert fit(Rule("p", NONE, denied_parameters={"a": few}), {"a": many})
    assert not fit(Rule("p", NONE, denied_parameters={"a": too_many}), {"a": many})
    assert fit(Rule("p", NONE, allowed_parameters={"a": ("x*", *few)}), {"a": many})
    assert not fit(Rule("p", NONE, allowed_parameters={"a": ("x*", *too_many)}), {"a": many})
    assert not fit(Rule("p", NONE, denied_parameters={"a": ("z" + "*x" * 101,)}), {"a": many})
    assert fit(Rule("p", NONE, allowed_parameters={"a": (), "*": ()}, required_parameters=("a",)), {"a": many, "b": 1})


@pytest.mark.parametrize("element", [1, 1.5, True, "x"])
def test_each_element_counts_as_one_comparison_whatever_its_type(element: object) -> None:
    """The patterns are read once, and are compared with the list as a whole and with each element."""
    patterns = tuple(f"{number}*" for number in range(50, 100))
    rule = Rule("p", NONE, denied_parameters={"a": patterns})
    most = (parameters.MOST_COMPARISONS - parameters.READING * len(patterns)) // len(patterns) - 1
    assert fit(rule, {"a": [element] * most})
    assert not fit(rule, {"a": [element] * (most + 1)})


REFUSED_BY_THEIR_FIELDS: Final[list[tuple[str, object, object]]] = [
    ("azure_roles", {"role_name": "Owner"}, grants("Owner")),
    ("azure_roles", [{"role_name": "Owner"}], grants("Owner")),
    ("azure_roles", "Owner", []),
    ("ttl", [True], "1h"),
    ("ttl", "soon", "1h"),
    ("tags", {"id": "g"}, ["a"]),
]


@pytest.mark.parametrize("name, value, given", REFUSED_BY_THEIR_FIELDS)
def test_a_denied_value_that_the_field_refuses_denies_every_value(name: str, value: object, given: object) -> None:
    assert fit(Rule("p", NONE, denied_parameters={"description": ("x",)}), {name: given}, ROLE_FIELDS)
    assert not fit(Rule("p", NONE, denied_parameters={name: (value,)}), {name: given}, ROLE_FIELDS)


def test_a_denied_choice_in_other_case_denies_that_choice_alone() -> None:
    rule = Rule("p", NONE, denied_parameters={"token_type": ("Batch",)})
    choices = ["batch", "service", "default"]
    assert [each for each in choices if fit(rule, {"token_type": each}, FIELDS)] == choices[1:]


@pytest.mark.parametrize("name, pattern, given", [("ttl", "*h", 60), ("token_no_default_policy", "1*", False)])
def test_a_denial_by_a_pattern_that_no_number_or_boolean_matches_denies_each(
    name: str, pattern: str, given: object
) -> None:
    assert not fit(Rule("p", NONE, denied_parameters={name: (pattern,)}), {name: given}, FIELDS)


def test_the_values_of_a_rule_are_read_once_for_all_unknown_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    values = tuple(f"value {number}" for number in range(1_000))
    read_value = Mock(wraps=parameters._read_value)
    monkeypatch.setattr(parameters, "_read_value", read_value)
    given = {f"field {number}": "value 999" for number in range(100)}
    assert fit(Rule("p", NONE, allowed_parameters={"*": values}), given)
    assert read_value.call_count == len(values)


@pytest.mark.parametrize("value", [["x"] * 3_000, "x," * 3_000, {str(number): 1 for number in range(3_000)}])
def test_a_value_of_a_rule_counts_by_its_size(value: object) -> None:
    """To read it takes work for each of its elements."""
    assert fit(Rule("p", NONE, denied_parameters={"a": (value,)}), {"b": 1})
    assert not fit(Rule("p", NONE, denied_parameters={"a": (value,)}), {"a": 1})
    assert not fit(Rule("p", NONE, allowed_parameters={"a": (value, "1")}), {"a": 1})


def test_the_kinds_of_the_fields_of_a_request_count() -> None:
    """Each kind of field reads the values for `*` in its own way."""
    values = tuple(f"value {number}" for number in range(1_000))
    rule = Rule("p", NONE, allowed_parameters={"*": (*values, "1h", "web")})
    assert fit(rule, {"token_policies": "web"}, FIELDS)
    assert not fit(rule, {"token_policies": "web", "ttl": "1h"}, FIELDS)
