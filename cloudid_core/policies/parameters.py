"""Parameters: which fields a request may carry under a rule, and with which values.

Requests spell one thing in several ways, and a rule means all of them: a deprecated name is the same field, a value is
compared as the route parses it ("1h" is 3600), and a list is compared element by element. Denied values are compared
without regard to case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen

from ..forms import Field, Json
from ..values import computed, fold
from .document import Rule, Values

CHECKED: Final = frozenset({"create", "read", "update", "patch"})
"""The operations whose parameters are checked."""
MOST_COMPARISONS: Final = 100_000
"""How many times a value of a request may be compared with a value of a rule: some 30 ms of work."""

NO_FIELDS: Final[Mapping[str, Field]] = {}


def fit(rule: Rule, parameters: Mapping[str, Json], fields: Mapping[str, Field] = NO_FIELDS) -> bool:
    """Whether a request may carry these parameters: all required are there, none is denied, each is allowed.

    `fields` are those of the route by each of their names. A value that does not parse fits no rule that names it.
    Values that are too many to be compared with those of the rule do not fit it.
    """
    if not (rule.required_parameters or rule.denied_parameters or rule.allowed_parameters):
        return True
    listed = sum(map(len, (*rule.allowed_parameters.values(), *rule.denied_parameters.values())))
    if listed and listed * sum(map(_size, parameters.values())) > MOST_COMPARISONS:
        return False
    given = [
        _Parameter(name, _names(name, fields.get(name)), value, fields.get(name)) for name, value in parameters.items()
    ]
    if not all(any(name in each.names and each.is_given for each in given) for name in rule.required_parameters):
        return False
    if any(_is_denied(each, rule.denied_parameters) for each in given):
        return False
    return not rule.allowed_parameters or all(_is_allowed(each, rule.allowed_parameters) for each in given)


def _size(value: Json) -> int:
    """How many elements a value has at most."""
    if isinstance(value, str):
        return value.count(",") + 1
    return len(value) if isinstance(value, list) else 1


def merged(first: Values, second: Values) -> Values:
    """The values of two rules for the same pattern; where one rule accepts any value, so does the result."""
    both = first.keys() & second.keys()
    return {
        **first,
        **second,
        **{name: first[name] + second[name] if first[name] and second[name] else () for name in both},
    }


@frozen
class _Parameter:
    """A parameter as it was given, and the route's field for it, if there is one."""

    name: str
    names: frozenset[str]
    """The names that rules may use for it, in lower case."""
    value: Json
    field: Field | None

    @property
    def is_given(self) -> bool:
        if self.field is None:  # fields are in lower case: the route takes `TTL` for nothing it knows
            return self.name in self.names
        return self.parses and not self.field.kind.is_absent(self.value)

    @property
    def parses(self) -> bool:
        return self.field is None or _parsed(self.value, self.field) is not None

    @property
    def values(self) -> list[str]:
        """The elements of the value, as the route parses them."""
        parsed = _parsed(self.value, self.field) if self.field else None
        return _elements(self.value) if parsed is None else parsed

    def listed(self, values: tuple[Json, ...]) -> list[str]:
        """The values of a rule, as they are written and as the route would understand them."""
        texts = [_text(each) for each in values]
        return texts + [text for each in values if self.field for text in _parsed(each, self.field) or ()]


def _names(name: str, field: Field | None) -> frozenset[str]:
    return frozenset(each.lower() for each in ((name,) if field is None else (field.name, field.old_name)) if each)


def _parsed(value: Json, field: Field) -> list[str] | None:
    """The elements of a value in the normal form of a field; `None` when it does not parse."""
    try:
        return _elements(field.kind.show(field.kind.normal(field.kind.parse(value))))
    except ValueError:
        return None


def _is_denied(given: _Parameter, denied: Values) -> bool:
    if "*" in denied:
        return True
    named = [denied[name] for name in given.names if name in denied]
    if not named:
        return False
    if not all(named) or not given.parses:
        return True
    listed = [fold(each) for values in named for each in given.listed(values)]
    spelled = [fold(each) for each in (_text(given.value), *_elements(given.value), *given.values)]
    return any(_matches(each, pattern) for each in spelled for pattern in listed)


def _is_allowed(given: _Parameter, allowed: Values) -> bool:
    named = [allowed[name] for name in given.names if name in allowed]
    if not named and "*" in allowed:
        named = [allowed["*"]]
    if not named or not given.parses:
        return False
    listed = [each for values in named for each in given.listed(values)]
    if not all(named) or _text(given.value) in listed:
        return True
    elements = given.values
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
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    try:
        number = computed(value)
    except ValueError:
        return ""
    match number:
        case float() if number.is_integer():
            return str(int(number))
        case int() | float():
            return str(number)
        case _:
            return ""


def _matches(text: str, pattern: str) -> bool:
    """Whether a text matches a pattern, in which `*` at either end matches anything."""
    open_start, open_end = pattern.startswith("*"), pattern.endswith("*")
    core = pattern[open_start : len(pattern) - open_end]
    if open_start and open_end:
        return core in text
    if open_start:
        return text.endswith(core)
    return text.startswith(core) if open_end else text == core
