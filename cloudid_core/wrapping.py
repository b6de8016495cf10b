"""Response wrapping: store a response, and give the caller a token that returns it once.

The token is generated before the request is executed. A commit that creates a lease or token for the response also
writes the wrapping token. So both end with the wrapping token, even if the process crashes before the response is
wrapped.
"""

from __future__ import annotations

from contextlib import suppress
from math import ceil
from typing import Final

import msgspec
from msgspec.structs import replace

from .context import Context, Due
from .delivery import TRIES, give_back
from .effects import ABSENT, Instant, ListKeys, Now, RandomBytes
from .errors import CloudidError, Code, Conflict, Refused, StoreFailed
from .messages import Answer, WrapInfo
from .mounts import TOKEN
from .policies import RESPONSE_WRAPPING
from .routing import Held
from .store import Changes, Found, keys
from .tokens import RANDOM_SIZE, Issue, Token, find_token, mint
from .values import rfc3339

ANSWER_LIMIT: Final = 256 * 1024
"""Maximum size of a wrapped response, in bytes."""

MOST_WAITING: Final = 1000
"""Maximum number of waiting responses that were wrapped for one token."""

MOST_KIBIBYTES: Final = 16 * 1024
"""Maximum total size of the waiting responses that were wrapped for one principal."""

RETRY_INTERVAL: Final = 60.0
"""Seconds after which to retry if there are too many."""


class Wrapped(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A response that no client has seen yet.

    Its lease or token depends on the wrapping token: if the wrapping token expires before it was unwrapped, they end
    too. `new_lease` and `new_token` are ids, and are empty unless the response returns them for the first time.
    """

    body: str
    path: str
    created_at: Instant
    ttl: int
    new_lease: str = ""
    new_token: str = ""
    accessor: str = ""
    """The accessor of the token in the response."""

    def __repr__(self) -> str:
        return f"<Wrapped answer of {self.path}>"

    @property
    def has_dependants(self) -> bool:
        return bool(self.new_lease or self.new_token)

    def dependant_keys(self, token: Token) -> tuple[str, ...]:
        """Return the keys by which background work revokes the lease or token together with the wrapping token."""
        return token.dependant_keys(self.new_lease, self.new_token)

    def tie(self, token: Token) -> Changes:
        """Return the change that writes the response under its wrapping token, with its dependants."""
        index_keys = (*token.wrapped_keys, *self.dependant_keys(token))
        return Changes(puts={**dict.fromkeys(index_keys, Due()), keys.wrapped(token.id): self})

    def release(self, token: Found[Token], spent: Token) -> Changes:
        """Return the change that ends the wrapping token, but not its dependants.

        It puts an entry instead of deleting one: if the outcome of the commit is unknown, only the new entry proves
        which request unwrapped it.
        """
        deletes = (*token.record.wrapped_keys, *self.dependant_keys(token.record))
        return Changes(token.expected, {token.key: spent}, deletes)


def spent_token(token: Token, now: Instant, request_id: str) -> Token:
    """Return a spent wrapping token. The request id distinguishes it from other requests for the response."""
    return replace(token, expires_at=now, has_dependants=False, display_name=request_id)


async def check_waiting(context: Context, token_id: str, principal: str, now: Instant) -> None:
    """Refuse with `WRAPPED_COUNT_EXCEEDED` if too many responses are waiting.

    They are counted for the token and for its principal. Requests in progress are not counted. Repeated logins of a
    principal count together; an empty principal has no limit.
    """
    waiting = await ListKeys(keys.all_wrapped_by(token_id), keys.wrapped_until(token_id, now), MOST_WAITING)
    if len(waiting) >= MOST_WAITING:
        raise Refused(Code.WRAPPED_COUNT_EXCEEDED, retry_after=RETRY_INTERVAL)
    if principal:
        await check_principal(principal, now)


async def check_principal(principal: str, now: Instant) -> None:
    """Refuse with `WRAPPED_COUNT_EXCEEDED` if too many or too large responses wrapped for a principal are waiting."""
    prefix, after = keys.all_wrapped_for(principal), keys.wrapped_for_until(principal, now)
    waiting = await ListKeys(prefix, after, MOST_WAITING)
    kibibytes = sum(int(key.rpartition("/")[2]) for key in waiting)
    if len(waiting) >= MOST_WAITING or kibibytes >= MOST_KIBIBYTES:
        raise Refused(Code.WRAPPED_COUNT_EXCEEDED, retry_after=RETRY_INTERVAL)


async def wrapping_token(
    context: Context, path: str, ttl: int, begins_by: Instant, wrapped_by: str = "", wrapped_for: str = ""
) -> Issue:
    """Return a wrapping token for a response that is wrapped by a given time, valid for `ttl` seconds from then on.

    `wrapped_by` is the id of the token that requested the wrapping, and `wrapped_for` its principal. The response does
    not end with that token.
    """
    draft = Token(
        path=path,
        mount_id=TOKEN.id,
        policies=(RESPONSE_WRAPPING,),
        display_name="",
        created_at=await Now(),
        ttl=ttl,
        expires_at=begins_by + ttl,
        renewable=False,
        explicit_max_ttl=ttl,
        num_uses=1,
        wrapped_by=wrapped_by,
        wrapped_for=wrapped_for,
    )
    return mint(context, draft, (), await RandomBytes(RANDOM_SIZE))


async def wrap(context: Context, answer: Answer, body: bytes, issue: Issue, held: Held) -> Answer:
    """Return the response that replaces `answer`, whose body is `body`.

    If this fails, what the request `held` is revoked, because it cannot be delivered.
    """
    now = await Now()
    wrapped = Wrapped(
        body=body.decode(),
        path=issue.token.path,
        created_at=now,
        ttl=issue.token.ttl,
        new_lease=answer.holds,
        new_token=answer.new_token,
        accessor=answer.auth.accessor if answer.auth else "",
    )
    try:
        if len(body) > ANSWER_LIMIT:
            raise Refused(Code.WRAPPED_ANSWER_TOO_LARGE)
        token = replace(issue.token, wrapped_size=ceil(len(body) / 1024))
        if not token.wrapped_by and held.token is not None:  # a login: its principal is known only now
            token = replace(token, wrapped_for=held.token.login_principal)
            await check_principal(token.wrapped_for, now)
        await _keep(context, wrapped, token, now, held)
    except CloudidError:
        with suppress(CloudidError):
            await give_back(context, held, tries=TRIES)
        raise
    ends_at = now + wrapped.ttl
    wake_at = min(answer.wake_at or ends_at, ends_at) if wrapped.has_dependants else answer.wake_at
    return replace(wrapped_answer(wrapped, issue), holds=answer.holds, wake_at=wake_at)


async def _keep(context: Context, wrapped: Wrapped, token: Token, now: Instant, held: Held) -> None:
    """Write the response with its token, whose lifetime starts now.

    If there is a lease or token, it is already in the store.
    """
    lasting = replace(token, expires_at=now + wrapped.ttl, has_dependants=wrapped.has_dependants)
    changes = Changes({token.key: ABSENT}, {token.key: lasting})
    if wrapped.has_dependants:
        found = await find_token(context, token.id)
        if found is None:
            raise Refused(Code.WRAPPING_TOKEN_INVALID)
        changes = Changes(found.expected, {token.key: lasting}, wrapped.dependant_keys(found.record))
    before, held.wrapping = held.wrapping, lasting
    try:
        await context.records.commit(changes | wrapped.tie(lasting))
    except (Conflict, StoreFailed):  # nothing was written
        held.wrapping = before
        raise


def wrapped_answer(wrapped: Wrapped, issue: Issue) -> Answer:
    """Return what the caller gets instead of a wrapped response."""
    info = WrapInfo(
        token=issue.text,
        accessor=issue.accessor,
        ttl=wrapped.ttl,
        creation_time=rfc3339.show(wrapped.created_at),
        creation_path=wrapped.path,
        wrapped_accessor=wrapped.accessor,
    )
    return Answer(wrap_info=info, new_token=issue.token.id)
