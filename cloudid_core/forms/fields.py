"""Fields: one table for each form and record, from which parsing, defaults, environment variables and documents come.

A class of settings declares its fields once:

    @frozen(kw_only=True)
    class Config:
        tenant_id: str = setting(TEXT, "", env="TENANT_ID", doc="Directory tenant id.")

and this module derives the rest: `parse` reads what a request gave, `show` is what a read answers, `fields_of` is the
table itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, cached_property
from typing import Any, Final, Generic, Self, TypeVar

import attrs
import msgspec
from attrs import frozen

from ..clouds import environment_name
from ..errors import Code, Problem, Refused
from ..values import (
    LONGEST_LIFE,
    Schedule,
    Secret,
    coercion,
    duration,
    flaw_of_secret,
    fold,
    guid_as_written,
    listing,
    names,
    network,
    resource_id,
)
from . import schemas
from .schemas import Schema

T = TypeVar("T")
N = TypeVar("N", int, float)
PLAIN: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
IGNORED: Final = "Endpoint ignored these unrecognized parameters"
LONGEST_LIST: Final = 1024
"""Maximum characters of the names in an error text."""
MOST_MEMBERS: Final = 64
LONGEST_TEXT: Final = 512
"""Limits of metadata. A token's metadata is in both entries of every audit device."""
Json = Any
"""A JSON value: None, bool, int, float, str, or a list or dict of them."""


SHOWN: Final[Mapping[Callable[[Any], Json], Schema]] = {list: schemas.LIST, dict: schemas.TEXTS}
"""The JSON types of values that a read shows as a list or an object."""


def _as_is(value: Any) -> Json:
    return value


@frozen
class FieldType(Generic[T]):
    """A type of values in the API. `parse` raises `ValueError` with a text that names the rule, never the input.

    A value is stored as it was written, because clients compare it with what they read. `normal` converts it to the
    form that is used for comparisons and for everything but reads.
    """

    name: str
    parse: Callable[[object], T]
    show: Callable[[T], Json] = _as_is
    null_is_absent: bool = False
    empty_is_absent: bool = False
    normal: Callable[[T], T] = _as_is
    schema: Schema = attrs.field(
        default=attrs.Factory(lambda kind: SHOWN.get(kind.show, schemas.TEXT), takes_self=True)
    )
    """The JSON schema of what a read shows."""
    limits: Schema = schemas.ANY
    """Additional rules for what a write accepts."""
    form: type | None = None
    """The form that reads an object whose members are fields themselves."""
    parse_variable: Callable[[object], T] = attrs.field(default=attrs.Factory(lambda kind: kind.parse, takes_self=True))
    """Parse an environment variable. A rule that became stricter must not stop a running service."""

    @property
    def written(self) -> Schema:
        """Return the schema of what a write should send, in the clearest spellings.

        A list may be a text with commas.
        """
        written = {**self.schema, **self.limits}
        return {**written, "type": ["array", "string"]} if written.get("type") == "array" else written

    def is_absent(self, raw: object) -> bool:
        """Return whether a given value means that there is none."""
        return (raw is None and self.null_is_absent) or (raw == "" and self.empty_is_absent)

    def accepts(self, value: object) -> bool:
        """Return whether a value can be parsed."""
        try:
            self.parse(value)
        except ValueError:
            return False
        return True


UNITS: Final[Schema] = {"type": ["integer", "string"]}
"""The forms of a duration: a number of seconds, or a text with units."""


def one_of(*choices: str) -> FieldType[str]:
    """Return a type for one of several choices. The empty text means the default."""

    def parse(raw: object) -> str:
        text = coercion.text(raw)
        if text and text not in choices:
            raise ValueError("must be one of " + ", ".join(choices))
        return text

    return FieldType("one of " + ", ".join(choices), parse, limits={"enum": ["", *choices]})


def some_of(*choices: str) -> FieldType[tuple[str, ...]]:
    """Return a type for a list of one or more choices, which ignores case."""
    named = ", ".join(choices)

    def parse(raw: object) -> tuple[str, ...]:
        entries = listing.comma_list(raw)
        if not entries or not set(map(fold, entries)) <= set(choices):
            raise ValueError(f"must contain one or more of {named}")
        return entries

    return FieldType(f"list of {named}", parse, list, null_is_absent=True)


def _checked(parse: Callable[[object], T], check: Callable[[T], object]) -> Callable[[object], T]:
    """Return a parser that checks a value and keeps it as it was written."""

    def checked(raw: object) -> T:
        written = parse(raw)
        check(written)
        return written

    return checked


def _metadata(raw: object) -> dict[str, str]:
    members = listing.key_values(raw)
    if len(members) > MOST_MEMBERS or any(len(text) > LONGEST_TEXT for pair in members.items() for text in pair):
        raise ValueError(f"must have at most {MOST_MEMBERS} members, each with at most {LONGEST_TEXT} characters")
    return members


def _or_empty(parse: Callable[[object], str]) -> Callable[[object], str]:
    """Parse a text. null and "" are the empty text."""
    return lambda raw: parse(text) if (text := coercion.text(raw)) else ""


def bounded(kind: FieldType[N], least: N, most: N) -> FieldType[N]:
    """Return a number type with a minimum and a maximum, both included."""
    limits = kind.show(least), kind.show(most)

    def parse(raw: object) -> N:
        number = kind.parse(raw)
        if not least <= number <= most:
            raise ValueError("must be between {} and {}".format(*limits))
        return number

    return FieldType(
        "{} from {} to {}".format(kind.name, *limits),
        parse,
        kind.show,
        kind.null_is_absent,
        schema=kind.schema,
        limits={**kind.limits, "minimum": least, "maximum": most},
    )


DURATION: Final = FieldType("duration", duration.seconds, null_is_absent=True, schema=schemas.INTEGER, limits=UNITS)


def lasting(most: int, least: int = 0) -> FieldType[int]:
    """Return a type for durations in whole seconds, up to the maximum in `values.bounds`."""
    return bounded(DURATION, least, most)


def _client_secret(raw: object) -> Secret:
    text = coercion.text(raw)
    if flaw := flaw_of_secret(text):
        raise ValueError(flaw)
    return Secret(text)


def short(most: int) -> FieldType[str]:
    """Return a type for short texts with a maximum of characters."""

    def parse(raw: object) -> str:
        text = coercion.text(raw)
        if len(text) > most:
            raise ValueError(f"must be at most {most} characters long")
        return text

    return FieldType("string", parse, limits={"maxLength": most})


TEXT: Final = FieldType("string", coercion.text)
SHORT: Final = short(1024)
"""Ids of leases, paths, and positions in a list."""
SECRET: Final = FieldType(
    "string", _client_secret, Secret.reveal, parse_variable=lambda raw: Secret(coercion.text(raw))
)
INTEGER: Final = FieldType("integer", coercion.integer, schema=schemas.INTEGER)
BOOLEAN: Final = FieldType("bool", coercion.boolean, schema=schemas.BOOLEAN)
SECONDS: Final = lasting(LONGEST_LIFE)
PRECISE_SECONDS: Final = FieldType(
    "duration", duration.precise_seconds, duration.show, null_is_absent=True, limits=UNITS
)
TENANT: Final = FieldType("GUID or host name", _or_empty(names.tenant))
GUID: Final = FieldType("GUID", _or_empty(guid_as_written))
IDENTIFIER: Final = FieldType("string", lambda raw: names.identifier(coercion.text(raw)))
IDENTIFIERS: Final = FieldType("list", lambda raw: tuple(map(names.identifier, listing.comma_list(raw))), list)
GUIDS: Final = FieldType("list of GUIDs", lambda raw: tuple(map(guid_as_written, listing.comma_list(raw))), list)
IDENTITY_IDS: Final = FieldType(
    "list of resource ids", lambda raw: tuple(map(resource_id.user_assigned_identity, listing.comma_list(raw))), list
)
TEXTS: Final = FieldType("list", listing.comma_list, list)
METADATA: Final = FieldType("object", _metadata, dict)
NETWORKS: Final = FieldType(
    "list of CIDR blocks", _checked(listing.comma_list, network.networks), list, normal=network.networks
)
SCHEDULE: Final = FieldType(
    "five-field cron schedule",
    lambda raw: Schedule.parse(text).text if (text := coercion.text(raw)).strip() else "",
)
ENVIRONMENT: Final = FieldType(
    "environment name", _checked(coercion.text, lambda text: text and environment_name(text))
)
ANY: Final = FieldType("any JSON value", _as_is, schema=schemas.ANY)


@frozen(slots=False)  # slots and cached properties take a `__getattr__`, which slows all down
class AsWritten:
    """The base class of records that are read back as they were written."""

    @cached_property
    def normal(self) -> Self:
        """Return the record in the form for comparisons and all other uses except reads."""
        forms = {field.name: field.kind.normal(getattr(self, field.name)) for field in fields_of(type(self))}
        return attrs.evolve(self, **forms)


@frozen
class Field:
    """A row of the table."""

    name: str
    kind: FieldType[Any]
    default: Any
    doc: str
    env: str = ""
    old_name: str = ""
    """A deprecated spelling that is still accepted."""
    required: bool = False
    excluded_by: str = ""
    """A field that excludes this one: while it is set, the fallback variable of this field is ignored."""
    shown_empty: bool = True
    """Whether reads show the field if it is empty. Clients compare the members with those that they wrote."""


def setting(
    kind: FieldType[T],
    default: T,
    doc: str,
    *,
    env: str = "",
    old_name: str = "",
    required: bool = False,
    excluded_by: str = "",
    shown_empty: bool = True,
    repr: bool = True,  # noqa: A002  # as `attrs.field` has it
) -> T:
    """Declare a field of a class of settings, instead of `attrs.field`. Type checkers see the field's default."""
    named = {"kind": kind, "doc": doc, "env": env, "old_name": old_name, "required": required}
    metadata = {**named, "excluded_by": excluded_by, "shown_empty": shown_empty}
    field: T = attrs.field(default=default, metadata=metadata, repr=repr)
    return field


def fields_of(form: Any) -> tuple[Field, ...]:
    """Return the table of a class: its `setting`s in the order of their declaration."""
    return _table(form)


@cache
def _table(form: type) -> tuple[Field, ...]:
    return tuple(
        Field(name=attribute.name, default=attribute.default, **attribute.metadata)
        for attribute in attrs.fields(form)
        if "kind" in attribute.metadata
    )


@cache
def _required(form: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields_of(form) if field.required)


@cache
def _plain_texts(form: type) -> frozenset[str]:
    return frozenset(field.name for field in fields_of(form) if field.kind is TEXT and not field.old_name)


@cache
def defaults_of(form: Any) -> Any:
    """Return the form of a request without fields. Forms are frozen, so all such requests share one."""
    return form()


@cache
def spellings_of(form: type) -> Mapping[str, Field]:
    """Return the fields of a class by every name that a request may use."""
    return {name: field for field in fields_of(form) for name in (field.name, field.old_name) if name}


def combined(name: str, *forms: type) -> type:
    """Return a form with the fields of several forms. If two have a field with the same name, the first one is used."""
    fields = {
        field.name: setting(field.kind, field.default, field.doc, old_name=field.old_name)
        for form in reversed(forms)
        for field in fields_of(form)
    }
    return attrs.make_class(name, fields, frozen=True, kw_only=True)


class ParsedFields(msgspec.Struct, frozen=True):
    """The fields of a request: parsed values by field name, and which deprecated spellings were used or overridden."""

    values: Mapping[str, Any]
    spelled_old: Mapping[str, bool]
    ignored: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<ParsedFields {', '.join(self.values)}>"

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


NOT_OFFERED: Final[Mapping[str, str]] = {
    "alias_metadata": "there are no entities",
    "client_secret": "a static role creates its client secrets itself",
    "defer_initial_creds": "a static role creates its first client secret when it is written",
    "expiration": "a static role creates its client secrets itself",
    "rotation_policy": "a failed rotation is retried until its window ends",
    "rotation_grace_period": "the old and the new client secret are both valid for five minutes, or for "
    "half the period if that is shorter",
    "secondary_rate": "requests are always counted for each source address",
    "secret_id": "a static role creates its client secrets itself",
    "skip_import_rotation": "a static role creates its client secrets itself",
}
"""Fields of Vault that are not supported here, and why. Clients may send them empty."""
BOUND: Final = "bound_"
MOST_SUGGESTED: Final = 8
LONGEST_COMPARED: Final = 64
"""Maximum number of unknown fields, and characters of each, that are compared with known names."""
_STRINGS: Final = frozenset({str})
NOTHING_GIVEN: Final = ParsedFields({}, {}, ())


def parse(form: type, body: Mapping[str, object]) -> ParsedFields:
    """Parse the fields of `form` in a body. A current spelling takes precedence over a deprecated one.

    Report all problems at once.
    """
    if not body:
        return NOTHING_GIVEN
    if body.keys() <= _plain_texts(form) and set(map(type, body.values())) == _STRINGS:
        return ParsedFields(body, {}, ())  # texts are taken as they are: that is all of a login
    values: dict[str, Any] = {}
    spelled_old: dict[str, bool] = {}
    ignored: list[str] = []
    problems: list[Problem] = []
    spellings = spellings_of(form)
    for spelling, raw in body.items():
        field = spellings.get(spelling)
        if field is None:
            ignored.append(spelling)
            continue
        name, kind = field.name, field.kind
        if kind.is_absent(raw) or (spelling != name and name in body):
            continue
        try:
            values[name] = kind.parse(raw)
        except ValueError as error:
            problems.append(Problem(Code.FIELD_INVALID, f'"{spelling}" {error}'))
        old = field.old_name  # who writes back what was read says both alike, and means neither
        if old and not (name in body and old in body and body[name] == body[old]):
            spelled_old[old] = spelling != name
    if problems:
        raise Refused.because(problems) from None
    ignored.sort()
    return ParsedFields(values, spelled_old, tuple(ignored))


def without_not_offered(given: ParsedFields, body: Mapping[str, object]) -> ParsedFields:
    """Return the fields without unsupported ones that are empty. Refuse if an unsupported field has a value."""
    asked = [name for name in given.ignored if name in NOT_OFFERED and body[name]]
    if asked:
        details = [f'"{name}" must be empty: {NOT_OFFERED[name]}' for name in asked]
        raise Refused.because([Problem(Code.FIELD_INVALID, detail) for detail in details])
    return msgspec.structs.replace(given, ignored=tuple(name for name in given.ignored if name not in NOT_OFFERED))


def require_known_bounds(form: type, ignored: Sequence[str], body: Mapping[str, object]) -> None:
    """Refuse a body in which an unknown field that begins with `bound_` has a value.

    Other unknown fields cause only a warning. But without this field, the role would admit more than intended, and
    existing clients do not show warnings. The error text does not contain the unknown name, because it may be a secret.
    """
    unknown = [name for name in ignored if fold(name).startswith(BOUND) and body[name]]
    if not unknown:
        return
    known = [name for name in spellings_of(form) if name.startswith(BOUND)]
    if not known:
        raise Refused(Code.FIELD_INVALID, f'there are no fields that begin with "{BOUND}" here')
    nearest = {}
    for name in unknown[:MOST_SUGGESTED]:
        nearest.update(dict.fromkeys(get_close_matches(fold(name)[:LONGEST_COMPARED], known, 1, 0.0)))
    text = f'a field that begins with "{BOUND}" is unknown; did you mean "{{}}"?'
    raise Refused.because([Problem(Code.FIELD_INVALID, text.format(name)) for name in nearest])


def listed(names: Sequence[str]) -> str:
    """Return unknown member names for a text: those that are short enough, and the number of others.

    Names that are not plain words are only counted, because they could have a meaning for programs that read a log.
    """
    shown: list[str] = []
    left = LONGEST_LIST
    for name in names:
        if not PLAIN.fullmatch(name):
            continue
        left -= len(name) + 1
        if left < 0:
            break
        shown.append(name)
    more = len(names) - len(shown)
    return " ".join((*shown, f"and {more} more") if more else shown)


def ignored(names: Sequence[str]) -> str:
    """Return the warning about unknown members, with Vault's text."""
    return f"{IGNORED}: [{listed(names)}]"


def without_names(warning: str) -> str:
    """Return a warning for an audit entry, without names from the request."""
    return IGNORED if warning.startswith(IGNORED) else warning


def require(form: type, given: ParsedFields, where: str = "") -> None:
    """Refuse unless every required field has a value. `where` says where the field belongs."""
    if not all(map(given.values.get, _required(form))):
        missing = [name for name in _required(form) if not given.values.get(name)]
        raise Refused.because([Problem(Code.FIELD_REQUIRED, f'"{name}"{where}') for name in missing])


def show(record: object, *, omit: Iterable[str] = (), spelled_old: Iterable[str] = ()) -> dict[str, Json]:
    """Return the JSON members of a record, in the order of its table. Deprecated spellings in use are repeated."""
    hidden, old = frozenset(omit), frozenset(spelled_old)
    shown: dict[str, Json] = {}
    for field in fields_of(type(record)):
        value = getattr(record, field.name)
        if field.name in hidden or not (value or field.shown_empty):
            continue
        shown[field.name] = field.kind.show(value)
        if field.old_name in old and shown[field.name]:
            shown[field.old_name] = shown[field.name]
    return shown


def shown_members(form: type, *, omit: Iterable[str] = (), old_names: bool = False) -> Schema:
    """Return the member names that `show` returns for a record. `old_names`: including deprecated spellings in use."""
    hidden = frozenset(omit)
    fields = [field for field in fields_of(form) if field.name not in hidden]
    optional = {field.name: field.kind.schema for field in fields if not field.shown_empty}
    if old_names:
        optional |= {field.old_name: field.kind.schema for field in fields if field.old_name}
    return schemas.members(optional, **{field.name: field.kind.schema for field in fields if field.shown_empty})
