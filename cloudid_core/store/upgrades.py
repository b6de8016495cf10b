"""Upgrades: read records that an earlier version wrote.

A renamed field is found under its old name, and written only under its new name.

During an upgrade of several nodes, a record may also come from a later version. Unknown members are dropped, unless
they restrict something: a role that lost a bound would admit more.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec
from attrs import fields_dict, has

NEW_NAMES: Final[Mapping[str, str]] = MappingProxyType({"holdings": "provisioned", "persisted": "persistent_app"})
"""Old and new names of renamed fields. No record with one of them has names that users choose."""

_TRACES: Final = tuple(f'"{name}"'.encode() for name in NEW_NAMES)


BOUND: Final = "bound_"
UNKNOWN_BOUNDS: Final = "unknown_bounds"
"""The field of a record for the names of stored bounds that this version does not know. It is never stored."""


def keeps_unknown_bounds(form: type) -> bool:
    return has(form) and UNKNOWN_BOUNDS in fields_dict(form)


def unknown_bounds(raw: bytes, form: type) -> tuple[str, ...]:
    """Return the names of bounds with a value in the JSON of a record that its form does not know."""
    known = fields_dict(form)
    members = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    unknown = [name for name in members if name.startswith(BOUND) and name not in known]
    return tuple(name for name in unknown if msgspec.json.decode(members[name]))


def has_renamed_fields(form: type) -> bool:
    return has(form) and not fields_dict(form).keys().isdisjoint(NEW_NAMES.values())


def with_new_names(raw: bytes) -> bytes:
    """Return the JSON of a record with current names."""
    if not any(trace in raw for trace in _TRACES):
        return raw
    return msgspec.json.encode(_renamed(msgspec.json.decode(raw)))


def _renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {NEW_NAMES.get(name, name): _renamed(member) for name, member in value.items()}
    return [_renamed(item) for item in value] if isinstance(value, list) else value
