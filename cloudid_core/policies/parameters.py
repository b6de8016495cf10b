"""Parameters: which fields a request may have under a rule, and with which values.

Requests can spell the same thing in several ways, and a rule means all of them: a deprecated name is the same field,
and values are compared as JSON in the normal form of the route's field ("1h" is 3600). A list is compared element by
element, unless the value of the rule is itself a list. Denied values ignore case.

Some objects are read by a form of their own. For a rule that denies, each member is a field as well: what a policy does
not allow to tune, it must not allow to set when a mount is created. For a rule that allows, the object is one value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import chain
from typing import Any, Final

import attrs
import msgspec
from attrs import frozen

from ..forms import Field, FieldType, Json, spellings_of
from ..values import computed, fold, is_like
from .document import Rule, Values

CHECKED: Final = frozenset({"create", "read", "update", "patch"})
"""The operations whose parameters are checked."""
MOST_COMPARISONS: Final = 50_000
"""Maximum comparisons of a request's elements with a rule's patterns: about 50 ms of work."""
READING: Final = 25
"""How many comparisons take as long as reading one value of a rule as a field."""
_BOOLEANS: Final = ("true", "false")
_NUMERIC: Final = frozenset("0123456789-.*")
"""The characters of patterns that a number can match."""
_PIECE: Final = 256
"""How many characters take as long to compare as a short text."""

NO_FIELDS: Final[Mapping[str, Field]] = {}


def fit(rule: Rule, parameters: Mapping[str, Json], fields: Mapping[str, Field] = NO_FIELDS) -> bool:
    """Return whether a request may have these parameters.

    All required ones must be present, none may be denied, and each must be allowed. `fields` are the fields of the
    route by each of their names. A value that cannot be parsed does not fit any rule that names it. Too many values to
    compare do not fit either.
    """
    if not (rule.required_parameters or rule.denied_parameters or rule.allowed_parameters):
        return True
    given = [_Parameter(name, value, fields.get(name), parameters.keys()) for name, value in parameters.items()]
    members = [member for each in given for member in each.members] if rule.denied_parameters else []
    denied = _Side(rule.denied_parameters, _denying)
    allowed = _Side(rule.allowed_parameters, _allowing)
    if _is_too_much([*given, *members], denied, allowed):
        return False
    if not _are_given(rule.required_parameters, given):
        return False
    if any(_is_denied(each, denied) for each in chain(given, members)):
        return False
    return not rule.allowed_parameters or all(_is_allowed(each, allowed) for each in given)


def _are_given(required: Iterable[str], given: Iterable[_Parameter]) -> bool:
    """Return whether a request has a parameter for each of these names."""
    missing = set(required)
    for each in given:
        if not missing.isdisjoint(each.names) and each.is_given:
            missing -= each.names
    return not missing


def _is_too_much(given: Iterable[_Parameter], *sides: _Side) -> bool:
    """Return whether a decision takes more work than a request may cause.

    Each value of a rule is read once for each type of field, and each pattern is compared with each element of a value.
    """
    left = MOST_COMPARISONS
    read: set[tuple[int, _Reading]] = set()
    for each in given:
        size = _size(each.raw)
        for place, side in enumerate(sides):
            names = side.names_for(each)
            is_read = (place, each.read_by(names)) in read
            read.add((place, each.read_by(names)))
            left -= side.patterns_of(names) * size
            left -= 0 if is_read else READING * side.size_of(names)
            if left < 0:
                return True
    return False


def _size(value: Json) -> int:
    """Return the maximum number of elements of a value, on all levels. Long texts count as several."""
    match value:
        case str():
            return value.count(",") + 1 + len(value) // _PIECE
        case list():
            return 1 + sum(map(_size, value))
        case dict():
            return 1 + sum(map(_size, value)) + sum(map(_size, value.values()))
        case _:
            return 1


def merged(rules: Iterable[Values]) -> Values:
    """Merge the values of several rules for the same pattern. If one rule accepts any value, so does the result."""
    joined: dict[str, list[Json]] = {}
    accept_any: set[str] = set()
    for rule in rules:
        for name, values in rule.items():
            joined.setdefault(name, []).extend(values)
            if not values:
                accept_any.add(name)
    return {name: () if name in accept_any else tuple(values) for name, values in joined.items()}


# Normal JSON values


def normal_json(value: Json, field: Field | None) -> Json:
    """Return the value of a request or a rule as JSON in the normal form of a field.

    Raise `ValueError` if the field refuses it.

    Without a field, a scalar becomes its text, because clients also write `5` as "5".
    """
    kind = field.kind if field else _UNKNOWN
    return _plain(kind.show(kind.normal(kind.parse(value))))


def _plain(value: Json) -> Json:
    """Return JSON of plain types, in which equal numbers are equal: 5.0 is 5."""
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
    """Return JSON with changed texts."""
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
"""Fields that the route does not know, and therefore does not use."""


def _text(value: Json) -> str | None:
    """Return a normal scalar as the text that patterns are compared with. `None`: null, or not a scalar."""
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
    """Return a text that is equal only for equal JSON values: `true` and 1 differ."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


# Both sides of a comparison


@frozen(slots=False)  # it has cached properties
class _Parameter:
    """A parameter of a request, and the route's field for it, if there is one."""

    name: str
    raw: Json
    field: Field | None
    beside: Iterable[str]
    """The names of all parameters of the request."""

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the lowercase names that rules may use for it."""
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
        """Return the normal form of the value, if it can be parsed."""
        return self._read[0]

    @property
    def kind(self) -> FieldType[Any]:
        return self.field.kind if self.field else _UNKNOWN

    @property
    def members(self) -> list[_Parameter]:
        """The members that count of an object with a form, as parameters of their own."""
        if self.kind.form is None or not self.parses or not isinstance(self.value, dict):
            return []
        fields, names = spellings_of(self.kind.form), self.value.keys()
        return [_Parameter(name, value, fields.get(name), names) for name, value in self.value.items()]

    def read_by(self, names: _Names) -> _Reading:
        """Return what the reading of values by these names depends on.

        The values of all unknown fields are read alike.
        """
        return names, id(self.kind), self.parses and isinstance(self.value, list)

    @property
    def is_given(self) -> bool:
        """Return whether the route considers it set. A deprecated name is only read if the current one is not used."""
        if self.field is None:  # fields are in lower case: the route takes `TTL` for nothing it knows
            return self.name in self.names
        is_read = self.name == self.field.name or self.field.name not in self.beside
        return is_read and self.parses and not self.field.kind.is_absent(self.raw)

    @property
    def is_caseless(self) -> bool:
        """Return whether the field ignores the case of the value."""
        in_capitals = _read(_changed(self.raw, str.upper), self.field)
        return _exact(in_capitals) == _exact(self._read)


@frozen
class _Listed:
    """The values of a rule, as a field reads them: lists and elements by their `_exact` texts, and patterns."""

    lists: frozenset[str]
    elements: frozenset[str]
    patterns: tuple[str, ...]
    caseless_patterns: tuple[str, ...]
    """The patterns for a value whose field ignores case."""


_Names = tuple[str, ...]
_Reading = tuple[_Names, int, bool]


@frozen
class _Side:
    """The allowed or the denied values of a rule. During one decision, they are read once for each type of field."""

    values: Values
    _understand: Callable[[Iterable[Json], _Parameter], _Listed]
    _listed: dict[_Reading, _Listed] = attrs.field(factory=dict, init=False)
    _sizes: dict[_Names, int] = attrs.field(factory=dict, init=False)
    _patterns: dict[_Names, int] = attrs.field(factory=dict, init=False)

    def names_for(self, given: _Parameter) -> _Names:
        """Return the names in the rule that match a parameter."""
        names = tuple(name for name in sorted(given.names) if name in self.values)
        return names or (("*",) if "*" in self.values else ())

    def is_any(self, names: _Names) -> bool:
        """Return whether the rule covers any value under these names."""
        return not all(self.values[name] for name in names)

    def listed(self, names: _Names, given: _Parameter) -> _Listed:
        reading = given.read_by(names)
        if reading not in self._listed:
            self._listed[reading] = self._understand(self._values_of(names), given)
        return self._listed[reading]

    def size_of(self, names: _Names) -> int:
        """Return the size of the values under these names, counted up to the readable maximum."""
        if names not in self._sizes:
            self._sizes[names] = _counted(map(_size, self._values_of(names)), MOST_COMPARISONS // READING)
        return self._sizes[names]

    def patterns_of(self, names: _Names) -> int:
        """Return the maximum number of pattern comparisons for one element, counted up to the limit."""
        if names not in self._patterns:
            texts = (value for value in self._values_of(names) if isinstance(value, str))
            sizes = (_size(text) + text.count("*") - 1 for text in texts if "*" in text)
            self._patterns[names] = _counted(sizes, MOST_COMPARISONS)
        return self._patterns[names]

    def _values_of(self, names: _Names) -> Iterable[Json]:
        return chain.from_iterable(self.values[name] for name in names)


def _counted(sizes: Iterable[int], most: int) -> int:
    """Return the sum of sizes, or a number above `most`."""
    total = 0
    for size in sizes:
        total += size
        if total > most:
            break
    return total


def _allowing(values: Iterable[Json], given: _Parameter) -> _Listed:
    """Return the allowed values. A text that the field splits into several elements allows only the whole list."""
    lists: list[Json] = []
    elements: list[Json] = []
    patterns: list[str] = []
    for value in values:
        match _read_value(value, given.field):
            case [[element]] if not isinstance(value, list):
                elements.append(element)
            case [list() as whole]:
                lists.append(whole)
            case [element]:
                elements.append(element)
        if isinstance(value, str) and (value[:1] == "*" or value[-1:] == "*"):
            patterns.append(value)
    exact_lists, exact_elements = frozenset(map(_exact, lists)), frozenset(map(_exact, elements))
    return _Listed(exact_lists, exact_elements, tuple(patterns), tuple(map(fold, patterns)))


def _denying(values: Iterable[Json], given: _Parameter) -> _Listed:
    """Return the denied values in lower case. A text that the field splits into several elements denies each of them.

    A value that the field refuses and that is not a pattern denies every value. Its author intended to deny something,
    and ignoring it would grant that.
    """
    lists: list[Json] = []
    elements: list[Json] = []
    patterns: dict[str, None] = {}
    for value in values:
        read = _read_value(_as_choice(value, given.kind), given.field)
        match read:
            case [[_, *_] as several] if not isinstance(value, list):
                elements += several
            case [list() as whole]:
                lists.append(whole)
            case [element]:
                elements.append(element)
        if isinstance(value, str) and "*" in value:
            pieces = [piece.strip() for piece in value.split(",")] if isinstance(given.value, list) else [value]
            patterns |= dict.fromkeys(map(fold, pieces))
        elif not read:
            patterns["*"] = None
    folded = tuple(patterns)
    return _Listed(_folded(lists), _folded(elements), folded, folded)


def _as_choice(value: Json, kind: FieldType[Any]) -> Json:
    """Return a text as the field spells it, if it is one of the field's choices in different case."""
    choices = kind.limits.get("enum", ()) if isinstance(value, str) else ()
    return next((choice for choice in choices if fold(choice) == fold(value)), value)


def _read(value: Json, field: Field | None) -> list[Json]:
    """Return a list with the normal form of a value, or an empty list if the field refuses it."""
    try:
        return [normal_json(value, field)]
    except ValueError:
        return []


def _read_value(value: Json, field: Field | None) -> list[Json]:
    """Return a value of a rule like `_read`: an object may be the element of a list."""
    return _read(value, field) or (_read([value], field) if isinstance(value, dict) else [])


def _folded(values: Iterable[Json]) -> frozenset[str]:
    return frozenset(_exact(_changed(value, fold)) for value in values)


# The decision


def _is_denied(given: _Parameter, denied: _Side) -> bool:
    if "*" in denied.values:
        return True
    names = denied.names_for(given)
    if not names:
        return False
    if denied.is_any(names) or not given.parses:
        return True
    listed = denied.listed(names, given)
    value = _changed(given.value, fold)
    elements = value if isinstance(value, list) else [value]
    return (
        _exact(value) in listed.lists
        or any(_exact(element) in listed.elements for element in elements)
        or any(_fits_denial(element, pattern) for element in elements or [""] for pattern in listed.patterns)
    )


def _is_allowed(given: _Parameter, allowed: _Side) -> bool:
    names = allowed.names_for(given)
    if not names or not given.parses:
        return False
    if allowed.is_any(names):
        return True
    listed = allowed.listed(names, given)
    patterns = listed.patterns
    if patterns != listed.caseless_patterns and given.is_caseless:
        patterns = listed.caseless_patterns
    value = given.value
    elements = value if isinstance(value, list) else [value]
    return _exact(value) in listed.lists or (
        bool(elements)
        and all(
            _exact(element) in listed.elements or any(_fits(element, pattern) for pattern in patterns)
            for element in elements
        )
    )


def _fits(element: Json, pattern: str) -> bool:
    """Return whether a scalar matches a pattern, in which `*` at either end matches any text.

    `*` alone matches any value.
    """
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
    """Return whether a denial by a pattern, in which each `*` matches any text, covers an element.

    A pattern that no value of the element's type can match covers all of them, because its author intended something
    that the pattern cannot express.
    """
    match element:
        case bool():
            texts = [text for text in _BOOLEANS if is_like(text, pattern)]
            return not texts or _text(element) in texts
        case int() | float() if not _NUMERIC.issuperset(pattern):
            return True
    text = _text(element)
    return text is None or is_like(text, pattern)
