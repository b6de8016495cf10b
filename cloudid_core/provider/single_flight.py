"""Sharing: work that is done once for all who ask for it at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from ..effects import Now, Program, shared, within
from ..errors import Code, Refused, TimeIsUp
from ..foundation.deadline import Deadline

T = TypeVar("T")

GRACE: Final = 1.0
"""Seconds beyond its deadline after which work is closed that did not end by itself."""


async def once(key: str, limit: float, deadline: Deadline, work: Callable[[Deadline], Program[T]]) -> T:
    """The answer of work that runs once for everybody who asks for `key` while it runs.

    Everybody waits until their own deadline only. The work itself has `limit` seconds: were it bound to the deadline of
    who happened to ask first, others would fail with it.
    """
    try:
        return await within(await deadline.remaining(), _join(key, limit, work))
    except TimeIsUp:
        raise Refused(Code.DEADLINE_PASSED) from None


async def _join(key: str, limit: float, work: Callable[[Deadline], Program[T]]) -> T:
    return await shared(key, _run(limit, work))


async def _run(limit: float, work: Callable[[Deadline], Program[T]]) -> T:
    deadline = Deadline(await Now() + limit)
    return await within(limit + GRACE, work(deadline))
