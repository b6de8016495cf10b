"""Upgrades: how records are read that an earlier version of the service wrote.

A field that was renamed is found under its old name. What is written has the new name only.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs
from cattrs import Converter
from cattrs.gen import make_dict_structure_fn

OLD_NAMES: Final[Mapping[str, str]] = MappingProxyType({"provisioned": "holdings", "persistent_app": "persisted"})
"""Fields of records, and the names that they had before."""


def register_upgrades(converter: Converter) -> None:
    """Let a converter read records that hold fields under their old names."""
    converter.register_structure_hook_factory(
        _has_renamed_fields, lambda form: _structure_renamed(form, _renamed_fields(form), converter)
    )


def _renamed_fields(form: Any) -> tuple[str, ...]:
    return tuple(name for name in attrs.fields_dict(form) if name in OLD_NAMES)


def _has_renamed_fields(form: Any) -> bool:
    return isinstance(form, type) and attrs.has(form) and bool(_renamed_fields(form))


def _structure_renamed(form: Any, renamed: tuple[str, ...], converter: Converter) -> Any:
    structure = make_dict_structure_fn(form, converter)

    def structure_with_old_names(members: Mapping[str, Any], _: Any) -> Any:
        if any(OLD_NAMES[name] in members for name in renamed):
            members = dict(members)
            for name in renamed:
                if OLD_NAMES[name] in members:
                    members[name] = members.pop(OLD_NAMES[name])
        return structure(members, form)

    return structure_with_old_names
