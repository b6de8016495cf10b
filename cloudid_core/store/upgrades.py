"""Upgrades: how records are read that an earlier version of the service wrote.

A field that was renamed is found under its old name. What is written has the new name only.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec
from attrs import fields_dict, has

NEW_NAMES: Final[Mapping[str, str]] = MappingProxyType({"holdings": "provisioned", "persisted": "persistent_app"})
"""The names of fields before they were renamed, and since. No record that has one of them holds names that users
choose."""

_TRACES: Final = tuple(f'"{name}"'.encode() for name in NEW_NAMES)


def has_renamed_fields(form: type) -> bool:
    return has(form) and not fields_dict(form).keys().isdisjoint(NEW_NAMES.values())


def with_new_names(raw: bytes) -> bytes:
    """The JSON of a record under the names of today."""
    if not any(trace in raw for trace in _TRACES):
        return raw
    return msgspec.json.encode(_renamed(msgspec.json.decode(raw)))


def _renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {NEW_NAMES.get(name, name): _renamed(member) for name, member in value.items()}
    return [_renamed(item) for item in value] if isinstance(value, list) else value
