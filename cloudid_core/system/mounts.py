"""The routes of mounts: list, enable, read, tune and disable them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from attrs import evolve, frozen
from msgspec import json

from ..audit import SECRETS
from ..effects import RandomBytes
from ..errors import CloudidError, Code, Refused, reason_of
from ..forms import (
    BOOLEAN,
    INTEGER,
    SECONDS,
    TEXT,
    TEXTS,
    FieldType,
    Json,
    bounded,
    fields_of,
    ignored,
    listed,
    one_of,
    parse,
    schemas,
    setting,
    spellings_of,
)
from ..leases import REASONS, due_after, remove_now, retire, what_remains
from ..messages import ACCEPTED, DELETE, LIST, NOTHING, READ, WRITE, Answer
from ..mounts import (
    AUTH,
    BUILT_IN,
    ID_BYTES,
    SECRET,
    SYSTEM,
    TYPE_ALIASES,
    Mount,
    MountTable,
    change_mounts,
    changing,
    mount_table,
    new_mount,
)
from ..quotas import Quotas, forget_quotas
from ..routing import COPIED, LEFT, Answers, Call, Route, reason_for, route
from ..settings import Settings
from ..store import Changes, keys, retry_on_conflict
from ..values import listing, mount_path, uuid_text
from ..version import VERSION

LEASE_TTL: Final = FieldType(
    f'"system", or {SECONDS.name}',
    lambda raw: 0 if raw == "system" else SECONDS.parse(raw),
    null_is_absent=True,
    empty_is_absent=True,
    schema=SECONDS.schema,
    limits=SECONDS.limits,
)
"""Existing clients write "" for a lifetime that must not change, and "system" to clear it."""

MOST_OF_A_MOUNT: Final = 16_384
"""Maximum bytes of JSON. All mounts are in one entry, which every request needs."""


OPTIONS: Final[FieldType[Mapping[str, str] | None]] = FieldType(
    "object", listing.key_values, null_is_absent=True, schema=schemas.TEXTS
)


@frozen(kw_only=True)
class TuneForm:
    default_lease_ttl: int = setting(LEASE_TTL, 0, "Default TTL of tokens or leases of this mount. 0: the service's.")
    max_lease_ttl: int = setting(LEASE_TTL, 0, "Maximum TTL of tokens or leases of this mount. 0: the service's.")
    max_leases: int = setting(bounded(INTEGER, 0, 2**31), 0, "Maximum number of leases of the mount. 0: no limit.")
    description: str = setting(TEXT, "", "A description.")
    token_type: str = setting(
        one_of("default-service", "default-batch", "service", "batch"),
        "default-service",
        "Type of the tokens that logins return. `default-…`: a role can override it.",
    )
    listing_visibility: str = setting(
        one_of("hidden", "unauth"), "", "`unauth`: callers without a token can also see the mount."
    )
    options: Mapping[str, str] | None = setting(OPTIONS, None, "Stored and returned, but has no effect.")
    audit_non_hmac_request_keys: tuple[str, ...] = setting(
        TEXTS, (), "Members of requests that audit logs contain unhashed. Requires sudo. Secrets are always hashed."
    )
    audit_non_hmac_response_keys: tuple[str, ...] = setting(
        TEXTS, (), "Members of responses that audit logs contain unhashed. Requires sudo. Secrets are always hashed."
    )
    passthrough_request_headers: tuple[str, ...] = setting(TEXTS, (), "Stored and returned, but has no effect.")
    allowed_response_headers: tuple[str, ...] = setting(TEXTS, (), "Stored and returned, but has no effect.")
    plugin_version: str = setting(TEXT, "", "Stored and returned, but has no effect.")
    identity_token_key: str = setting(TEXT, "", "Stored and returned, but has no effect.")
    force_no_cache: bool = setting(BOOLEAN, False, "Accepted. Changes always take effect immediately.")


SHOWN_WHEN_SET: Final = (
    "max_leases",
    "listing_visibility",
    "audit_non_hmac_request_keys",
    "audit_non_hmac_response_keys",
    "passthrough_request_headers",
    "allowed_response_headers",
    "plugin_version",
    "identity_token_key",
)
"""Members of a mount's `config` that reads omit while they are empty."""

AUDIT_KEYS: Final = ("audit_non_hmac_request_keys", "audit_non_hmac_response_keys")
"""Settings that reveal more to audit devices, so that they need `sudo`."""

CHANGEABLE: Final = ("default_lease_ttl", "max_lease_ttl", "description", "token_type", "options", *SHOWN_WHEN_SET)


def _tuning(raw: object) -> Mapping[str, Any]:
    """Return the object of tunable fields as written. Responses warn about members that are ignored."""
    if not isinstance(raw, dict):
        raise ValueError("must be an object")
    try:
        parse(TuneForm, raw)
    except Refused as error:
        raise ValueError("is invalid: " + ", ".join(problem.detail for problem in error.problems)) from None
    return raw


def _normal_tuning(written: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the members that a `config` sets for a new mount, without empty, default and unknown ones."""
    values = parse(TuneForm, written).values
    return {
        field.name: field.kind.show(field.kind.normal(values[field.name]))
        for field in fields_of(TuneForm)
        if values.get(field.name) and values[field.name] != field.default
    }


CONFIG: Final = FieldType(
    "object", _tuning, null_is_absent=True, normal=_normal_tuning, schema=schemas.each(schemas.ANY), form=TuneForm
)


@frozen(kw_only=True)
class EnableForm:
    type: str = setting(TEXT, "", "Type of the mount: `cloud`, or `azure` for compatibility with existing clients.")
    plugin_name: str = setting(TEXT, "", "Deprecated name of `type`.")
    description: str = setting(TEXT, "", "A description.")
    options: Mapping[str, str] | None = setting(OPTIONS, None, "Stored and returned, but has no effect.")
    config: Mapping[str, Any] = setting(CONFIG, {}, "The fields of `tune`.")
    local: bool = setting(BOOLEAN, False, "Accepted. Nothing is replicated.")
    seal_wrap: bool = setting(BOOLEAN, False, "Accepted. All data is encrypted.")
    external_entropy_access: bool = setting(BOOLEAN, False, "Accepted.")


@frozen(kw_only=True)
class DisableForm:
    sync: bool = setting(BOOLEAN, True, "false: answer immediately, and remove objects from Azure in the background.")


async def list_mounts(kind: str, call: Call) -> Answer:
    table = (await mount_table(call.context.records)).record
    data = {shown_path(mount): described(mount) for mount in table.live if mount.kind == kind}
    return Answer(data=data, copy_up=True)


async def read_mount(kind: str, call: Call) -> Answer:
    return Answer(data=described(await _existing(kind, call)), copy_up=True)


async def enable(kind: str, call: Call) -> Answer:
    try:
        path = _full_path(kind, mount_path(call.captures["path"]))
    except ValueError as error:
        raise Refused(Code.NAME_INVALID, f"the path {error}") from None
    form = call.form(EnableForm)
    type_name = form.plugin_name if form.type in ("", "plugin") else form.type
    if not call.context.components.is_mountable(kind, TYPE_ALIASES.get(type_name, type_name)):
        raise Refused(Code.MOUNT_UNKNOWN_TYPE)
    given = parse(TuneForm, form.config)
    mount = new_mount(kind, path, type_name, await RandomBytes(ID_BYTES))
    _check_audit_keys(call, mount, given.values, _managed_at(mount))
    mount = tuned(mount, {**given.values, **call.given.values}, call.context.settings)
    await change_mounts(call.context.records, lambda table: table.with_mount(mount))
    names = [f"config.{name}" for name in given.ignored if form.config[name]]  # clients send all, most of them empty
    return Answer(warnings=(ignored(names),) if names else ())


async def read_tuning(kind: str, call: Call) -> Answer:
    """Return the effective settings of a mount: its own, otherwise those of the service."""
    mount = await _existing(kind, call)
    data = {
        **_config(mount),
        "default_lease_ttl": mount.default_ttl(call.context.settings),
        "max_lease_ttl": mount.max_ttl(call.context.settings),
        "description": mount.description,
        "options": mount.options,
    }
    return Answer(data=data, copy_up=True)


async def tune(kind: str, call: Call) -> Answer:
    """Change the given settings of a mount. They take effect with the next request."""
    mount = await _existing(kind, call)
    _refuse_built_in(mount)
    _check_audit_keys(call, mount, call.given.values, f"{_managed_at(mount)}/tune")

    def changed(table: MountTable) -> MountTable:
        found = table.by_id.get(mount.id)
        if found is None:
            raise _missing(kind)
        return table.with_changed(tuned(found, call.given.values, call.context.settings))

    await change_mounts(call.context.records, changed)
    return NOTHING


async def disable(kind: str, call: Call) -> Answer:
    """Disable a mount: its path is free, and its tokens and leases are invalid immediately. Unknown paths are ignored.

    The request removes the mount's objects from Azure while it has time. 204 means that nothing is left.
    """
    context, sync = call.context, call.form(DisableForm).sync
    table = (await mount_table(context.records)).record
    mount = table.by_path.get(_full_path(kind, call.captures["path"]))
    if mount is None:
        return NOTHING
    _refuse_built_in(mount)
    await retire(context, mount, call.now, due_after(context, call.deadline) if sync else call.now)
    reasons: tuple[str, ...] = ()
    if sync:
        try:
            reasons = tuple((await remove_now(context, mount, call.now, call.deadline)).reasons)
        except CloudidError as failure:
            reasons = (reason_of(failure),)
    remains = await what_remains(context, mount)
    if not remains.count:
        return Answer(wake_at=call.now)
    reasons = tuple(dict.fromkeys((*reasons, *remains.reasons)))[:REASONS]
    reasons = tuple(reason_for(call.caller, mount, reason) for reason in reasons)
    data: dict[str, Json] = {"left": remains.count, "reasons": reasons, "path": f"sys/retiring/{mount.accessor}"}
    return Answer(status=ACCEPTED, data=data, wake_at=call.now)


def shown_path(mount: Mount) -> str:
    """Return the path as lists show it: with a trailing slash, and without the leading `auth/`."""
    return (mount.path.removeprefix(f"{AUTH}/") if mount.kind == AUTH else mount.path) + "/"


def described(mount: Mount) -> dict[str, Json]:
    """Return the members of a mount, as it was created and tuned."""
    return {
        "type": mount.shown_type,
        "description": mount.description,
        "accessor": mount.accessor,
        "uuid": mount.id,
        "local": False,
        "seal_wrap": False,
        "external_entropy_access": False,
        "options": mount.options,
        "plugin_version": mount.plugin_version,
        "running_plugin_version": f"v{VERSION}",
        "running_sha256": "",
        "deprecation_status": "supported",
        "config": _config(mount),
    }


def tuned(mount: Mount, values: Mapping[str, Any], settings: Settings) -> Mount:
    """Return a mount with changed values. Refuse values that contradict each other."""
    changes = {name: values[name] for name in CHANGEABLE if name in values}
    if not changes.get("token_type"):
        changes.pop("token_type", None)
    elif mount.kind != AUTH:
        raise Refused(Code.FIELD_INVALID, '"token_type" is only for auth methods')
    changed = evolve(mount, **changes)
    if changed.default_lease_ttl > changed.max_ttl(settings):
        raise Refused(Code.TTL_EXCEEDS_MAX, '"default_lease_ttl"')
    if len(json.encode(changed)) > max(MOST_OF_A_MOUNT, len(json.encode(mount))):
        raise Refused(Code.FIELD_INVALID, f"the strings of a mount must have at most {MOST_OF_A_MOUNT} bytes in total")
    return changed


def _check_audit_keys(call: Call, mount: Mount, values: Mapping[str, Any], path: str) -> None:
    """Refuse to reveal more to audit devices without `sudo` at the path, and to reveal secrets at all."""
    for name in AUDIT_KEYS:
        if name not in values or values[name] == getattr(mount, name):
            continue
        secrets = sorted(SECRETS.intersection(values[name]))
        if secrets:
            raise Refused(Code.FIELD_INVALID, f'"{name}" cannot have {listed(secrets)}: secrets are always hashed')
        if not call.token.acl.is_sudo(path):
            raise Refused(Code.PERMISSION_DENIED, f'"{name}" needs sudo')


def _managed_at(mount: Mount) -> str:
    """Return the path at which a mount is created and changed."""
    return f"{SYSTEM.path}/{mount.path}" if mount.kind == AUTH else f"{SYSTEM.path}/mounts/{mount.path}"


def _config(mount: Mount) -> dict[str, Json]:
    config: dict[str, Json] = {
        "default_lease_ttl": mount.default_lease_ttl,
        "max_lease_ttl": mount.max_lease_ttl,
        "force_no_cache": False,
    }
    if mount.kind == AUTH:
        config["token_type"] = mount.token_type
    return config | {name: value for name in SHOWN_WHEN_SET if (value := getattr(mount, name))}


async def refuse(call: Call) -> Answer:
    """Refuse, because auth methods are changed below `sys/auth`, which policies grant separately."""
    raise Refused(Code.PERMISSION_DENIED)


def _full_path(kind: str, path: str) -> str:
    return f"{AUTH}/{path}" if kind == AUTH else path


async def _existing(kind: str, call: Call) -> Mount:
    table = (await mount_table(call.context.records)).record
    mount = table.by_path.get(_full_path(kind, call.captures["path"]))
    if mount is None or mount.kind != kind:
        raise _missing(kind)
    return mount


def _missing(kind: str) -> Refused:
    """Return the refusal for a mount that does not exist, with the text that existing clients look for."""
    return Refused(Code.MOUNT_NOT_FOUND, "No auth engine at" if kind == AUTH else "No secret engine mount at")


def _refuse_built_in(mount: Mount) -> None:
    if mount in BUILT_IN:
        raise Refused(Code.MOUNT_PROTECTED)


CONFIG_MEMBERS: Final = schemas.members(
    {name: spellings_of(TuneForm)[name].kind.schema for name in (*SHOWN_WHEN_SET, "token_type")},
    INTEGER="default_lease_ttl max_lease_ttl",
    BOOLEAN="force_no_cache",
)
MOUNT: Final = schemas.members(
    TEXT="type description accessor uuid plugin_version running_plugin_version running_sha256 deprecation_status",
    BOOLEAN="local seal_wrap external_entropy_access",
    options=schemas.nullable(schemas.TEXTS),
    config=CONFIG_MEMBERS,
)
TUNED: Final = schemas.joined(
    CONFIG_MEMBERS, schemas.members(TEXT="description", options=schemas.nullable(schemas.TEXTS))
)


def _routes(kind: str, base: str, what: str) -> tuple[Route, ...]:
    bases = (base, f"mounts/{AUTH}") if kind == AUTH else (base,)
    reads = "Reads the effective TTLs and all other tunable fields."
    enables = f"Enables {'an' if kind == AUTH else 'a'} {what} at a path."
    disables = "Disables a mount. Its quotas are deleted, its tokens and leases are revoked, then its data is deleted."
    return (
        route(base, READ, schemas.each(MOUNT), shape=COPIED, doc=f"Lists all {what}s.")(partial(list_mounts, kind)),
        *(
            row
            for path in bases
            for row in (
                route(f"{path}/*path/tune", READ, TUNED, shape=COPIED, doc=reads)(partial(read_tuning, kind)),
                Route(
                    f"{path}/*path/tune",
                    WRITE,
                    partial(tune, kind),
                    "Changes the tunable fields of a mount.",
                    form=TuneForm,
                ),
            )
        ),
        *(
            route(f"{path}/*path", READ, MOUNT, shape=COPIED, doc="Reads a mount.")(partial(read_mount, kind))
            for path in bases
        ),
        route(f"{base}/*path", WRITE, refusals=(Code.MOUNT_PATH_IN_USE,), form=EnableForm, doc=enables)(
            partial(enable, kind)
        ),
        route(f"{base}/*path", DELETE, Answers(nothing=True, accepted=LEFT), form=DisableForm, doc=disables)(
            partial(disable, kind)
        ),
    )


REFUSED: Final = tuple(
    Route(f"mounts/{AUTH}/*path", operation, refuse, "Refused: see `auth`.") for operation in (LIST, WRITE, DELETE)
)


@frozen(kw_only=True)
class MoveForm:
    """A move: full paths, those of auth methods with their `auth/`."""

    source: str = setting(TEXT, "", "Current path of the mount.", old_name="from", required=True)
    target: str = setting(TEXT, "", "New path of the mount. It must not be in use.", old_name="to", required=True)


@route(
    "remount",
    WRITE,
    schemas.members(TEXT="migration_id"),
    shape=COPIED,
    refusals=(Code.MOUNT_PATH_IN_USE,),
    form=MoveForm,
    requires_all=True,
)
@retry_on_conflict
async def move(call: Call) -> Answer:
    """Moves a mount with all its data and quotas.

    Its tokens and leases stay valid, and lease ids do not change.
    """
    form, records = call.form(MoveForm), call.context.records
    source, target = _path(form.source, "from"), _path(form.target, "to")
    move_id = uuid_text(await RandomBytes(16))
    mounts = await mount_table(records)
    mount = mounts.record.by_path.get(source)
    if mount is None or mount in BUILT_IN:
        raise Refused(Code.MOUNT_PROTECTED if mount else Code.MOUNT_NOT_FOUND, '"from"')
    if target.startswith(f"{AUTH}/") is not (mount.kind == AUTH):
        raise Refused(Code.FIELD_INVALID, 'auth methods must stay below "auth/", and other mounts outside of it')
    changes = changing(mounts, mounts.record.with_moved(mount, target, move_id))
    quotas, expects = await records.find_for_writing(keys.QUOTAS, Quotas)
    if quotas is not None:
        changes |= Changes(expects, {keys.QUOTAS: quotas.record.with_moved(source, target)})
    await records.commit(changes)
    forget_quotas(call.context)
    return Answer(data={"migration_id": move_id}, copy_up=True)


@route(
    "remount/status/:id",
    READ,
    schemas.members(TEXT="migration_id", migration_info=schemas.members(TEXT="source_mount target_mount status")),
    shape=COPIED,
)
async def read_move(call: Call) -> Answer:
    """Reads the state of a recent move.

    A move is complete when its request is answered.
    """
    table = (await mount_table(call.context.records)).record
    for known in table.moves:
        if known.id == call.captures["id"]:
            info = {"source_mount": f"{known.source}/", "target_mount": f"{known.target}/", "status": "success"}
            return Answer(data={"migration_id": known.id, "migration_info": info}, copy_up=True)
    raise Refused(Code.NOT_FOUND)


def _path(raw: str, name: str) -> str:
    try:
        return mount_path(raw)
    except ValueError as error:
        raise Refused(Code.FIELD_INVALID, f'"{name}" {error}') from None


ROUTES: Final = (
    *_routes(AUTH, "auth", "authentication method"),
    *REFUSED,
    *_routes(SECRET, "mounts", "secrets engine"),
    move,
    read_move,
)
