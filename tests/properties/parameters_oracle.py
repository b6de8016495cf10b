"""An oracle for parameters: written from the reference of the policy language, naive, and sharing no code with it.

It knows JSON values only. How a route reads a field comes from outside, as a function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, TypeAlias

from attrs import frozen

Json: TypeAlias = Any


@frozen
class Known:
    """A field of the route: its names, how the route reads a value (`ValueError`: it refuses it), what it takes for no
    value, and its choices if it has some."""

    name: str
    old_name: str
    read: Callable[[Json], Json]
    is_absent: Callable[[Json], bool]
    choices: Sequence[str] = ()
    members: Mapping[str, Known] = {}
    """Those of an object whose members are fields themselves."""


@frozen
class Restrictions:
    """What a rule says of parameters, as its author wrote it."""

    required: Sequence[str] = ()
    allowed: Mapping[str, Sequence[Json]] = {}
    denied: Mapping[str, Sequence[Json]] = {}


def passes(rule: Restrictions, body: Mapping[str, Json], fields: Mapping[str, Known]) -> bool:
    """Whether a request with this body passes."""
    for required in rule.required:
        if not any(is_given(name, body, fields) for name in body if required.lower() in rule_names(name, fields)):
            return False
    for name, value in body.items():
        if denies(rule, name, value, fields) or denies_a_member(rule, value, fields.get(name)):
            return False
        if rule.allowed and not allows(rule, name, value, fields):
            return False
    return True


def rule_names(name: str, fields: Mapping[str, Known]) -> list[str]:
    """The names by which a rule means a parameter: all names of a field, else its own."""
    if name not in fields:
        return [name.lower()]
    return [each.lower() for each in (fields[name].name, fields[name].old_name) if each]


def is_given(name: str, body: Mapping[str, Json], fields: Mapping[str, Known]) -> bool:
    """An old name is not read beside the new one, what does not parse or means "no value" is not given, and neither is
    a name in capitals."""
    if name not in fields:
        return name == name.lower()
    field = fields[name]
    if name != field.name and field.name in body:
        return False
    return reads(field, body[name]) and not field.is_absent(body[name])


def reads(field: Known | None, value: Json) -> bool:
    try:
        read(field, value)
    except ValueError:
        return False
    return True


def read(field: Known | None, value: Json) -> Json:
    """A value as the route reads it. What no field reads is compared as JSON, with the texts of scalars."""
    if field is not None:
        return field.read(value)
    if isinstance(value, list):
        return [read(None, element) for element in value]
    if isinstance(value, dict):
        return {name: read(None, member) for name, member in value.items()}
    return None if value is None else spelled(value)


def spelled(scalar: Json) -> str:
    if isinstance(scalar, str):
        return scalar
    if scalar is True or scalar is False:
        return "true" if scalar else "false"
    if abs(scalar) == inf:
        raise ValueError
    return str(int(scalar)) if scalar == int(scalar) else str(scalar)


def named(values: Mapping[str, Sequence[Json]], name: str, fields: Mapping[str, Known]) -> list[Sequence[Json]]:
    return [listed for key, listed in values.items() if key.lower() in rule_names(name, fields)]


def denies(rule: Restrictions, name: str, value: Json, fields: Mapping[str, Known]) -> bool:
    if "*" in rule.denied:
        return True
    lists = named(rule.denied, name, fields)
    if not lists:
        return False
    field = fields.get(name)
    if any(not listed for listed in lists) or not reads(field, value):
        return True
    found = read(field, value)
    return any(denies_value(each, found, field) for listed in lists for each in listed)


def denies_a_member(rule: Restrictions, value: Json, field: Known | None) -> bool:
    """Whether a rule denies a member that counts, of an object whose members are fields."""
    if field is None or not field.members or not reads(field, value):
        return False
    return any(denies(rule, name, member, field.members) for name, member in read(field, value).items())


def denies_value(ruled: Json, found: Json, field: Known | None) -> bool:
    """One value of `denied_parameters` and what the route read: without case, one element is enough."""
    understood = understand(chosen(ruled, field), field)
    elements = found if isinstance(found, list) else [found]
    if understood is NOTHING and not (isinstance(ruled, str) and "*" in ruled):
        return True
    if understood is not NOTHING and same(low(understood), low(found)):
        return True
    if understood is not NOTHING and not isinstance(ruled, list):
        meant = understood if isinstance(understood, list) else [understood]
        if any(same(low(one), low(element)) for one in meant for element in elements):
            return True
    if not isinstance(ruled, str) or "*" not in ruled:
        return False
    patterns = [piece.strip() for piece in ruled.split(",")] if isinstance(found, list) else [ruled]
    if found == []:
        elements = [""]
    for element in elements:
        if element is None or isinstance(element, (list, dict)):
            return True
        if any(glob(low(pattern), low(spelled(element))) or means_nothing(pattern, element) for pattern in patterns):
            return True
    return False


def means_nothing(pattern: str, element: Json) -> bool:
    """Whether no boolean or no number matches a pattern, while the element is one."""
    if isinstance(element, bool):
        return not (glob(low(pattern), "true") or glob(low(pattern), "false"))
    return isinstance(element, (int, float)) and any(letter not in "0123456789-.*" for letter in pattern)


def chosen(ruled: Json, field: Known | None) -> Json:
    """A choice of the field that the rule spells in other case, or the value as it is."""
    for choice in field.choices if field is not None and isinstance(ruled, str) else ():
        if low(choice) == low(ruled):
            return choice
    return ruled


def allows(rule: Restrictions, name: str, value: Json, fields: Mapping[str, Known]) -> bool:
    lists = named(rule.allowed, name, fields)
    if not lists:
        lists = [listed for key, listed in rule.allowed.items() if key == "*"]
    field = fields.get(name)
    if not lists or not reads(field, value):
        return False
    if any(not listed for listed in lists):
        return True
    found = read(field, value)
    ruled = [each for listed in lists for each in listed]
    for each in ruled:
        understood = understand(each, field)
        if understood is not NOTHING and same(understood, found):
            return True
    elements = found if isinstance(found, list) else [found]
    return bool(elements) and all(
        any(allows_element(each, element, value, field) for each in ruled) for element in elements
    )


def allows_element(ruled: Json, element: Json, value: Json, field: Known | None) -> bool:
    if isinstance(ruled, list):
        return False
    understood = understand(ruled, field)
    if understood is not NOTHING:
        if not isinstance(understood, list) and same(understood, element):
            return True
        if isinstance(understood, list) and len(understood) == 1 and same(understood[0], element):
            return True
    if not isinstance(ruled, str) or not (ruled.startswith("*") or ruled.endswith("*")):
        return False
    if ruled in ("*", "**"):
        return True
    if element is None or isinstance(element, (list, dict)):
        return False
    pattern = low(ruled) if case_is_nothing(value, field) else ruled
    return fits_at_the_ends(pattern, spelled(element))


def fits_at_the_ends(pattern: str, text: str) -> bool:
    if pattern.startswith("*") and pattern.endswith("*"):
        return pattern[1:-1] in text
    return text.endswith(pattern[1:]) if pattern.startswith("*") else text.startswith(pattern[:-1])


def case_is_nothing(value: Json, field: Known | None) -> bool:
    """Whether the route reads a value in capitals as the same."""
    capitals = in_capitals(value)
    return reads(field, capitals) and same(read(field, capitals), read(field, value))


NOTHING = object()


def understand(ruled: Json, field: Known | None) -> Json:
    """A value of a rule as the route reads it; an object may be one element of a list. `NOTHING`: not at all."""
    if reads(field, ruled):
        return read(field, ruled)
    if isinstance(ruled, dict) and reads(field, [ruled]):
        return read(field, [ruled])
    return NOTHING


def same(one: Json, other: Json) -> bool:
    """Equal JSON values: `true` is not 1, and 5.0 is 5."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return one == other
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    return bool(one == other)


def low(value: Json) -> Json:
    return each_text(value, str.lower)


def in_capitals(value: Json) -> Json:
    return each_text(value, str.upper)


def each_text(value: Json, change: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [each_text(element, change) for element in value]
    if isinstance(value, dict):
        return {change(name): each_text(member, change) for name, member in value.items()}
    return value


def glob(pattern: str, text: str) -> bool:
    """Whether a text fits a pattern, in which each `*` stands for any text."""
    fitting = {0}
    for letter in pattern:
        if letter == "*":
            fitting = set(range(min(fitting), len(text) + 1)) if fitting else set()
        else:
            fitting = {place + 1 for place in fitting if place < len(text) and text[place] == letter}
    return len(text) in fitting
