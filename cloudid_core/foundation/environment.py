"""The process environment's say in configurations.

`CLOUD_*` variables override stored fields; the spelling `AZURE_*`, which platforms inject by themselves, only fills
fields that are empty otherwise. They reach the core as plain data in its settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import evolve

from ..api.fields import Field, fields_of
from ..errors import Code, Refused
from ..values.secret import Secret

T = TypeVar("T")
OVERRIDE = "CLOUD_"
FALLBACK = "AZURE_"


def effective(config: T, environment: Mapping[str, Secret]) -> T:
    """The configuration that counts: what is stored, with the environment's variables laid over it.

    Refused when a variable has a value that its field does not take.
    """
    if not environment:
        return config
    changes: dict[str, Any] = {}
    for field in fields_of(type(config)):
        if not field.env:
            continue
        variable = OVERRIDE + field.env
        if not environment.get(variable) and not getattr(config, field.name):
            variable = FALLBACK + field.env
        if value := environment.get(variable):
            changes[field.name] = _parsed(field, variable, value)
    return _changed(config, changes) if changes else config


def _parsed(field: Field, variable: str, value: Secret) -> Any:
    try:
        return field.kind.parse(value.reveal())
    except ValueError as error:
        raise Refused(Code.FIELD_INVALID, f"the environment variable {variable} {error}") from None


def _changed(config: Any, changes: Mapping[str, Any]) -> Any:
    return evolve(config, **changes)


def supplied(form: type, name: str, environment: Mapping[str, Secret]) -> bool:
    """Whether the environment overrides a field."""
    return any(field.name == name and environment.get(OVERRIDE + field.env) for field in fields_of(form) if field.env)
