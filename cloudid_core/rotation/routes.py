"""The routes of rotation, the same for both components, and the programs of those that static roles have of it."""

from __future__ import annotations

from typing import Final

from attrs import evolve, frozen

from ..credentials import SecretHolder, credentials_of
from ..effects import Instant, Now
from ..errors import CloudidError, Code, Refused, reason_of
from ..forms import BOOLEAN, Json, effective, schemas, setting
from ..messages import ACCEPTED, READ, WRITE, Answer
from ..routing import PROVIDER, Answers, Call, Route, mount_client, reason_for, route
from ..store import Found, retry_on_conflict
from ..values import Secret, rfc3339
from .configure import compare_secret, credential_warnings, refused_access
from .identities import self_targets
from .plan import find_plan
from .record import Phase, Rotation, find_rotation, find_undamaged_rotation
from .root import Subject, find_root
from .start import rotated_holder, start
from .switch import CHANGED, prove_and_switch


@frozen(kw_only=True)
class RotateForm:
    """A rotation on request."""

    force: bool = setting(
        BOOLEAN,
        False,
        "Rotate even if another mount uses the same client secret, which then stays valid, or the last "
        "rotation is recent, or its record is damaged.",
    )


async def rotate(call: Call, role: str = "") -> Answer:
    """Replace a client secret with one that no one else knows. 204 when it is in use;
    202 if it is not proven yet.

    A rotation that is under way is carried on; it is not started again. While the last two secrets overlap, nothing is
    rotated without `force`: 200 with a warning.
    """
    subject = Subject(context=call.context, mount=call.mount, role=role)
    rotation = await _begin_or_join(call, subject)
    if rotation.record.phase is Phase.OVERLAPPING:
        since = rotation.record.rotated_at or 0.0
        last, until = rfc3339.show(since), rfc3339.show(since + rotation.record.overlap)
        told = f"nothing was rotated: the last rotation was at {last}, and both client secrets are valid until {until}"
        return Answer(warnings=(f"{told}; force=true rotates again",))
    if rotation.record.phase is Phase.PROVING:
        rotation = await _prove(call, subject, rotation)
    match rotation.record.phase:
        case Phase.OVERLAPPING:
            return Answer(wake_at=rotation.record.due_at)
        case Phase.IDLE:
            raise Refused(Code.STORE_CONTENDED, CHANGED)
    path = f"{call.mount.path}/static-roles/{role}" if role else f"{call.mount.path}/rotation"
    return Answer(data={"rotation": path}, status=ACCEPTED, wake_at=call.now)


@retry_on_conflict
async def _begin_or_join(call: Call, subject: Subject) -> Found[Rotation]:
    """Return the rotation that is in progress, or start a new one."""
    force = bool(call.given.values.get("force"))
    under_way = await _under_way(subject, call.now, force)
    if under_way is not None:
        return under_way
    if not subject.role and await self_targets(call.context, call.mount.id):
        raise Refused(Code.SELF_TARGET)
    return await start(subject, call.deadline, call.now, force=force)


async def _under_way(subject: Subject, now: Instant, force: bool) -> Found[Rotation] | None:
    """Return the started rotation of the holder's secret, or, without force, one whose keys still overlap.

    A holder that awaits a different kind of key does not wait for them.
    """
    holder = await rotated_holder(subject)
    force = force or holder.record.awaits_secret
    find = find_undamaged_rotation if force else find_rotation
    found = await find(subject.context, subject.mount.id, subject.role)
    if found is None:
        return None
    rotation = found.record
    secret: Secret | None = None
    match rotation.phase:
        case Phase.ADDING:
            return found
        case Phase.PROVING:
            secret = rotation.replaced_secret
        case Phase.OVERLAPPING:
            ends_at = (rotation.rotated_at or 0.0) + rotation.overlap
            secret = rotation.current.secret if rotation.current and now < ends_at and not force else None
    return found if secret is not None and secret == holder.record.client_secret else None


async def _prove(call: Call, subject: Subject, found: Found[Rotation]) -> Found[Rotation]:
    """Test the new secret while the request runs. After any interruption, the background work continues."""
    client = await mount_client(call.context, call.mount.id, call.deadline)
    try:
        return await prove_and_switch(subject, client, found)
    except CloudidError as failure:
        due_now = evolve(found.record, error=reason_of(failure), due_at=await Now())
    try:
        return await subject.write(found, due_now)
    except CloudidError:  # another request has continued
        return await subject.rotation() or found


STATE: Final = schemas.members(
    TEXT="phase last_error note",
    last_rotation=schemas.nullable(schemas.TIME),
    next_rotation=schemas.nullable(schemas.TIME),
    expires=schemas.nullable(schemas.TIME),
)
MEMBERS: Final = schemas.joined(schemas.members(credential_source=schemas.nullable(schemas.TEXT)), STATE)


@route("rotation", READ, MEMBERS)
async def read_rotation(call: Call) -> Answer:
    """Returns the state of the rotation.

    Also returns how the mount authenticates to Azure. `last_error` is that of the rotation, otherwise that of the last
    access token which this node did not get. It has the provider's code for those who may read the configuration.
    """
    context, mount = call.context, call.mount
    root = await find_root(context, mount)
    if root is None:
        return Answer(data={"credential_source": None, **await state_of(call, "", None)})
    state = await state_of(call, "", root.record, refused_access(context, mount, root.version))
    used = effective(root.record, context.settings.environment)
    source = credentials_of(context, mount, used).source.value
    warnings = await credential_warnings(context, mount, root.record, call.now)
    shown = tuple(reason_for(call.caller, call.mount, warning) for warning in warnings)
    return Answer(data={"credential_source": source, **state}, warnings=shown)


async def state_of(call: Call, role: str, holder: SecretHolder | None, refused: str = "") -> dict[str, Json]:
    """Return the state of the rotation of a holder's secret. `refused`: the error if the rotation itself has none."""
    found = await find_rotation(call.context, call.mount.id, role)
    planned = await find_plan(call.context, call.mount.id, role)
    rotation = found.record if found else Rotation(mount_id=call.mount.id)
    key = rotation.key_of(holder.client_secret) if holder else None
    error = rotation.error or (planned.record.error if planned else "") or refused
    return {
        "phase": rotation.phase.value,
        "last_rotation": shown_time(rotation.rotated_at),
        "next_rotation": shown_time(planned.record.rotate_at) if planned else None,
        "last_error": reason_for(call.caller, call.mount, error),
        "note": rotation.note,
        "expires": shown_time(key.expires_at) if key else None,
    }


def shown_time(instant: Instant | None) -> str | None:
    return None if instant is None else rfc3339.show(instant)


ROUTES: Final = (
    Route(
        "rotate-root",
        WRITE,
        rotate,
        "Replaces the client secret with one that only the service knows.",
        form=RotateForm,
        names_provider_codes=True,
        answers=Answers(
            nothing=True, accepted=schemas.members(TEXT="rotation"), refusals=(Code.ROOT_SECRET_SHARED, *PROVIDER)
        ),
    ),
    read_rotation,
    compare_secret,
)
