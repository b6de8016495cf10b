"""The routes of rotation, the same for both components."""

from __future__ import annotations

from typing import Final

from attrs import evolve, frozen

from ..api.fields import BOOLEAN, Json, setting
from ..api.response import NOTHING, Answer
from ..api.routing import Call, Operation, Route
from ..effects import Instant, Now
from ..errors import CloudidError, Code, Refused, reason_of
from ..foundation.components import mount_client
from ..store.conflicts import retry_on_conflict
from ..store.records import Found
from ..values import rfc3339
from .add import add
from .expiration import root_password_expiration
from .record import Phase, Rotation, changed, find_rotation
from .root import find_root, is_managed, is_used_elsewhere
from .root_credential import RootCredential
from .switch import CHANGED, OVERLAP, prove_and_switch

ACCEPTED: Final = 202


@frozen(kw_only=True)
class RotateForm:
    """A rotation on request."""

    force: bool = setting(BOOLEAN, False, "Rotate although another mount uses the same root secret, which stays alive.")


async def rotate_root(call: Call) -> Answer:
    """Replace the root secret by a new one that nobody else knows. 204 when it is in use; 202 if it is not proven yet.

    A rotation that is under way is carried on; it is not started again.
    """
    rotation = await _begin_or_join(call)
    if rotation.record.phase is Phase.PROVING:
        rotation = await _prove(call, rotation)
    match rotation.record.phase:
        case Phase.OVERLAPPING:
            return NOTHING
        case Phase.IDLE:
            raise Refused(Code.STORE_CONTENDED, CHANGED)
    return Answer(data={"rotation": f"{call.mount.path}/rotation"}, status=ACCEPTED, wake_at=call.now)


@retry_on_conflict
async def _begin_or_join(call: Call) -> Found[Rotation]:
    """The rotation that is under way, or a new one."""
    under_way = await _under_way(call)
    if under_way is not None:
        return under_way
    context, mount = call.context, call.mount
    root = await _managed_root(call)
    if not call.form(RotateForm).force and await is_used_elsewhere(context, mount.id, root.record.client_secret):
        raise Refused(Code.ROOT_SECRET_SHARED)
    before = await find_rotation(context, mount.id)
    client = await mount_client(context, mount.id, call.deadline)
    await context.components.check_root(context, mount, client.credentials.client_id)
    return await add(context, mount.id, root, before, client, call.now)


async def _managed_root(call: Call) -> Found[RootCredential]:
    root = await find_root(call.context, call.mount)
    if root is None:
        raise Refused(Code.CONFIG_MISSING)
    if not is_managed(call.context, root.record):
        raise Refused(Code.ROOT_SECRET_UNMANAGED)
    return root


async def _under_way(call: Call) -> Found[Rotation] | None:
    """The rotation of the configured secret that has begun and whose keys still overlap."""
    root = await _managed_root(call)
    found = await find_rotation(call.context, call.mount.id)
    if found is None:
        return None
    rotation = found.record
    match rotation.phase:
        case Phase.ADDING:
            return found
        case Phase.PROVING:
            key = rotation.replaced
        case Phase.OVERLAPPING:
            is_fresh = rotation.rotated_at is not None and call.now < rotation.rotated_at + OVERLAP
            key = rotation.current if is_fresh else None
        case Phase.IDLE:
            key = None
    return found if key is not None and key.secret == root.record.client_secret else None


async def _prove(call: Call, found: Found[Rotation]) -> Found[Rotation]:
    """Prove the new secret while the request lives. Whatever comes between, the background goes on with it."""
    client = await mount_client(call.context, call.mount.id, call.deadline)
    try:
        return await prove_and_switch(call.context, call.mount, client, found)
    except CloudidError as failure:
        return await _hand_over(call, found, reason_of(failure))


async def _hand_over(call: Call, found: Found[Rotation], error: str) -> Found[Rotation]:
    """Let the background go on at once, if nobody else has done anything with the rotation."""
    due_now = evolve(found.record, error=error, due_at=await Now())
    try:
        version = await call.context.records.commit(changed(found, due_now))
    except CloudidError:
        return await find_rotation(call.context, call.mount.id) or found
    return Found(found.key, due_now, version)


async def read_rotation(call: Call) -> Answer:
    """How the rotation of this mount stands."""
    context, mount = call.context, call.mount
    found = await find_rotation(context, mount.id)
    root = await find_root(context, mount)
    rotation = found.record if found else Rotation(mount_id=mount.id)
    data: dict[str, Json] = {
        "phase": rotation.phase.value,
        "last_rotation": _time(rotation.rotated_at),
        "next_rotation": None,
        "last_error": rotation.error,
        "note": rotation.note,
        "root_password_expiration_date": None,
    }
    if root is not None:
        data |= await root_password_expiration(context, mount, root.record)
    return Answer(data=data)


def _time(instant: Instant | None) -> str | None:
    return None if instant is None else rfc3339.show(instant)


ROUTES: Final = (
    Route(
        path="rotate-root",
        operation=Operation.WRITE,
        program=rotate_root,
        form=RotateForm,
        doc="Replaces the root secret by one that only the service knows.",
    ),
    Route(path="rotation", operation=Operation.READ, program=read_rotation, doc="Tells how the rotation stands."),
)
