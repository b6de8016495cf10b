"""Single flight: do work once for all callers that need it at the same time.

A look-up in Azure may pause before it retries a failed call, and Azure may recover in the meantime. All callers whose
deadline is before the end of the pause share one attempt without retries. If that attempt fails, they fail too, until
the pause ends.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

import msgspec
from attrs import define, field
from msgspec.structs import replace

from ..caches import Caches
from ..deadline import Deadline
from ..effects import Instant, Now, Program, shared, within
from ..errors import CloudidError, Code, Refused, TimeIsUp
from ..settings import Settings
from .retry import NO_RETRY, SHORTEST_TRY, RetryPolicy

T = TypeVar("T")
C = TypeVar("C", bound="BaseClient")

GRACE: Final = 1.0
"""Seconds beyond its deadline after which work is closed that did not end by itself."""


@define(eq=False)
class Pause:
    """The time before a look-up retries a failed call."""

    until: Instant
    failures: dict[str, CloudidError] = field(factory=dict)
    """Why the attempts during it failed, by the keys of their look-ups."""


@define(eq=False)
class Flight:
    """A running look-up."""

    pause: Pause | None = None
    """Its latest one."""
    waits_for: str = ""
    """The key of another look-up whose result it needs first."""
    turn_at: Instant = 0.0
    """When it can read from Azure Resource Manager."""
    is_admitted: bool = False
    """It has waited for its turn, but not read yet."""
    has_begun: bool = False
    """It has had its turn."""


class BaseClient(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a client that look-ups need. `flight` is the look-up of its calls."""

    settings: Settings
    caches: Caches
    deadline: Deadline
    retry: RetryPolicy = RetryPolicy()
    flight: Flight | None = None


async def once(key: str, limit: float, deadline: Deadline, work: Callable[[Deadline], Program[T]]) -> T:
    """Return the result of work that runs once for all callers with the same `key`.

    Each caller waits only until its own deadline. The work itself has `limit` seconds: with the deadline of the first
    caller, the others would fail with it.
    """
    try:
        return await within(await deadline.remaining(), _join(key, limit, work))
    except TimeIsUp:
        raise Refused(Code.DEADLINE_PASSED) from None


async def look_up_once(client: C, key: str, work: Callable[[C], Program[T]]) -> T:
    """Do a look-up once with a client: it may pause, and `work` may itself wait for another look-up."""
    outer = client.flight
    if outer is not None:
        outer.waits_for = key
    try:
        flight_key, fly = key, partial(_look_up, client, key, work)
        pause = _latest_pause(client.caches, key)
        if pause is not None and client.deadline.at <= pause.until + SHORTEST_TRY and await Now() < pause.until:
            flight_key, fly = f"{key} before {pause.until}", partial(_attempt, client, key, pause, work)
        return await once(flight_key, client.settings.request_deadline, client.deadline, fly)
    finally:
        if outer is not None:
            outer.waits_for = ""


async def _join(key: str, limit: float, work: Callable[[Deadline], Program[T]]) -> T:
    return await shared(key, _run(limit, work))


async def _run(limit: float, work: Callable[[Deadline], Program[T]]) -> T:
    return await within(limit + GRACE, _begin(limit, work))


async def _begin(limit: float, work: Callable[[Deadline], Program[T]]) -> T:
    return await work(Deadline(await Now() + limit))


def _latest_pause(caches: Caches, key: str) -> Pause | None:
    """Return the pause of a look-up, or of the look-up for which it waits."""
    flight: Flight | None = caches.flights.get(key)
    while flight is not None and flight.waits_for:
        flight = caches.flights.get(flight.waits_for)
    return flight.pause if flight is not None else None


async def _look_up(client: C, key: str, work: Callable[[C], Program[T]], deadline: Deadline) -> T:
    """Do the work, with all retries, as the flight of this key."""
    flights, flight = client.caches.flights, Flight()
    flights.put(key, flight)
    try:
        return await work(replace(client, deadline=deadline, flight=flight))
    finally:
        flights.drop(key)


async def _attempt(client: C, key: str, pause: Pause, work: Callable[[C], Program[T]], _: Deadline) -> T:
    """Do the work without retries, unless that has failed before in the same pause.

    Its deadline is before the end of the pause, so that a nested look-up makes a single attempt too.
    """
    if key in pause.failures:
        raise pause.failures[key].with_traceback(None)  # otherwise each raise would lengthen it
    deadline = Deadline(pause.until + SHORTEST_TRY)
    try:
        return await work(replace(client, deadline=deadline, flight=Flight(), retry=NO_RETRY))
    except CloudidError as failure:
        pause.failures[key] = failure
        raise
