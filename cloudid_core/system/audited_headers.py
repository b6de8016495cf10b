"""The routes of audited headers: which headers of requests go on record, and whether their values are hashed."""

from __future__ import annotations

import re
from typing import Final

from attrs import evolve, frozen

from ..errors import Code, Refused
from ..forms import BOOLEAN, Json, schemas, setting
from ..messages import NOTHING, UNAUDITED_HEADERS, Answer, Operation
from ..mounts import MountTable, change_mounts, mount_table
from ..routing import COPIED, Answers, Call, Route, captured
from ..values import are_same

PATH: Final = "config/auditing/request-headers"
MOST_HEADERS: Final = 64
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
"""RFC 9110 section 5.1."""


@frozen(kw_only=True)
class HeaderForm:
    """How a header goes on record."""

    hmac: bool = setting(BOOLEAN, False, "Hash its values.")


async def list_headers(call: Call) -> Answer:
    """All audited headers."""
    headers = (await _table(call)).audited_headers
    return Answer(data={"headers": {name: _shown(headers[name]) for name in headers}}, copy_up=True)


async def read_header(call: Call) -> Answer:
    """One header, under its name as the request spells it."""
    name = _name(call)
    is_hashed = (await _table(call)).recorded_headers.get(name.lower())
    if is_hashed is None:
        raise Refused(Code.AUDITED_HEADER_NOT_FOUND)
    return Answer(data={name: _shown(is_hashed)}, copy_up=True)


async def write_header(call: Call) -> Answer:
    """Put a header on record. One that may hold a token is refused, hashed or not."""
    name, form = _name(call), call.form(HeaderForm)
    if name.lower() in UNAUDITED_HEADERS:
        raise Refused(Code.NAME_INVALID, "this header never goes on record")

    def changed(table: MountTable) -> MountTable:
        headers = {**_without(table, name), name: form.hmac}
        if len(headers) > MOST_HEADERS:
            raise Refused(Code.MALFORMED_REQUEST, "there are too many audited headers")
        return evolve(table, audited_headers=headers)

    await change_mounts(call.context.records, changed)
    return NOTHING


async def delete_header(call: Call) -> Answer:
    """Put a header on record no longer. Does nothing if it is not audited."""
    name = _name(call)

    def changed(table: MountTable) -> MountTable:
        headers = _without(table, name)
        return evolve(table, audited_headers=headers) if headers != table.audited_headers else table

    await change_mounts(call.context.records, changed)
    return NOTHING


def _without(table: MountTable, name: str) -> dict[str, bool]:
    """The audited headers but for one, however its name is spelled."""
    headers = table.audited_headers
    return {each: is_hashed for each, is_hashed in headers.items() if not are_same(each, name)}


async def _table(call: Call) -> MountTable:
    return (await mount_table(call.context.records)).record


def _name(call: Call) -> str:
    """The captured name of a header."""
    return captured(call, "header", _header_name)


def _header_name(raw: str) -> str:
    if not _NAME.fullmatch(raw):
        raise ValueError("must be the name of a header")
    return raw


def _shown(is_hashed: bool) -> Json:
    return {"hmac": is_hashed}


BY_NAME: Final = schemas.each(schemas.members(BOOLEAN="hmac"))
ROUTES: Final = (
    Route(
        PATH,
        Operation.READ,
        list_headers,
        "Lists the request headers in audit entries.",
        answers=Answers(data=schemas.members(headers=BY_NAME), shape=COPIED),
    ),
    Route(
        f"{PATH}/:header",
        Operation.READ,
        read_header,
        "Tells how a header is audited.",
        answers=Answers(data=BY_NAME, shape=COPIED),
    ),
    Route(
        f"{PATH}/:header",
        Operation.WRITE,
        write_header,
        "Puts a request header into audit entries. No header that may hold a token.",
        form=HeaderForm,
    ),
    Route(f"{PATH}/:header", Operation.DELETE, delete_header, "Leaves a request header out of audit entries."),
)
