"""Parameters: which fields a request may carry under a rule, and with which values.

Requests spell one thing in several ways, and a rule means all of them: a deprecated name is the same field, and values
are compared as JSON in the normal form of the route's field ("1h" is 3600). A list is compared element by element,
unless the value of the rule is a list itself. Denied values are compared without regard to case.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import chain
from typing import Final

import msgspec
from attrs import frozen

from ..forms import Field, FieldType, Json
from ..values import computed, fold
from .document import Rule, Values

CHECKED: Final = frozenset({"create", "read", "update", "patch"})
"""The operations whose parameters are checked."""
MOST_COMPARISONS: Final = 100_000
"""How many times a value of a request may be compared with a value of a rule: some 30 ms of work."""
_PIECE: Final = 256
"""As many characters take as long to compare as a short text."""

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
    given = [_Parameter(name, value, fields.get(name), parameters.keys()) for name, value in parameters.items()]
    if not all(any(name in each.names and each.is_given for each in given) for name in rule.required_parameters):
        return False
    if any(_is_denied(each, rule.denied_parameters) for each in given):
        return False
    return not rule.allowed_parameters or all(_is_allowed(each, rule.allowed_parameters) for each in given)


def _size(value: Json) -> int:
    """How many comparisons with one value of a rule a value takes at most."""
    if isinstance(value, str):
        return value.count(",") + 1 + len(value) // _PIECE
    return sum(map(_size, value)) if isinstance(value, list) else 1


def merged(first: Values, second: Values) -> Values:
    """The values of two rules for the same pattern; where one rule accepts any value, so does the result."""
    both = first.keys() & second.keys()
    return {
        **first,
        **second,
        **{name: first[name] + second[name] if first[name] and second[name] else () for name in both},
    }


# Normal JSON values


def normal_json(value: Json, field: Field | None) -> Json:
    """The value of a request or a rule, as JSON in the normal form of a field. `ValueError`: the field refuses it.

    Without a field a scalar is its text, because clients spell `5` as "5" too.
    """
    kind = field.kind if field else _UNKNOWN
    return _plain(kind.show(kind.normal(kind.parse(value))))


def _plain(value: Json) -> Json:
    """JSON of plain types, in which equal numbers are equal: 5.0 is 5."""
    match value:
        case list() | tuple():
            return [_plain(element) for element in value]
        case Mapping():
            return {name: _plain(member) for name, member in value.items()}
        case msgspec.Raw():
            return _plain(computed(value))
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


def _changed(value: Json, change: Callable[[str], str]) -> Json:
    """JSON whose texts are changed."""
    match value:
        case str():
            return change(value)
        case list():
            return [_changed(element, change) for element in value]
        case dict():
            return {change(name): _changed(member, change) for name, member in value.items()}
        case _:
            return value


def _unknown(value: Json) -> Json:
    match value:
        case list():
            return [_unknown(element) for element in value]
        case dict():
            return {name: _unknown(member) for name, member in value.items()}
        case None:
            return None
        case _:
            return _text(_plain(value))


_UNKNOWN: Final = FieldType("any JSON value", _unknown)
"""What the route does not know, and therefore does not use."""


def _text(value: Json) -> str | None:
    """A normal scalar as a pattern is compared with it; `None`: null, or not a scalar."""
    match value:
        case str():
            return value
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case _:
            return None


def _exact(value: Json) -> str:
    """A text that is equal for equal JSON values only: `true` and 1 differ."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


# Both sides of a comparison


@frozen(slots=False)  # it has cached properties
class _Parameter:
    """A parameter as it was given, and the route's field for it, if there is one."""

    name: str
    raw: Json
    field: Field | None
    beside: Iterable[str]
    """The names of all parameters of the request."""

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that rules may use for it, in lower case."""
        names = (self.name,) if self.field is None else (self.field.name, self.field.old_name)
        return frozenset(name.lower() for name in names if name)

    @cached_property
    def _read(self) -> list[Json]:
        return _read(self.raw, self.field)

    @property
    def parses(self) -> bool:
        return bool(self._read)

    @property
    def value(self) -> Json:
        """The normal form of what parses."""
        return self._read[0]

    @property
    def is_given(self) -> bool:
        """Whether the route takes it for given. It reads an old name only where the new one is not used."""
        if self.field is None:  # fields are in lower case: the route takes `TTL` for nothing it knows
            return self.name in self.names
        is_read = self.name == self.field.name or self.field.name not in self.beside
        return is_read and self.parses and not self.field.kind.is_absent(self.raw)

    @property
    def is_caseless(self) -> bool:
        """Whether the field takes the value in capitals for the same."""
        in_capitals = _read(_changed(self.raw, str.upper), self.field)
        return _exact(in_capitals) == _exact(self._read)


@frozen
class _Listed:
    """The values of a rule, as a field understands them: lists and elements by their `_exact` texts, and patterns."""

    lists: frozenset[str]
    elements: frozenset[str]
    patterns: tuple[str, ...]


def _allowing(values: Iterable[Json], given: _Parameter) -> _Listed:
    """Values that allow. A text that the field splits into several elements allows the list of them as a whole."""
    lists: list[Json] = []
    elements: list[Json] = []
    for value in values:
        match _read_value(value, given.field):
            case [[element]] if not isinstance(value, list):
                elements.append(element)
            case [list() as whole]:
                lists.append(whole)
            case [element]:
                elements.append(element)
    patterns = [value for value in values if isinstance(value, str) and (value[:1] == "*" or value[-1:] == "*")]
    if any(pattern != fold(pattern) for pattern in patterns) and given.is_caseless:
        patterns = [fold(pattern) for pattern in patterns]
    return _Listed(frozenset(map(_exact, lists)), frozenset(map(_exact, elements)), tuple(patterns))


def _denying(values: Iterable[Json], given: _Parameter) -> _Listed:
    """Values that deny, in lower case. A text that the field splits into several elements denies each of them.

    A text that the field refuses counts as a pattern: its author meant something else than a whole value.
    """
    lists: list[Json] = []
    elements: list[Json] = []
    patterns: list[str] = []
    for value in values:
        read = _read_value(value, given.field)
        match read:
            case [[_, *_] as several] if not isinstance(value, list):
                elements += several
            case [list() as whole]:
                lists.append(whole)
            case [element]:
                elements.append(element)
        if isinstance(value, str) and ("*" in value or not read):
            patterns += [piece.strip() for piece in value.split(",")] if isinstance(given.value, list) else [value]
    return _Listed(_folded(lists), _folded(elements), tuple(map(fold, patterns)))


def _read(value: Json, field: Field | None) -> list[Json]:
    """The normal form of a value, alone in a list; an empty one if the field refuses it."""
    try:
        return [normal_json(value, field)]
    except ValueError:
        return []


def _read_value(value: Json, field: Field | None) -> list[Json]:
    """As `_read`, of a value of a rule: an object may be the element of a list."""
    return _read(value, field) or (_read([value], field) if isinstance(value, dict) else [])


def _folded(values: Iterable[Json]) -> frozenset[str]:
    return frozenset(_exact(_changed(value, fold)) for value in values)


# The decision


def _is_denied(given: _Parameter, denied: Values) -> bool:
    if "*" in denied:
        return True
    named = [denied[name] for name in given.names if name in denied]
    if not named:
        return False
    if not all(named) or not given.parses:
        return True
    listed = _denying(list(chain.from_iterable(named)), given)
    value = _changed(given.value, fold)
    elements = value if isinstance(value, list) else [value]
    return (
        _exact(value) in listed.lists
        or any(_exact(element) in listed.elements for element in elements)
        or any(_fits_denial(element, pattern) for element in elements or [""] for pattern in listed.patterns)
    )


def _is_allowed(given: _Parameter, allowed: Values) -> bool:
    named = [allowed[name] for name in given.names if name in allowed]
    if not named and "*" in allowed:
        named = [allowed["*"]]
    if not named or not given.parses:
        return False
    if not all(named):
        return True
    listed = _allowing(list(chain.from_iterable(named)), given)
    value = given.value
    elements = value if isinstance(value, list) else [value]
    return _exact(value) in listed.lists or (
        bool(elements)
        and all(
            _exact(element) in listed.elements or any(_fits(element, pattern) for pattern in listed.patterns)
            for element in elements
        )
    )


def _fits(element: Json, pattern: str) -> bool:
    """Whether a scalar matches a pattern, in which `*` at either end stands for any text; `*` alone is any value."""
    open_start, open_end = pattern.startswith("*"), pattern.endswith("*")
    core = pattern[open_start : len(pattern) - open_end]
    if not core:
        return True
    text = _text(element)
    if text is None:
        return False
    if open_start and open_end:
        return core in text
    return text.endswith(core) if open_start else text.startswith(core)


def _fits_denial(element: Json, pattern: str) -> bool:
    """Whether a denial by a pattern, in which each `*` stands for any text, is about an element.

    It is about all that is not a scalar: its author meant something that the pattern cannot say.
    """
    text = _text(element)
    if text is None:
        return True
    first, *rest = pattern.split("*")
    if not rest:
        return text == first
    *inner, last = rest
    if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
        return False
    place, end = len(first), len(text) - len(last)
    for piece in inner:
        place = text.find(piece, place, end)
        if place < 0:
            return False
        place += len(piece)
    return True
