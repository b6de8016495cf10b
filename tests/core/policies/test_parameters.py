"""Constraints on parameters: required, denied and allowed ones, with values and without."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.policies.document import Rule
from cloudid_core.policies.parameters import fit, merged

NONE: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    "given, fits",
    [({}, False), ({"a": 1}, False), ({"a": 1, "B": None}, True), ({"a": 1, "b": 2, "c": 3}, True)],
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
        ({"a": (5,)}, {"a": 5.0}, False),
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
