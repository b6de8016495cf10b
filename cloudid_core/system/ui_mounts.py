"""The routes with which clients look before they ask: what is mounted where, as far as the caller may know."""

from __future__ import annotations

from typing import Final

from ..api.fields import Json
from ..api.response import Answer
from ..api.routing import Call, Operation, Route
from ..errors import Code, Refused
from ..mounts.table import AUTH, SECRET, mount_table
from .mounts import described, shown_path


async def list_visible(call: Call) -> Answer:
    """The mounts that were made visible to everybody."""
    table = (await mount_table(call.context.records)).record
    data: dict[str, Json] = {
        kind: {
            shown_path(mount): {
                "type": mount.type_alias or mount.type,
                "description": mount.description,
                "options": mount.options,
            }
            for mount in table.live
            if mount.kind == kind and mount.listing_visibility == "unauth"
        }
        for kind in (SECRET, AUTH)
    }
    return Answer(data=data, copy_up=True)


async def find_mount(call: Call) -> Answer:
    """The mount that a path belongs to."""
    found = (await mount_table(call.context.records)).record.route(call.captures["path"])
    if found is None:
        raise Refused(Code.PERMISSION_DENIED)
    mount, _ = found
    return Answer(data={"path": f"{mount.path}/", **described(mount)}, copy_up=True)


ROUTES: Final = (
    Route(
        path="internal/ui/mounts",
        operation=Operation.READ,
        program=list_visible,
        public=True,
        doc="Lists the mounts whose `listing_visibility` is `unauth`.",
    ),
    Route(
        path="internal/ui/mounts/*path",
        operation=Operation.READ,
        program=find_mount,
        doc="Tells which mount a path belongs to.",
    ),
)
