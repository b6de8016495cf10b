"""Static roles: an existing app registration with one credential for all callers of the role, and its rotation.

The `proof` of a role is a client secret, which the role issues, or a certificate or a federated credential, with which
it issues only access tokens. Rotation creates the first one when the role is written, and replaces it by the role's
period or schedule, like the client secrets of mounts. The previous one stays valid for a while.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import ClassVar, Final

from attrs import evolve, field, frozen

from ..context import Context
from ..credentials import Key, rule_problems
from ..deadline import Deadline
from ..effects import Instant, ListKeys
from ..errors import CloudidError, Code, Conflict, EntryDamaged, Problem, Refused, reason_of
from ..forms import BOOLEAN, METADATA, SCHEDULE, AsWritten, lasting, one_of, schemas, setting, show, shown_members
from ..messages import DELETE, LIST, READ, WRITE, Answer
from ..mounts import Mount, require_live
from ..provider import PROOFS, SECRET, Application, Rights, applications
from ..rotation import (
    STATE,
    RotateForm,
    find_undamaged_plan,
    find_undamaged_rotation,
    forgotten,
    release_former,
    replanned,
    rotate,
    shown_time,
    state_of,
)
from ..routing import PROVIDER, Answers, Call, capture_name, reason_for, route
from ..store import Changes, Found, keys, retry_on_conflict
from ..values import DAY, LONGEST_INTERVAL, LONGEST_SECRET, Schedule, Secret
from . import roles
from .config import Config, clamped_warnings, in_use
from .limits import may_issue, refuse_kept
from .persistent_app import pointing
from .roles import OBJECT_ID, TOKEN_SCOPES, require_issuer

PERIOD: Final = 182 * DAY
"""Seconds between two rotations if neither a period nor a schedule is set."""
SPARE: Final = 15 * DAY
"""Seconds by which a secret outlives the time to the next rotation. Its expiry is reported two weeks in advance."""
MARKER: Final = "cloudid-"
"""The prefix of all names of objects that a cloudid installation creates."""
OTHER_ROLE: Final = (
    "another static role also has a client secret of this app registration; each role rotates only its own secret"
)
OTHER_INSTALLATION: Final = (
    "another cloudid service also has a client secret of this app registration; each removes only its own"
)
SECRET_LEFT: Final = (
    "its client secret stays valid until it expires; remove_secret=true removes it with the role. If "
    "another role uses the app registration, reconciliation reports the secret as unaccounted for, and "
    "removes it on request"
)
NO_KEY: Final = Key(secret=Secret())
_PATH: Final = "static-roles/"


@frozen(kw_only=True)
class StaticRole(AsWritten):
    """The stored role.

    `client_id` belongs to `application_object_id`; the last three fields are its current credential.
    """

    application_object_id: str = setting(
        OBJECT_ID, "", "Object id of the app registration. It cannot be changed.", required=True
    )
    rotation_period: int = setting(
        lasting(LONGEST_SECRET),
        0,
        "Seconds between rotations of the client secret, at least 5. 0: use the schedule, or 182 days without one.",
        old_name="ttl",
    )
    rotation_schedule: str = setting(SCHEDULE, "", "Five-field cron schedule of rotations, in UTC.")
    rotation_window: int = setting(
        lasting(LONGEST_INTERVAL),
        0,
        "Seconds that a scheduled rotation may take, retries included; 0: until the next. At least 3600.",
    )
    metadata: dict[str, str] = setting(METADATA, {}, "Strings that are returned with the credentials.")
    token_scopes: tuple[str, ...] = setting(
        TOKEN_SCOPES, (), "Scopes for which the role issues access tokens of the app registration. Empty: none."
    )
    proof: str = setting(
        one_of(*PROOFS),
        SECRET,
        "Credential of the app registration: a client secret, which the role issues; or, for access "
        "tokens only, a certificate whose key never leaves cloudid, or a federated credential.",
    )
    client_id: str = ""
    client_secret: Secret = field(factory=Secret)
    disable_automated_rotation: ClassVar[bool] = False
    held_proof: str = SECRET
    proof_id: str = ""

    @property
    def secret_lifetime(self) -> int:
        return SPARE + (self.rotation_period or int(Schedule.parse(self.rotation_schedule).longest_gap()))

    def clamped(self, config: Config) -> dict[str, int]:
        """Return the fields by which a secret exceeds a configuration's limit, with the longest value. 0: none."""
        most = config.max_secret_ttl
        longest = most - min(SPARE, most // 2)
        if most and self.rotation_period > longest:
            return {"rotation_period": longest}
        is_clamped = most and self.rotation_schedule and Schedule.parse(self.rotation_schedule).longest_gap() > longest
        return {"rotation_schedule": 0} if is_clamped else {}

    @property
    def target(self) -> str:
        return self.client_id

    @property
    def awaits_secret(self) -> bool:
        return not self.client_secret or self.held_proof != self.proof

    @property
    def rights(self) -> Rights:
        return Rights(application_id=self.application_object_id, client_id=self.client_id)

    @property
    def held(self) -> Key:
        return Key(secret=self.client_secret, proof=self.held_proof, proof_id=self.proof_id)

    def holding(self, key: Key) -> StaticRole:
        return evolve(self, client_secret=key.secret, held_proof=key.proof, proof_id=key.proof_id)


@frozen(kw_only=True)
class DeleteForm:
    """A deletion of a static role."""

    remove_secret: bool = setting(
        BOOLEAN, False, "Also remove its client secret, which otherwise stays valid until it expires."
    )


MEMBERS: Final = schemas.joined(shown_members(StaticRole), STATE, schemas.members(INTEGER="ttl"))
CREDENTIALS: Final = schemas.members(
    TEXT="client_id client_secret tenant_id subscription_id secret_id",
    expiration=schemas.nullable(schemas.TIME),
    last_rotation=schemas.nullable(schemas.TIME),
    ttl=schemas.nullable(schemas.INTEGER),
    metadata=schemas.TEXTS,
)


async def find_static_role(context: Context, mount: Mount, name: str) -> Found[StaticRole]:
    found = await context.records.find(keys.static_role(mount.id, name), StaticRole)
    if found is None:
        raise Refused(Code.ROLE_NOT_FOUND)
    return found


@route(
    "static-roles/:name",
    WRITE,
    refusals=PROVIDER,
    form=StaticRole,
    exists=lambda call: call.context.records.has(keys.static_role(call.mount.id, capture_name(call))),
)
async def write_static_role(call: Call) -> Answer:
    """Creates or updates a static role: an app registration with one credential that is rotated.

    A role without a client secret gets one. If that takes long or fails, a warning says so, and the background work
    continues.
    """
    role, warnings = await _write(call)
    if role.awaits_secret:
        try:
            answer = await rotate(call, capture_name(call))
        except CloudidError as failure:
            reason = reason_for(call.caller, call.mount, reason_of(failure))
            return Answer(warnings=(*warnings, f"the role has no client secret yet, and will get one later: {reason}"))
        if answer.status:
            warnings = (*warnings, "the role has no client secret yet: Azure does not accept the new one so far")
        return Answer(warnings=warnings, wake_at=answer.wake_at)
    return Answer(warnings=warnings, wake_at=call.now)


@retry_on_conflict
async def _write(call: Call) -> tuple[StaticRole, tuple[str, ...]]:
    """Store the requested role, with the plan of its rotations."""
    context, mount, name = call.context, call.mount, capture_name(call)
    await require_live(context.records, mount)
    key = keys.static_role(mount.id, name)
    found, expects = await context.records.find_for_writing(key, StaticRole)
    stored = found.record if found else StaticRole()
    role = evolve(stored, **call.given.values)
    role = role if role.proof else evolve(role, proof=SECRET)
    if not (role.rotation_period or role.rotation_schedule):
        role = evolve(role, rotation_period=PERIOD)
    _check(context, role, stored)
    config, client, config_expects = await in_use(context, mount, call.deadline)
    application = await applications.find_application(client, role.application_object_id)
    if application is None:
        raise Refused(Code.REFERENCE_NOT_FOUND, '"application_object_id"')
    refuse_kept(context, application)
    role = evolve(role, client_id=application.client_id)
    await may_issue(context, config, client, role.rights)
    _, planned = await replanned(context, mount.id, role, call.now, role=name)
    grounds = Changes({**expects, **config_expects}, {key: role})
    await context.records.commit(grounds | planned | await pointing(call, role.client_id, f"{_PATH}{name}"))
    return role, (*await _double_use(call, application), *clamped_warnings(role.clamped(config)))


def _check(context: Context, role: StaticRole, stored: StaticRole) -> None:
    if not role.application_object_id:
        raise Refused(Code.FIELD_REQUIRED, '"application_object_id"')
    problems = [*rule_problems(role)]
    if stored.client_id and role.normal.application_object_id != stored.normal.application_object_id:
        detail = '"application_object_id" cannot be changed: delete the role, and create it again'
        problems.append(Problem(Code.FIELD_INVALID, detail))
    if role.proof != SECRET and not role.token_scopes:
        problems.append(
            Problem(
                Code.FIELD_REQUIRED, f'"token_scopes" is required, because "{role.proof}" issues only access tokens'
            )
        )
    if problems:
        raise Refused.because(problems)
    require_issuer(context, role.proof)


async def _double_use(call: Call, application: Application) -> tuple[str, ...]:
    """Return warnings about others that use client secrets of an app registration.

    They do no harm, so nothing is refused.
    """
    own = keys.target(application.client_id, call.mount.id, f"{_PATH}{capture_name(call)}")
    pointing_there = await ListKeys(keys.targets(application.client_id), "")
    others = [key for key in pointing_there if f"/{_PATH}" in key and key != own]
    names = [password.display_name for password in application.passwords]
    foreign = [name for name in names if name.startswith(MARKER) and not name.startswith(call.context.marker_prefix)]
    return (OTHER_ROLE,) * bool(others) + (OTHER_INSTALLATION,) * bool(foreign)


async def may_rotate(context: Context, mount: Mount, name: str, deadline: Deadline) -> Changes:
    """Refuse to issue or replace the secret of a role that may not be issued now. Return what that depends on."""
    found = await find_static_role(context, mount, name)
    config, client, config_expects = await in_use(context, mount, deadline)
    return await may_issue(context, config, client, found.record.rights) | Changes(config_expects)


@route("static-roles/:name", READ, MEMBERS)
async def read_static_role(call: Call) -> Answer:
    """Reads a static role, and how its rotation stands."""
    found = await call.context.records.find(keys.static_role(call.mount.id, capture_name(call)), StaticRole)
    if found is None:
        raise Refused(Code.NOT_FOUND)
    state = await state_of(call, capture_name(call), found.record)
    return Answer(data={**show(found.record), "ttl": found.record.rotation_period, **state})


@route("static-roles", LIST)
async def list_static_roles(call: Call) -> Answer:
    """Lists the names of all static roles."""
    return Answer(data={"keys": await call.context.records.names(keys.static_roles(call.mount.id))})


@route(
    "rotate-role/:name",
    WRITE,
    Answers(nothing=True, accepted=schemas.members(TEXT="rotation"), refusals=PROVIDER),
    form=RotateForm,
    names_provider_codes=True,
)
async def rotate_static_role(call: Call) -> Answer:
    """Replaces the credential of a static role's app registration."""
    return await rotate(call, capture_name(call))


@route("static-creds/:name", READ, CREDENTIALS)
async def read_credentials(call: Call) -> Answer:
    """Returns the client id and secret of a static role with the `proof` `secret`, without a lease.

    Azure has accepted the secret, which stays valid for a while after its rotation. `ROLE_GIVES_TOKENS`: the role does
    not issue a secret.
    """
    context, mount, name = call.context, call.mount, capture_name(call)
    await require_live(context.records, mount)
    await may_rotate(context, mount, name, call.deadline)
    config, client, _ = await in_use(context, mount, call.deadline)
    role = (await find_static_role(context, mount, name)).record
    if role.proof != SECRET:
        raise Refused(Code.ROLE_GIVES_TOKENS)
    if role.awaits_secret:
        raise Refused(Code.ROLE_WITHOUT_SECRET)
    rotation = await find_undamaged_rotation(context, mount.id, name)
    plan = await find_undamaged_plan(context, mount.id, name)
    key = rotation.record.key_of(role.client_secret) if rotation else None
    rotates_at = plan.record.rotate_at if plan else None
    data = {
        "client_id": role.client_id,
        "client_secret": role.client_secret.reveal(),
        "tenant_id": client.tenant,
        "subscription_id": config.subscription_id,
        "secret_id": key.id if key else "",
        "expiration": shown_time(key.expires_at if key else None),
        "last_rotation": shown_time(rotation.record.rotated_at if rotation else None),
        "ttl": None if rotates_at is None else max(0, int(rotates_at - call.now)),
        "metadata": dict(role.metadata),
    }
    return Answer(data=data)


@route("static-roles/:name", DELETE, refusals=(Code.NOT_FOUND, Code.ROLE_CHANGE_PENDING), form=DeleteForm)
@retry_on_conflict
async def delete_static_role(call: Call) -> Answer:
    """Deletes a static role. Its client secret stays valid until it expires, unless `remove_secret` is set.

    Any other credential is removed.
    """
    context, mount, name = call.context, call.mount, capture_name(call)
    key, is_left = keys.static_role(mount.id, name), not call.form(DeleteForm).remove_secret
    found, expects = await context.records.find_for_writing(key, StaticRole)
    if found is None and not await context.records.has(key):
        raise Refused(Code.NOT_FOUND, "the role does not exist")
    removal = await _removal(context, mount, name, found.record if found else None, call.now, is_left)
    await context.records.commit(Changes(expects) | removal)
    has_left = is_left and (found is None or (bool(found.record.client_secret) and found.record.held_proof == SECRET))
    return Answer(warnings=(SECRET_LEFT,) * has_left, wake_at=call.now)


async def _removal(
    context: Context, mount: Mount, name: str, role: StaticRole | None, now: Instant, is_left: bool
) -> Changes:
    """Return the change that deletes a role (`None`: it is damaged).

    The journal removes its credentials, including the last one unless it is kept.
    """
    forgets = await forgotten(context, mount.id, name, now, leaves_last=is_left)
    index_keys = (keys.target(role.client_id, mount.id, f"{_PATH}{name}"),) if role else ()
    return forgets | Changes(deletes=(keys.static_role(mount.id, name), *index_keys))


async def release(context: Context, mount: Mount, now: Instant, fence: Mapping[str, int]) -> None:
    """Delete the roles of a retired mount, of both kinds, with their objects, and its former client secrets.

    A static role that is being changed, or whose secret is being created, is left to the next round.
    """
    await release_former(context, mount, now, fence)
    await roles.release(context, mount, now, fence)
    for name in await context.records.names(keys.static_roles(mount.id)):
        with suppress(Conflict, EntryDamaged, Refused):
            found = await find_static_role(context, mount, name)
            removal = await _removal(context, mount, name, found.record, now, is_left=False)
            await context.records.commit(Changes({**fence, **found.expected}) | removal)


async def count_kept(context: Context, mount: Mount) -> int:
    """Count the roles of a mount, of both kinds, that own, or may own, objects in Azure."""
    static = await context.records.names(keys.static_roles(mount.id))
    return len(static) + await roles.count_kept(context, mount)


async def target(context: Context, mount: Mount, reference: str) -> str:
    """Return the client id of the app registration whose secrets a role issues. Empty if there is none."""
    if not reference.startswith(_PATH):
        return await roles.target(context, mount, reference)
    found = await context.records.find(keys.static_role(mount.id, reference.removeprefix(_PATH)), StaticRole)
    return found.record.client_id if found else ""
