"""The configuration of an authentication method: its record, its rules, and the programs of its routes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from attrs import evolve, frozen

from ..clouds import DEFAULT_ENVIRONMENT, environment_name
from ..context import Context
from ..credentials import (
    RootCredential,
    changes_given,
    client_of,
    effective_config,
    root_credential,
    with_default_token_ttl,
)
from ..deadline import Deadline
from ..errors import Code, Problem, Refused
from ..forms import (
    ENVIRONMENT,
    INTEGER,
    TENANT,
    TEXT,
    FieldType,
    Json,
    bounded,
    effective,
    lasting,
    schemas,
    setting,
    show,
    shown_members,
)
from ..messages import DELETE, READ, WRITE, Answer
from ..mounts import Mount
from ..provider import Client, RetryPolicy
from ..rotation import (
    AppliedForm,
    commit_config,
    prove_if_asked,
    read_warnings,
    root_password_expiration,
    with_applied,
)
from ..routing import PROVIDER, Call, route
from ..store import Changes, Found, keys, retry_on_conflict, version_of
from ..values import LONGEST_DELAY

NANOSECONDS: Final = 10**9


class Nanoseconds(float):
    """A delay that was given as a number which only a read for existing clients gives: those are nanoseconds."""

    number: int


def _delay(raw: object) -> float:
    number = int(raw) if isinstance(raw, str) and _DIGITS.fullmatch(raw) else raw
    if isinstance(number, int) and NANOSECONDS <= number < 10**30:
        delay = Nanoseconds(number / NANOSECONDS)
        delay.number = number
        return delay
    return float(_SECONDS.parse(raw))


_DIGITS: Final = re.compile(r"[0-9]{1,30}")
_SECONDS: Final = lasting(LONGEST_DELAY)
DELAY: Final = FieldType(
    _SECONDS.name, _delay, math.ceil, null_is_absent=True, schema=_SECONDS.schema, limits=_SECONDS.limits
)
"""Whole seconds that are stored as a fraction; a stored fraction reads back rounded up."""


@frozen(kw_only=True, slots=False)  # slots and cached properties take a `__getattr__`, which slows all down
class Config(RootCredential):
    """What is stored for a mount. Fields that were never set have the defaults of this table."""

    tenant_id: str = setting(TENANT, "", "Tenant id.", env="TENANT_ID", required=True)
    resource: str = setting(
        TEXT, "", "The audience that the JWT of a login must have.", env="AD_RESOURCE", required=True
    )
    environment: str = setting(ENVIRONMENT, "", "Azure environment. Empty: the public cloud.", env="ENVIRONMENT")
    max_retries: int = setting(bounded(INTEGER, 0, 20), 3, "How often a failed call to Azure is retried.")
    max_retry_delay: float = setting(DELAY, 60.0, "Longest pause between retries.")
    retry_delay: float = setting(DELAY, 4.0, "First pause before a retry. It doubles with each retry.")

    @cached_property
    def cloud_name(self) -> str:
        return environment_name(self.environment or DEFAULT_ENVIRONMENT)

    @cached_property
    def retry(self) -> RetryPolicy:
        """What is stored from before there was a bound counts as that."""
        return RetryPolicy(
            max_retries=self.max_retries,
            retry_delay=min(self.retry_delay, LONGEST_DELAY),
            max_retry_delay=min(self.max_retry_delay, LONGEST_DELAY),
        )

    @property
    def clamped(self) -> tuple[str, ...]:
        """The delays that are stored from before there was a bound, and are longer."""
        return tuple(name for name in NANOSECONDS_TO_ALIASES if getattr(self, name) > LONGEST_DELAY)


@frozen(kw_only=True)
class ConfigForm(Config, AppliedForm):
    """A write of the configuration."""


NANOSECONDS_TO_ALIASES: Final = ("retry_delay", "max_retry_delay")
"""Read back in nanoseconds where a mount was made under the other name of its type: its clients expect that."""


CONFIG_MEMBERS: Final = schemas.joined(
    shown_members(Config, omit=("client_secret",)),
    optional={"TEXT": "client_secret", "TIME": "root_password_expiration_date"},
)


async def find_config(context: Context, mount: Mount) -> Found[Config] | None:
    """Return the configuration as it is stored."""
    return await context.records.find(keys.config(mount.id), Config)


async def client(context: Context, mount: Mount, deadline: Deadline) -> Client:
    """Return the client for calls to Azure under the current configuration of a mount."""
    found = await find_config(context, mount)
    config = effective_config(context.settings, Config, found)
    return client_of(context, mount, config, version_of(found), deadline)


@route(
    "config",
    WRITE,
    refusals=PROVIDER,
    form=ConfigForm,
    exists=lambda call: call.context.records.has(keys.config(call.mount.id)),
    names_provider_codes=True,
)
@retry_on_conflict
async def write_config(call: Call) -> Answer:
    """Configures the method.

    The rules are checked on the merged, effective configuration.
    """
    key = keys.config(call.mount.id)
    found, expects = await call.context.records.find_for_writing(key, Config)
    stored = found.record if found else Config()
    given = _without_read_back(call.mount, stored, changes_given(call.given.values))
    given = await with_applied(call, stored, given)
    config = with_default_token_ttl(evolve(stored, **given))
    environment = call.context.settings.environment
    root_credential.check(config, environment)
    candidate = effective(config, environment)
    await prove_if_asked(call, client_of(call.context, call.mount, candidate, version_of(found), call.deadline))
    return await commit_config(call, Changes(expects, {key: config}), config)


@route("config", READ, CONFIG_MEMBERS, refusals=(Code.NOT_FOUND,))
async def read_config(call: Call) -> Answer:
    """Reads the stored configuration, `client_secret` included."""
    found = await find_config(call.context, call.mount)
    if found is None:
        raise Refused(Code.NOT_FOUND)
    if call.mount.type_alias:
        shown = _shown_to_existing_clients(found.record)
    else:
        shown = show(evolve(found.record, environment=found.record.environment or DEFAULT_ENVIRONMENT))
    if call.context.settings.redact_client_secret:
        shown.pop("client_secret", None)
    expiration = await root_password_expiration(call.context, call.mount, found.record)
    warnings = await read_warnings(call.context, call.mount, found.record, found.version, call.now)
    return Answer(data={**shown, **expiration}, warnings=warnings)


def _shown_to_existing_clients(config: Config) -> dict[str, Json]:
    """As the method answers whose other name the mount's type was given by: a secret is never read back, an
    environment is what was written, and pauses are nanoseconds."""
    shown = show(config, omit=("client_secret",))
    return {**shown, **{name: shown[name] * NANOSECONDS for name in NANOSECONDS_TO_ALIASES}}


def _without_read_back(mount: Mount, stored: Config, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a write changes. A delay that repeats the nanoseconds of a read exactly is not a change."""
    shown = _shown_to_existing_clients(stored) if mount.type_alias else {}
    read_back = {
        name for name, value in given.items() if isinstance(value, Nanoseconds) and value.number == shown.get(name)
    }
    changes = {name: value for name, value in given.items() if name not in read_back}
    too_long = [name for name, value in changes.items() if isinstance(value, Nanoseconds)]
    if too_long:
        text = f"must be between 0 and {LONGEST_DELAY}"
        raise Refused.because([Problem(Code.FIELD_INVALID, f'"{name}" {text}') for name in too_long])
    return changes


@route("config", DELETE)
@retry_on_conflict
async def delete_config(call: Call) -> Answer:
    """Removes the configuration and its credentials."""
    key = keys.config(call.mount.id)
    _, expects = await call.context.records.find_for_writing(key, Config)
    return await commit_config(call, Changes(expects, deletes=(key,)), None)
