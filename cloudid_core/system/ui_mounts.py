"""The routes that list the mounts which a client may see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..effects import in_turns
from ..errors import Code, Refused
from ..forms import Json, schemas
from ..messages import READ, Answer
from ..mounts import AUTH, SECRET, Mount, mount_table
from ..routing import COPIED, Call, route
from .mounts import MOUNT, described, shown_path

AT_ONCE: Final = 20_000
"""So many patterns of the caller's policies are compared with mounts before other programs go on."""


async def visible_mounts(call: Call) -> list[Mount]:
    """The mounts that every caller may see, and those that the caller's policies reach."""
    table = (await mount_table(call.context.records)).record
    acl = call.caller.acl if call.caller else None

    def seen(mount: Mount) -> Iterator[Mount]:
        if mount.listing_visibility == "unauth" or (acl is not None and acl.reaches(mount.path)):
            yield mount

    return await in_turns(table.live, seen, AT_ONCE // (acl.granting_patterns + 1 if acl else 1) + 1)


SHORT: Final = schemas.each(schemas.members(TEXT="type description", options=schemas.nullable(schemas.TEXTS)))


@route(
    "internal/ui/mounts",
    READ,
    schemas.members(secret=SHORT, auth=SHORT),
    shape=COPIED,
    public=True,
    optional_token=True,
)
async def list_visible(call: Call) -> Answer:
    """Lists the mounts whose `listing_visibility` is `unauth`, and those below which the caller has rights."""
    visible = await visible_mounts(call)
    data: dict[str, Json] = {
        kind: {
            shown_path(mount): {"type": mount.shown_type, "description": mount.description, "options": mount.options}
            for mount in visible
            if mount.kind == kind
        }
        for kind in (SECRET, AUTH)
    }
    return Answer(data=data, copy_up=True)


@route(
    "internal/ui/mounts/*path", READ, schemas.joined(MOUNT, schemas.members(TEXT="path")), shape=COPIED, any_token=True
)
async def find_mount(call: Call) -> Answer:
    """Tells which mount a path belongs to, to callers with rights below it."""
    found = (await mount_table(call.context.records)).record.route(call.captures["path"])
    if found is None or not call.token.acl.reaches(found[0].path):
        raise Refused(Code.PERMISSION_DENIED)
    mount, _ = found
    return Answer(data={"path": f"{mount.path}/", **described(mount)}, copy_up=True)


ROUTES: Final = (list_visible, find_mount)
