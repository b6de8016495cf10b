"""Sharing: work that is done once for all who ask for it at the same time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

import msgspec
from attrs import define, frozen
from msgspec.structs import replace

from ..effects import Instant, Now, Program, shared, within
from ..errors import CloudidError, Code, Refused, TimeIsUp
from ..foundation.caches import Caches
from ..foundation.deadline import Deadline
from ..settings import Settings
from .retry import SHORTEST_TRY, RetryPolicy

T = TypeVar("T")
A = TypeVar("A", bound="Asker")

GRACE: Final = 1.0
"""Seconds beyond its deadline after which work is closed that did not end by itself."""


@frozen(eq=False)
class Pause:
    """The time before a failed call is tried again."""

    ends_at: Instant

    @property
    def soonest_answer(self) -> Instant:
        return self.ends_at + SHORTEST_TRY


@define(eq=False)
class Flight:
    """A look-up that is under way, with what those who join it have to know."""

    pause: Pause | None = None
    """The latest pause."""
    waits_for: str = ""
    """The key of the look-up that this one has joined."""
    attempted_in: Pause | None = None
    """The last pause in which an attempt was made, and failed."""
    failure: Exception | None = None


class Asker(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a client that shared work needs. `flight`: the look-up that its calls are part of."""

    settings: Settings
    caches: Caches
    deadline: Deadline
    retry: RetryPolicy = RetryPolicy()
    flight: Flight | None = None


async def once(key: str, limit: float, deadline: Deadline, work: Callable[[Deadline], Program[T]]) -> T:
    """The answer of work that runs once for everybody who asks for `key` while it runs.

    Everybody waits until their own deadline only. The work itself has `limit` seconds: were it bound to the deadline of
    who happened to ask first, others would fail with it.
    """
    try:
        return await within(await deadline.remaining(), _join(key, limit, work))
    except TimeIsUp:
        raise Refused(Code.DEADLINE_PASSED) from None


async def look_up_once(client: A, key: str, work: Callable[[A], Program[T]]) -> T:
    """As `once`, for work that uses a client, and so may pause before it tries a failed call again.

    The provider may recover during such a pause. All whose deadline is too early to wait for its end share one attempt
    without retries; when that fails they fail too, until the pause ends.
    """
    outer, limit = client.flight, client.settings.request_deadline
    if outer is not None:
        outer.waits_for = key
    try:
        pause = _pause_of(client, key)
        if pause is None or client.deadline.at > pause.soonest_answer or (now := await Now()) >= pause.ends_at:
            return await once(key, limit, client.deadline, partial(_fly, client, key, work))
        limit = pause.soonest_answer - now
        attempt = partial(_attempt, client, key, pause, work)
        return await once(f"{key} before {pause.ends_at}", limit, client.deadline, attempt)
    finally:
        if outer is not None:
            outer.waits_for = ""


async def _join(key: str, limit: float, work: Callable[[Deadline], Program[T]]) -> T:
    return await shared(key, _run(limit, work))


async def _run(limit: float, work: Callable[[Deadline], Program[T]]) -> T:
    deadline = Deadline(await Now() + limit)
    return await within(limit + GRACE, work(deadline))


def _pause_of(client: Asker, key: str) -> Pause | None:
    """The latest pause of a look-up, or of the one that it waits for."""
    flights = client.caches.flights
    flight: Flight | None = flights.get(key)
    while flight is not None and flight.waits_for:
        flight = flights.get(flight.waits_for)
    return flight.pause if flight is not None else None


async def _fly(client: A, key: str, work: Callable[[A], Program[T]], deadline: Deadline) -> T:
    flights = client.caches.flights
    flight = Flight()
    flights.put(key, flight)
    try:
        return await work(replace(client, deadline=deadline, flight=flight))
    finally:
        flights.drop(key)


async def _attempt(client: A, key: str, pause: Pause, work: Callable[[A], Program[T]], deadline: Deadline) -> T:
    """Do the work without retries, unless that failed before in the same pause."""
    paused: Flight = client.caches.flights.get(key) or Flight()
    if paused.attempted_in is pause and paused.failure is not None:
        raise paused.failure
    try:
        return await work(replace(client, deadline=deadline, flight=None, retry=RetryPolicy(max_retries=0)))
    except CloudidError as failure:
        paused.attempted_in, paused.failure = pause, failure
        raise
