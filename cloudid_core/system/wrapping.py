"""The routes of response wrapping.

A wrapping token is enough; no other token is needed. It is in the field `token`, or is sent as the caller's own token.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen
from msgspec.structs import replace

from ..effects import ABSENT
from ..errors import Code, Conflict, Refused, StoreFailed
from ..forms import TEXT, schemas, setting
from ..messages import WRITE, Answer
from ..routing import PLAIN, Answers, Call, Unwrapping, route
from ..store import Changes, Found, keys, retry_on_conflict
from ..tokens import Token, find_by_text, find_token
from ..values import rfc3339
from ..wrapping import Wrapped, spent_token, wrapped_answer, wrapping_token


@frozen(kw_only=True)
class WrappingForm:
    token: str = setting(TEXT, "", "The wrapping token; empty: the token of the request.", repr=False)


@route("wrapping/wrap", WRITE, schemas.each(schemas.ANY), takes_anything=True)
async def wrap_body(call: Call) -> Answer:
    """Wraps the body of the request."""
    if call.wrapping is None:
        raise Refused(Code.MALFORMED_REQUEST, "X-Service-Wrap-TTL is missing")
    return Answer(data=dict(call.body))


@route("wrapping/unwrap", WRITE, schemas.each(schemas.ANY), shape=PLAIN, form=WrappingForm, public=True)
@retry_on_conflict
async def unwrap(call: Call) -> Answer:
    """Returns the response behind a wrapping token, once."""
    token, wrapped = await _find(call)
    shown, spent = wrapped.record, spent_token(token.record, call.now, call.request_id)
    call.held.unwrapping = Unwrapping(token, spent, shown.new_lease, shown.new_token)
    await call.context.records.commit(Changes(wrapped.expected) | shown.release(token, spent))
    return Answer(rendered=shown.body, holds=shown.new_lease, new_token=shown.new_token)


@route(
    "wrapping/lookup",
    WRITE,
    schemas.members(INTEGER="creation_ttl", TIME="creation_time", TEXT="creation_path"),
    form=WrappingForm,
    public=True,
)
async def look_up(call: Call) -> Answer:
    """Returns the path of a wrapping token's response, and when it was wrapped. The token stays valid."""
    _, found = await _find(call)
    wrapped = found.record
    data = {
        "creation_ttl": wrapped.ttl,
        "creation_time": rfc3339.show(wrapped.created_at),
        "creation_path": wrapped.path,
    }
    return Answer(data=data)


@route("wrapping/rewrap", WRITE, Answers(), form=WrappingForm, public=True)
@retry_on_conflict
async def rewrap(call: Call) -> Answer:
    """Replaces a wrapping token with a new one for the same response, with a new lifetime."""
    token, found = await _find(call)
    wrapped = replace(found.record, created_at=call.now)
    before = token.record
    issue = await wrapping_token(
        call.context, wrapped.path, wrapped.ttl, call.now, before.wrapped_by, before.wrapped_for
    )
    fresh = replace(issue.token, has_dependants=wrapped.has_dependants, wrapped_size=before.wrapped_size)
    released = Changes(found.expected) | found.record.release(
        token, spent_token(token.record, call.now, call.request_id)
    )
    call.held.wrapping = fresh
    written = Changes({fresh.key: ABSENT}, {fresh.key: fresh}) | wrapped.tie(fresh)
    try:
        await call.context.records.commit(released | written)
    except (Conflict, StoreFailed):  # nothing was written
        call.held.wrapping = None
        raise
    return wrapped_answer(wrapped, issue)


async def _find(call: Call) -> tuple[Found[Token], Found[Wrapped]]:
    """Return an unused wrapping token, and the response behind it."""
    shown = call.form(WrappingForm).token or call.exchange.token
    known = await find_by_text(call.context, shown)
    token = await find_token(call.context, known.id) if known and known.is_wrapping else None
    if token is not None and token.record.is_alive(call.now):
        wrapped = await call.context.records.find_fresh(keys.wrapped(token.record.id), Wrapped)
        if wrapped is not None:
            return token, wrapped
    raise Refused(Code.WRAPPING_TOKEN_INVALID)


ROUTES: Final = (wrap_body, unwrap, look_up, rewrap)
