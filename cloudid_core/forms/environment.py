"""Environment variables that supply fields of configurations.

`CLOUD_*` overrides stored fields. `AZURE_*`, which platforms set themselves, only fills fields that are not stored and
whose exclusive partner is not stored either. The core gets the variables as plain data in its settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import evolve

from ..errors import Code, Refused
from ..values import Secret, flaw_of_secret
from .fields import Field, fields_of

T = TypeVar("T")
OVERRIDE = "CLOUD_"
FALLBACK = "AZURE_"


def effective(config: T, environment: Mapping[str, Secret]) -> T:
    """Return the effective configuration: the stored one with the environment's variables applied.

    Refuse if the value of a variable is not valid for its field.
    """
    if not environment:
        return config
    changes: dict[str, Any] = {}
    for field in fields_of(type(config)):
        if variable := _variable_of(config, field, environment):
            try:
                changes[field.name] = field.kind.parse_variable(environment[variable].reveal())
            except ValueError as error:
                raise Refused(Code.FIELD_INVALID, f"the environment variable {variable} {error}") from None
    stored: Any = config
    return evolve(stored, **changes) if changes else config


def source_of(config: object, name: str, environment: Mapping[str, Secret]) -> str:
    """Return where the value of a field comes from, for error texts: the quoted field name, or a variable."""
    field = next(field for field in fields_of(type(config)) if field.name == name)
    variable = _variable_of(config, field, environment)
    return f"the environment variable {variable}" if variable else f'"{name}"'


def _variable_of(config: object, field: Field, environment: Mapping[str, Secret]) -> str:
    """Return the variable that supplies a field of a stored configuration. Empty if none does."""
    if not field.env:
        return ""
    if environment.get(OVERRIDE + field.env):
        return OVERRIDE + field.env
    is_written = getattr(config, field.name) or (field.excluded_by and getattr(config, field.excluded_by))
    return FALLBACK + field.env if not is_written and environment.get(FALLBACK + field.env) else ""


def supplied(form: type, name: str, environment: Mapping[str, Secret]) -> bool:
    """Return whether the environment overrides a field."""
    return any(field.name == name and environment.get(OVERRIDE + field.env) for field in fields_of(form) if field.env)


def secret_flaw(secret: Secret, environment: Mapping[str, Secret]) -> str:
    """Return what is wrong with an effective client secret, and where it comes from. Empty: nothing."""
    flaw = flaw_of_secret(secret.reveal())
    return f"{source_of_secret(secret, environment)} {flaw}" if flaw else ""


def source_of_secret(secret: Secret, environment: Mapping[str, Secret]) -> str:
    """Return where an effective client secret comes from: the quoted field name, or a variable."""
    names = (f"{prefix}CLIENT_SECRET" for prefix in (OVERRIDE, FALLBACK))
    variable = next((name for name in names if environment.get(name) == secret), "")
    return f"the environment variable {variable}" if variable else '"client_secret"'
