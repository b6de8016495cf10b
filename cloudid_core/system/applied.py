"""The folders of files that were applied, and what each has made."""

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
"""Characters of the path of a folder, or of the name of a host."""


@frozen
class FormerRecord:
    """What a client of an earlier version said that it had made. Nothing is pruned by it until a folder adopts it."""

    paths: tuple[str, ...] = ()


def _place(raw: object) -> str:
    place = TEXT.parse(raw)
    if len(place) > LONGEST or not place.isprintable():
        raise ValueError(f"must have at most {LONGEST} printable characters")
    return place


PLACE: Final = FieldType(TEXT.name, _place)


@frozen(kw_only=True)
class ClaimForm:
    path: str = setting(PLACE, "", "Where the folder is.")
    host: str = setting(PLACE, "", "The machine that the folder is on.")
    adopt: bool = setting(BOOLEAN, False, "Take the id over from a folder at another path or on another host.")
    former: str = setting(
        PLACE, "", "With `adopt`: the name of a record of an earlier version, whose paths become this folder's."
    )


@route(PATH, LIST)
async def list_folders(call: Call) -> Answer:
    """Lists the ids of the folders that were applied, and the names of the records of earlier versions."""
    records = call.context.records
    return Answer(data={"keys": sorted([*await records.names(keys.FOLDERS), *await records.names(keys.APPLIED)])})


@route(f"{PATH}/:name", READ, schemas.members(LIST="paths", TEXT="path host"))
async def read_folder(call: Call) -> Answer:
    """Reads where a folder is and what it has made. A record of an earlier version has neither path nor host."""
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
    """Claims the id of a folder. Writes that carry it in `X-Service-Applied-Folder` are recorded as the folder's.

    The record keeps path and host, so that a second folder with the same id is noticed.
    """
    form, records = call.form(ClaimForm), call.context.records
    folder_id = call.captures["name"]
    if not is_folder_id(folder_id):
        raise Refused(Code.NAME_INVALID, "the id of a folder is 32 hexadecimal digits in lower case")
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
    """Refuse to take over a record that the caller may not write itself: it can be the record of another team."""
    if not call.token.acl.allows(WRITE.value, f"{SYSTEM.path}/{PATH}/{former}"):
        raise Refused(Code.PERMISSION_DENIED, '"former" needs update and sudo at its own path')


@route(f"{PATH}/:name", DELETE)
async def forget_folder(call: Call) -> Answer:
    """Forgets a folder, or a record of an earlier version. What it made stays."""
    name, records = capture_name(call), call.context.records
    await forget(records, name)
    await records.update(keys.applied(name), FormerRecord, lambda _: None)
    return NOTHING


ROUTES: Final = (list_folders, read_folder, claim_folder, forget_folder)
