"""JSON schemas (JSON Schema 2020-12) of values, for documents that tools read."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

Schema = Mapping[str, Any]


def _of(type_name: str, **more: object) -> Schema:
    return MappingProxyType({"type": type_name, **more})


TEXT: Final = _of("string")
INTEGER: Final = _of("integer")
NUMBER: Final = _of("number")
BOOLEAN: Final = _of("boolean")
TIME: Final = _of("string", format="date-time")
NULL: Final = _of("null")
ANY: Final = MappingProxyType[str, Any]({})


def list_of(entry: Schema) -> Schema:
    return _of("array", items=entry)


def each(value: Schema) -> Schema:
    """Return the schema of an object with any names and one kind of values."""
    return _of("object", additionalProperties=value)


def nullable(schema: Schema) -> Schema:
    """Return the schema, or null."""
    return {**schema, "type": [schema["type"], "null"]} if "type" in schema else schema


def members(optional: Mapping[str, Schema | str] | None = None, /, **always: Schema | str) -> Schema:
    """Return the schema of an object with exactly these members. Several names of one kind can be combined:

    `TEXT="client_id token"`.
    """
    required = _apart(always)
    properties = {**required, **_apart(optional or {})}
    return _of("object", properties=properties, required=list(required), additionalProperties=False)


def _apart(written: Mapping[str, Schema | str]) -> dict[str, Schema]:
    apart: dict[str, Schema] = {}
    for name, schema in written.items():
        apart |= dict.fromkeys(schema.split(), KINDS[name]) if isinstance(schema, str) else {name: schema}
    return apart


def joined(*objects: Schema, optional: Mapping[str, Schema | str] | None = None) -> Schema:
    """Return the schema of an object with the members of all these objects."""
    always = {name: each["properties"][name] for each in objects for name in each["required"]}
    allowed = {name: schema for each in objects for name, schema in each["properties"].items() if name not in always}
    return members({**allowed, **(optional or {})}, **always)


LIST: Final = list_of(TEXT)
TEXTS: Final = each(TEXT)
KINDS: Final[Mapping[str, Schema]] = {"TEXT": TEXT, "INTEGER": INTEGER, "BOOLEAN": BOOLEAN, "TIME": TIME, "LIST": LIST}
"""The kinds of members whose names can be combined."""
