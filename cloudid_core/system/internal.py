"""The routes below `sys/internal` for what a client may see: mounts, and the API as an OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import frozen

from ..effects import in_turns
from ..errors import Code, Refused
from ..forms import BOOLEAN, Json, schemas, setting
from ..messages import READ, Answer
from ..mounts import AUTH, SECRET, Mount, mount_table
from ..openapi import DOCUMENT, GENERIC_FROM, document_of, paths_of, place_of
from ..routing import COPIED, PLAIN, Call, Component, route
from .mounts import MOUNT, described, shown_path

AT_ONCE: Final = 20_000
"""How many patterns of the caller's policies are compared with mounts before other programs get a turn."""


async def visible_mounts(call: Call) -> list[Mount]:
    """Return the mounts that every caller may see, and those to which the caller's policies apply."""
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
    """Lists the mounts whose `listing_visibility` is `unauth`, and those below which the caller has permissions."""
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
    """Returns the mount of a path, to callers with permissions below it."""
    found = (await mount_table(call.context.records)).record.route(call.captures["path"])
    if found is None or not call.token.acl.reaches(found[0].path):
        raise Refused(Code.PERMISSION_DENIED)
    mount, _ = found
    return Answer(data={"path": f"{mount.path}/", **described(mount)}, copy_up=True)


@frozen(kw_only=True)
class SpecificationForm:
    generic_mount_paths: bool = setting(
        BOOLEAN,
        False,
        f"List each type of mount once, with its path as a parameter. From {GENERIC_FROM} mounts on, this "
        "is always done.",
    )


@route("internal/specs/openapi", READ, DOCUMENT, shape=PLAIN, form=SpecificationForm, any_token=True)
async def describe(call: Call) -> Answer:
    """Returns an OpenAPI 3.1 document of all paths for which the caller has permissions.

    The mounts are those that `sys/internal/ui/mounts` lists.
    """
    visible = await visible_mounts(call)
    generic = call.form(SpecificationForm).generic_mount_paths or len(visible) >= GENERIC_FROM

    def paths(mount: Mount) -> Iterator[str]:
        component = call.context.components.of(mount)
        if isinstance(component, Component):
            yield paths_of(component, place_of(mount, generic=generic))

    return Answer(rendered=document_of(await in_turns(visible, paths, 1)))


ROUTES: Final = (list_visible, find_mount, describe)
