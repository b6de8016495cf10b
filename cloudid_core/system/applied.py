"""What was made out of folders of files: who applies one again can remove what it made, and nothing else."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ..errors import Code, Refused
from ..forms import FieldType, schemas, setting
from ..messages import DELETE, LIST, NOTHING, READ, WRITE, Answer
from ..routing import Call, capture_name, route
from ..store import keys
from ..values import listing

PATH: Final = "applied"
MOST: Final = 10_000
LONGEST: Final = 512
"""Characters of a path."""


def _paths(raw: object) -> tuple[str, ...]:
    paths = listing.comma_list(raw)
    if len(paths) > MOST or not all(0 < len(path) <= LONGEST and path.isprintable() for path in paths):
        raise ValueError(f"must have at most {MOST} paths of 1 to {LONGEST} printable characters")
    return tuple(sorted(set(paths)))


@frozen(kw_only=True)
class Made:
    paths: tuple[str, ...] = setting(FieldType("list of paths", _paths, list), (), "The paths of what it made.")


@route(PATH, LIST)
async def list_folders(call: Call) -> Answer:
    """Lists the folders that were applied."""
    return Answer(data={"keys": await call.context.records.names(keys.APPLIED)})


@route(f"{PATH}/:name", READ, schemas.members(LIST="paths"))
async def read_made(call: Call) -> Answer:
    """Reads what a folder has made."""
    found = await call.context.records.find(keys.applied(capture_name(call)), Made)
    if found is None:
        raise Refused(Code.NOT_FOUND)
    return Answer(data={"paths": list(found.record.paths)})


@route(f"{PATH}/:name", WRITE, form=Made)
async def write_made(call: Call) -> Answer:
    """Remembers what a folder has made, so that what is no longer in it can be removed."""
    made = call.form(Made)
    await call.context.records.update(keys.applied(capture_name(call)), Made, lambda _: made)
    return NOTHING


@route(f"{PATH}/:name", DELETE)
async def forget(call: Call) -> Answer:
    """Forgets a folder. What it made stays."""
    await call.context.records.update(keys.applied(capture_name(call)), Made, lambda _: None)
    return NOTHING


ROUTES: Final = (list_folders, read_made, write_made, forget)
