"""Variables of the process environment that supply fields of configurations.

`CLOUD_*` overrides stored fields. `AZURE_*`, which platforms inject on their own, only fills fields that are not
written, and none whose exclusive partner is written. The variables reach the core as plain data in its settings.
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
    """The configuration that counts: what is stored, with the environment's variables laid over it.

    Refused when a variable has a value that its field does not take.
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
    """Where the value of a field comes from, for error texts: the quoted field, or a variable."""
    field = next(field for field in fields_of(type(config)) if field.name == name)
    variable = _variable_of(config, field, environment)
    return f"the environment variable {variable}" if variable else f'"{name}"'


def _variable_of(config: object, field: Field, environment: Mapping[str, Secret]) -> str:
    """The variable that supplies a field of a stored configuration; empty when none does."""
    if not field.env:
        return ""
    if environment.get(OVERRIDE + field.env):
        return OVERRIDE + field.env
    is_written = getattr(config, field.name) or (field.excluded_by and getattr(config, field.excluded_by))
    return FALLBACK + field.env if not is_written and environment.get(FALLBACK + field.env) else ""


def supplied(form: type, name: str, environment: Mapping[str, Secret]) -> bool:
    """Whether the environment overrides a field."""
    return any(field.name == name and environment.get(OVERRIDE + field.env) for field in fields_of(form) if field.env)


def secret_flaw(secret: Secret, environment: Mapping[str, Secret]) -> str:
    """What is wrong with the form of an effective client secret, and where it comes from; empty: nothing."""
    flaw = flaw_of_secret(secret.reveal())
    return f"{source_of_secret(secret, environment)} {flaw}" if flaw else ""


def source_of_secret(secret: Secret, environment: Mapping[str, Secret]) -> str:
    """Where an effective client secret comes from: the quoted field, or a variable."""
    names = (f"{prefix}CLIENT_SECRET" for prefix in (OVERRIDE, FALLBACK))
    variable = next((name for name in names if environment.get(name) == secret), "")
    return f"the environment variable {variable}" if variable else '"client_secret"'
