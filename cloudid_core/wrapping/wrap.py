"""Wrap an answer: it goes to the store, and the caller gets a token that shows it once."""

from __future__ import annotations

from contextlib import suppress

from msgspec.structs import replace

from ..api.response import Answer, WrapInfo
from ..effects import Instant, RandomBytes
from ..errors import CloudidError
from ..foundation.context import Context
from ..leases.revocation import end_lease
from ..mounts.table import TOKEN
from ..policies.builtin import RESPONSE_WRAPPING
from ..tokens.hierarchy import revoke
from ..tokens.issue import RANDOM_SIZE, Issue, mint
from ..tokens.record import Token
from ..values import rfc3339
from .record import Wrapped


async def wrap(context: Context, answer: Answer, body: bytes, *, path: str, ttl: int, now: Instant) -> Answer:
    """The answer that stands for `answer`, whose body is `body`, for `ttl` seconds.

    If this fails, the lease or token that `answer` gives is ended: it cannot be delivered.
    """
    wrapped = Wrapped(
        body=body.decode(),
        path=path,
        created_at=now,
        ttl=ttl,
        new_lease=answer.holds,
        new_token=answer.new_token,
        accessor=answer.auth.accessor if answer.auth else "",
    )
    try:
        issue = await new_wrapping_token(context, wrapped, now)
        await context.records.commit(issue.changes | wrapped.tie(issue.token))
    except CloudidError:
        with suppress(CloudidError):
            if answer.holds:
                await end_lease(context, answer.holds, now)
            if answer.new_token:
                await revoke(context, answer.new_token, now)
        raise
    wake_at = min(answer.wake_at or now + ttl, now + ttl) if wrapped.has_dependants else answer.wake_at
    return replace(wrapped_answer(wrapped, issue, now), holds=answer.holds, wake_at=wake_at)


async def new_wrapping_token(context: Context, wrapped: Wrapped, now: Instant) -> Issue:
    """A token that shows an answer once."""
    draft = Token(
        path=wrapped.path,
        mount_id=TOKEN.id,
        policies=(RESPONSE_WRAPPING,),
        display_name="",
        created_at=now,
        ttl=wrapped.ttl,
        expires_at=now + wrapped.ttl,
        renewable=False,
        explicit_max_ttl=wrapped.ttl,
        num_uses=1,
        has_dependants=wrapped.has_dependants,
    )
    return mint(context, draft, (), await RandomBytes(RANDOM_SIZE))


def wrapped_answer(wrapped: Wrapped, issue: Issue, now: Instant) -> Answer:
    """What the caller gets in place of a wrapped answer."""
    info = WrapInfo(
        token=issue.text,
        accessor=issue.accessor,
        ttl=wrapped.ttl,
        creation_time=rfc3339.show(now),
        creation_path=wrapped.path,
        wrapped_accessor=wrapped.accessor,
    )
    return Answer(wrap_info=info)
