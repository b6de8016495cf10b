"""What was made out of folders of files: who applies one again can remove what it made, and nothing else."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ..errors import Code, Refused
from ..forms import FieldType, schemas, setting
from ..messages import NOTHING, Answer, Operation
from ..routing import Answers, Call, Route, capture_name
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
    """What a folder has made."""

    paths: tuple[str, ...] = setting(FieldType("list of paths", _paths, list), (), "The paths of what it made.")


async def list_folders(call: Call) -> Answer:
    return Answer(data={"keys": await call.context.records.names(keys.APPLIED)})


async def read_made(call: Call) -> Answer:
    found = await call.context.records.find(keys.applied(capture_name(call)), Made)
    if found is None:
        raise Refused(Code.NOT_FOUND)
    return Answer(data={"paths": list(found.record.paths)})


async def write_made(call: Call) -> Answer:
    """Replace what is remembered of a folder; nothing is forgotten by halves."""
    made = call.form(Made)
    await call.context.records.update(keys.applied(capture_name(call)), Made, lambda _: made)
    return NOTHING


async def forget(call: Call) -> Answer:
    await call.context.records.update(keys.applied(capture_name(call)), Made, lambda _: None)
    return NOTHING


ROUTES: Final = (
    Route(PATH, Operation.LIST, list_folders, "Lists the folders that were applied."),
    Route(
        f"{PATH}/:name",
        Operation.READ,
        read_made,
        "Reads what a folder has made.",
        answers=Answers(data=schemas.members(LIST="paths")),
    ),
    Route(
        f"{PATH}/:name",
        Operation.WRITE,
        write_made,
        "Remembers what a folder has made, so that what is no longer in it can be removed.",
        form=Made,
    ),
    Route(f"{PATH}/:name", Operation.DELETE, forget, "Forgets a folder. What it made stays."),
)
