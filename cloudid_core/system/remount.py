"""The routes that move a mount: it keeps its id, and with it everything that is stored for it."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ..effects import RandomBytes
from ..errors import Code, Refused
from ..forms import TEXT, schemas, setting
from ..messages import READ, WRITE, Answer
from ..mounts import AUTH, BUILT_IN, Mount, MountTable, change_mounts, mount_table
from ..routing import COPIED, Call, route
from ..values import mount_path, uuid_text


@frozen(kw_only=True)
class MoveForm:
    """A move: full paths, those of authentication methods with their `auth/`."""

    source: str = setting(TEXT, "", "Path of the mount now.", old_name="from", required=True)
    target: str = setting(TEXT, "", "Path of the mount then; it must be free.", old_name="to", required=True)


@route(
    "remount",
    WRITE,
    schemas.members(TEXT="migration_id"),
    shape=COPIED,
    refusals=(Code.MOUNT_PATH_IN_USE,),
    form=MoveForm,
    requires_all=True,
)
async def move(call: Call) -> Answer:
    """Moves a mount, with everything that is stored for it.

    Its tokens and leases live on; lease ids stay as they are.
    """
    form = call.form(MoveForm)
    source, target = _path(form.source, "from"), _path(form.target, "to")
    move_id = uuid_text(await RandomBytes(16))

    def moved(table: MountTable) -> MountTable:
        mount = _movable(table, source)
        if target.startswith(f"{AUTH}/") is not (mount.kind == AUTH):
            raise Refused(Code.FIELD_INVALID, 'an authentication method stays below "auth/", all else outside of it')
        return table.with_moved(mount, target, move_id)

    await change_mounts(call.context.records, moved)
    return Answer(data={"migration_id": move_id}, copy_up=True)


@route(
    "remount/status/:id",
    READ,
    schemas.members(TEXT="migration_id", migration_info=schemas.members(TEXT="source_mount target_mount status")),
    shape=COPIED,
)
async def read_move(call: Call) -> Answer:
    """Reads the state of a recent move.

    A move is complete when the request for it is answered.
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


def _movable(table: MountTable, path: str) -> Mount:
    mount = table.by_path.get(path)
    if mount is None:
        raise Refused(Code.MOUNT_NOT_FOUND, '"from"')
    if mount in BUILT_IN:
        raise Refused(Code.MOUNT_PROTECTED, '"from"')
    return mount


ROUTES: Final = (move, read_move)
