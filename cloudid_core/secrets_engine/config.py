"""The configuration of a secrets engine: its record, its rules, and the programs of its routes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from attrs import evolve, frozen
from msgspec.structs import replace

from ..background import IntentGuard
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
from ..effects import ListKeys
from ..errors import Code, Refused
from ..forms import (
    BOOLEAN,
    ENVIRONMENT,
    GUID,
    TENANT,
    FieldType,
    effective,
    lasting,
    schemas,
    setting,
    show,
    shown_members,
)
from ..messages import DELETE, READ, WRITE, Answer
from ..mounts import Mount
from ..provider import Client
from ..rotation import (
    AppliedForm,
    commit_config,
    prove_if_asked,
    read_warnings,
    root_password_expiration,
    with_applied,
)
from ..routing import PROVIDER, Call, route
from ..store import Changes, Found, expected, keys, retry_on_conflict, version_of
from ..values import LONGEST_SECRET, coercion
from .ceiling import FIELDS, Ceiling, resolved

MOST_NAMED: Final = 5
"""Maximum number of leases, and of intents, that a refusal names."""


def printable(most: int) -> FieldType[str]:
    """Return a type for texts with a maximum of printable characters."""

    def parse(raw: object) -> str:
        text = coercion.text(raw)
        if len(text) > most or not text.isprintable():
            raise ValueError(f"must have at most {most} printable characters")
        return text

    return FieldType("string", parse, limits={"maxLength": most})


REFERENCE: Final = printable(256)
PREFIX: Final = printable(100)
"""Microsoft Graph accepts display names of 256 characters, and cloudid's have fewer than 100 after the prefix."""


@frozen(kw_only=True)
class Config(RootCredential, Ceiling):
    """The stored configuration of a mount. Fields that were never set have the defaults of this table."""

    subscription_id: str = setting(GUID, "", "Default subscription.", env="SUBSCRIPTION_ID", required=True)
    tenant_id: str = setting(TENANT, "", "Tenant id.", env="TENANT_ID", required=True)
    environment: str = setting(ENVIRONMENT, "", "Azure environment. Empty: the public cloud.", env="ENVIRONMENT")
    max_secret_ttl: int = setting(  # type: ignore[misc]  # the base class has no such field
        lasting(LONGEST_SECRET),
        0,
        "Maximum validity of the client secrets and certificates that the engine creates, for tenants "
        "that limit it. Leases end with them. At least 2 hours. 0: no limit.",
        shown_empty=False,
    )

    service_management_reference: str = setting(
        REFERENCE,
        "",
        "Service management reference of the app registrations that the engine creates, which some "
        "tenants require. A role can override it.",
        shown_empty=False,
    )
    display_name_prefix: str = setting(
        PREFIX, "", "Prefix of the display names of the app registrations that the engine creates.", shown_empty=False
    )

    @property
    def cloud_name(self) -> str:
        """The environment by the table's name for it."""
        return environment_name(self.environment or DEFAULT_ENVIRONMENT)

    @property
    def place(self) -> tuple[str, str]:
        """Where the objects of leases are, in canonical spelling."""
        return self.tenant_id.lower(), self.cloud_name


@frozen(kw_only=True)
class ConfigForm(Config, AppliedForm):
    """A write of the configuration."""

    force: bool = setting(BOOLEAN, False, "Change the tenant or environment even if leases need the current one.")


@frozen(kw_only=True)
class DeleteForm:
    """A deletion of the configuration."""

    force: bool = setting(
        BOOLEAN,
        False,
        "Delete the configuration even if there are leases. They cannot be revoked until there is a new one.",
    )


CONFIG_MEMBERS: Final = schemas.joined(
    shown_members(Config, omit=("client_secret",)), optional={"root_password_expiration_date": schemas.TIME}
)


async def find_config(context: Context, mount: Mount) -> Found[Config] | None:
    return await context.records.find(keys.config(mount.id), Config)


async def in_use(context: Context, mount: Mount, deadline: Deadline) -> tuple[Config, Client, dict[str, int]]:
    """Return the effective configuration, the mount's client for it, and what a commit must expect of it."""
    found = await find_config(context, mount)
    config = effective_config(context.settings, Config, found)
    made = client_of(context, mount, config, version_of(found), deadline)
    return config, made, expected(found, keys.config(mount.id))


async def client(context: Context, mount: Mount, deadline: Deadline) -> Client:
    """Return the mount's client for Azure under its current configuration."""
    return (await in_use(context, mount, deadline))[1]


def clamped_warnings(fields: Iterable[str]) -> tuple[str, ...]:
    """Return a warning for the writer of a role about each field that is limited to a lower value."""
    return tuple(
        f'"{field}" is longer than "max_secret_ttl" of the configuration, which is used instead' for field in fields
    )


@route(
    "config",
    WRITE,
    refusals=(Code.LEASES_ALIVE, *PROVIDER),
    form=ConfigForm,
    exists=lambda call: call.context.records.has(keys.config(call.mount.id)),
    names_provider_codes=True,
)
@retry_on_conflict
async def write_config(call: Call) -> Answer:
    """Configures the engine.

    The rules are checked on the merged, effective configuration.
    """
    context, environment = call.context, call.context.settings.environment
    key = keys.config(call.mount.id)
    given = {name: value for name, value in changes_given(call.given.values).items() if name != "force"}
    found, expects = await context.records.find_for_writing(key, Config)
    stored = found.record if found else Config()
    config = with_default_token_ttl(evolve(stored, **await with_applied(call, stored, given)))
    new = effective(config, environment)
    root_credential.check(config, environment)
    client = client_of(context, call.mount, new, version_of(found), call.deadline)
    await prove_if_asked(call, client)
    if config.has_names:
        config = await resolved(
            replace(client, owner=f"{call.mount.id}:{call.request_id}", mount=""), config, new.subscription_id
        )
    if found is not None and effective(found.record, environment).place != new.place:
        expects |= await _refuse_to_strand(call)
    answer = await commit_config(call, Changes(expects, {key: config}), config)
    if not given.keys() & set(FIELDS):
        return answer
    stopped = await context.components.of(call.mount).count_stopped(context, call.mount, call.deadline)
    return replace(answer, warnings=(*answer.warnings, *config.warnings(stopped)))


@route("config", READ, CONFIG_MEMBERS)
async def read_config(call: Call) -> Answer:
    """Reads the stored configuration, without its client secret.

    Empty values when there is none.
    """
    found = await find_config(call.context, call.mount)
    shown = show(found.record if found else Config(), omit=("client_secret",))
    if found is None:
        return Answer(data={name: type(value)() for name, value in shown.items()})
    expiration = await root_password_expiration(call.context, call.mount, found.record)
    warnings = await read_warnings(call.context, call.mount, found.record, found.version, call.now)
    return Answer(data={**shown, **expiration}, warnings=warnings)


@route("config", DELETE, refusals=(Code.LEASES_ALIVE,), form=DeleteForm)
@retry_on_conflict
async def delete_config(call: Call) -> Answer:
    """Deletes the configuration and its credentials.

    Without `force`, it is refused while leases, intents or roles need them.
    """
    key = keys.config(call.mount.id)
    _, expects = await call.context.records.find_for_writing(key, Config)
    expects |= await _refuse_to_strand(call)
    return await commit_config(call, Changes(expects, deletes=(key,)), None)


async def _refuse_to_strand(call: Call) -> dict[str, int]:
    """Without `force`, refuse a change after which leases, intents or roles could no longer reach Azure.

    Return what the commit must expect: that no intent is opened in the meantime. An intent becomes a lease or a role's
    app registration, and a dropped one of these becomes an intent. So intents are listed before them, and again after
    them.
    """
    if call.given.values.get("force"):
        return {}
    context, mount = call.context, call.mount
    _, expects = await context.records.find_for_writing(keys.intent_guard(mount.id), IntentGuard)
    intents, leases = keys.intents(mount.id), keys.mount_leases(mount.id)
    listed = [(intents, await ListKeys(intents, "", MOST_NAMED + 1))]
    keeping = await context.components.of(mount).count_kept(context, mount)
    listed += [(prefix, await ListKeys(prefix, "", MOST_NAMED + 1)) for prefix in (leases, intents)]
    named: list[str] = [f"roles with an app registration or a client secret: {keeping}"] if keeping else []
    for what, prefix in (("lease", leases), ("intent", intents)):
        found = sorted({key for each, page in listed if each == prefix for key in page})
        named += [f"{what} {key.removeprefix(prefix)}" for key in found[:MOST_NAMED]]
        named += [f"more {what}s"] * (len(found) > MOST_NAMED)
    if named:
        raise Refused(Code.LEASES_ALIVE, f"{', '.join(named)}; force=true continues anyway")
    return expects
