"""Applied folders of files, and the objects that each has created."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ..applied import PAGE, PATH, Folder, adopt_paths, claim, forget, is_folder_id, made_by
from ..errors import Code, Refused
from ..forms import BOOLEAN, TEXT, FieldType, schemas, setting
from ..messages import DELETE, LIST, NOTHING, READ, WRITE, Answer
from ..mounts import SYSTEM
from ..routing import Call, capture_name, route
from ..store import keys

LONGEST: Final = 1024
"""Maximum characters of a folder's path, or of a host name."""


@frozen
class FormerRecord:
    """The objects that a client of an earlier version reported. They are not pruned until a folder adopts them."""

    paths: tuple[str, ...] = ()


def _place(raw: object) -> str:
    place = TEXT.parse(raw)
    if len(place) > LONGEST or not place.isprintable():
        raise ValueError(f"must have at most {LONGEST} printable characters")
    return place


PLACE: Final = FieldType(TEXT.name, _place)


@frozen(kw_only=True)
class ClaimForm:
    path: str = setting(PLACE, "", "Path of the folder.")
    host: str = setting(PLACE, "", "Host name of the folder's machine.")
    adopt: bool = setting(BOOLEAN, False, "Take over the id from a folder at a different path or on a different host.")
    former: str = setting(
        PLACE, "", "With `adopt`: the name of a record from an earlier version, whose paths this folder takes over."
    )


@route(PATH, LIST)
async def list_folders(call: Call) -> Answer:
    """Lists the ids of applied folders, and the names of records from earlier versions."""
    records = call.context.records
    return Answer(data={"keys": sorted([*await records.names(keys.FOLDERS), *await records.names(keys.APPLIED)])})


@route(f"{PATH}/:name", READ, schemas.members(LIST="paths", TEXT="path host"))
async def read_folder(call: Call) -> Answer:
    """Reads where a folder is and what it has created. A record of an earlier version has no path and no host."""
    name, records = capture_name(call), call.context.records
    folder = await records.find_fresh(keys.folder(name), Folder)
    if folder is not None:
        paths = await made_by(records, name)
        return Answer(data={"paths": paths, "path": folder.record.path, "host": folder.record.host})
    former = await records.find_fresh(keys.applied(name), FormerRecord)
    if former is None:
        raise Refused(Code.NOT_FOUND)
    return Answer(data={"paths": list(former.record.paths), "path": "", "host": ""})


@route(f"{PATH}/:name", WRITE, form=ClaimForm)
async def claim_folder(call: Call) -> Answer:
    """Claims the id of a folder.

    Objects that later writes create with it in `X-Service-Applied-Folder` belong to the folder.

    The record contains path and host, so that a second folder with the same id is detected.
    """
    form, records = call.form(ClaimForm), call.context.records
    folder_id = call.captures["name"]
    if not is_folder_id(folder_id):
        raise Refused(Code.NAME_INVALID, "the id of a folder must be 32 lowercase hexadecimal digits")
    if form.adopt and form.former:
        _may_take(call, form.former)
    await claim(records, folder_id, form.path, form.host, adopts=form.adopt)
    if form.adopt and form.former:
        key = keys.applied(form.former.lower())
        former = await records.find_fresh(key, FormerRecord)
        paths = former.record.paths if former else ()
        for start in range(0, len(paths), PAGE):
            await adopt_paths(records, folder_id, paths[start : start + PAGE])
        await records.update(key, FormerRecord, lambda _: None)
    return NOTHING


def _may_take(call: Call, former: str) -> None:
    """Refuse to take over a record that the caller may not write itself, because it may belong to another team."""
    if not call.token.acl.allows(WRITE.value, f"{SYSTEM.path}/{PATH}/{former}"):
        raise Refused(Code.PERMISSION_DENIED, '"former" needs update and sudo at its own path')


@route(f"{PATH}/:name", DELETE)
async def forget_folder(call: Call) -> Answer:
    """Deletes the record of a folder, or a record of an earlier version. The objects stay."""
    name, records = capture_name(call), call.context.records
    await forget(records, name)
    await records.update(keys.applied(name), FormerRecord, lambda _: None)
    return NOTHING


ROUTES: Final = (list_folders, read_folder, claim_folder, forget_folder)
