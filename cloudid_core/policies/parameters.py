"""Parameters: which fields a request may carry under a rule, and with which values.

A value that is a list, or a comma-separated text, is judged element by element: clients may spell a list either way.
What is denied is denied in any case of its letters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..api.fields import Json
from ..values.folding import fold
from .document import Rule, Values

CHECKED: Final = frozenset({"create", "read", "update", "patch"})
"""The operations whose parameters are checked."""


def fit(rule: Rule, parameters: Mapping[str, Json]) -> bool:
    """Whether a request may carry these parameters: all required are there, none is denied, each is allowed."""
    if not (rule.required_parameters or rule.denied_parameters or rule.allowed_parameters):
        return True
    given = [(name.lower(), value) for name, value in parameters.items()]
    if not {name for name, _ in given}.issuperset(rule.required_parameters):
        return False
    if any(_is_denied(name, value, rule.denied_parameters) for name, value in given):
        return False
    return not rule.allowed_parameters or all(
        _is_allowed(name, value, rule.allowed_parameters) for name, value in given
    )


def merged(first: Values, second: Values) -> Values:
    """The values of two rules for the same pattern; where one takes any value, both do."""
    both = first.keys() & second.keys()
    return {
        **first,
        **second,
        **{name: first[name] + second[name] if first[name] and second[name] else () for name in both},
    }


def _is_denied(name: str, value: Json, denied: Values) -> bool:
    if "*" in denied:
        return True
    if name not in denied:
        return False
    listed = [fold(_text(each)) for each in denied[name]]
    given = [fold(each) for each in (_text(value), *_elements(value))]
    return not listed or any(_matches(each, pattern) for each in given for pattern in listed)


def _is_allowed(name: str, value: Json, allowed: Values) -> bool:
    values = allowed.get(name, allowed.get("*"))
    if values is None:
        return False
    listed = [_text(each) for each in values]
    if not listed or _text(value) in listed:
        return True
    elements = _elements(value)
    return bool(elements) and all(any(_matches(each, pattern) for pattern in listed) for each in elements)


def _elements(value: Json) -> list[str]:
    match value:
        case list():
            return [_text(element).strip() for element in value]
        case str():
            return [element.strip() for element in value.split(",")]
        case _:
            return [_text(value)]


def _text(value: Json) -> str:
    """A scalar as clients may also spell it; a list or object is the empty text, like null."""
    match value:
        case str():
            return value
        case bool():
            return str(value).lower()
        case float() if value.is_integer():
            return str(int(value))
        case int() | float():
            return str(value)
        case _:
            return ""


def _matches(text: str, pattern: str) -> bool:
    """Whether a text is as a pattern says, in which `*` at either end stands for anything."""
    open_start, open_end = pattern.startswith("*"), pattern.endswith("*")
    core = pattern[open_start : len(pattern) - open_end]
    if open_start and open_end:
        return core in text
    if open_start:
        return text.endswith(core)
    return text.startswith(core) if open_end else text == core
