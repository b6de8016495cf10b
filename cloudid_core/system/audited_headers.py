"""The routes of audited headers: which headers of requests go on record, and whether their values are hashed."""

from __future__ import annotations

import re
from typing import Final

from attrs import evolve, frozen

from ..errors import Code, Refused
from ..forms import BOOLEAN, Json, schemas, setting
from ..messages import DELETE, NOTHING, READ, UNAUDITED_HEADERS, WRITE, Answer
from ..mounts import MountTable, change_mounts, mount_table
from ..routing import COPIED, Call, captured, route
from ..values import are_same

PATH: Final = "config/auditing/request-headers"
MOST_HEADERS: Final = 64
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
"""RFC 9110 section 5.1."""


@frozen(kw_only=True)
class HeaderForm:
    hmac: bool = setting(BOOLEAN, False, "Hash its values.")


BY_NAME: Final = schemas.each(schemas.members(BOOLEAN="hmac"))


@route(PATH, READ, schemas.members(headers=BY_NAME), shape=COPIED)
async def list_headers(call: Call) -> Answer:
    """Lists the request headers in audit entries."""
    headers = (await _table(call)).audited_headers
    return Answer(data={"headers": {name: _shown(headers[name]) for name in headers}}, copy_up=True)


@route(f"{PATH}/:header", READ, BY_NAME, shape=COPIED)
async def read_header(call: Call) -> Answer:
    """Tells how a header is audited."""
    name = _name(call)
    is_hashed = (await _table(call)).recorded_headers.get(name.lower())
    if is_hashed is None:
        raise Refused(Code.AUDITED_HEADER_NOT_FOUND)
    return Answer(data={name: _shown(is_hashed)}, copy_up=True)


@route(f"{PATH}/:header", WRITE, form=HeaderForm)
async def write_header(call: Call) -> Answer:
    """Puts a request header into audit entries. No header that may hold a token."""
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


@route(f"{PATH}/:header", DELETE)
async def delete_header(call: Call) -> Answer:
    """Leaves a request header out of audit entries."""
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
    return captured(call, "header", _header_name)


def _header_name(raw: str) -> str:
    if not _NAME.fullmatch(raw):
        raise ValueError("must be the name of a header")
    return raw


def _shown(is_hashed: bool) -> Json:
    return {"hmac": is_hashed}


ROUTES: Final = (list_headers, read_header, write_header, delete_header)
