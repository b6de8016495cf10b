"""Sharing: work that is done once for all who ask for it at the same time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

import msgspec
from attrs import define
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


@define(eq=False)
class Flight:
    """A look-up that is under way, with what those who join it have to know."""

    paused_until: Instant = 0.0
    """When the latest pause before a retry ends."""
    waits_for: str = ""
    """The key of the look-up that this one has joined."""
    failed_until: Instant = 0.0
    """The end of the pause in which an attempt without retries failed last, for the reason in `failure`."""
    failure: CloudidError | None = None


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
    outer = client.flight
    if outer is not None:
        outer.waits_for = key
    try:
        work_of_all = partial(_fly, client, key, work)
        paused_until = _paused_until(client, key)
        if client.deadline.at <= paused_until + SHORTEST_TRY and await Now() < paused_until:
            key, work_of_all = f"{key} before {paused_until}", partial(_attempt, client, key, paused_until, work)
        return await once(key, client.settings.request_deadline, client.deadline, work_of_all)
    finally:
        if outer is not None:
            outer.waits_for = ""


async def _join(key: str, limit: float, work: Callable[[Deadline], Program[T]]) -> T:
    return await shared(key, _run(limit, work))


async def _run(limit: float, work: Callable[[Deadline], Program[T]]) -> T:
    deadline = Deadline(await Now() + limit)
    return await within(limit + GRACE, work(deadline))


def _paused_until(client: Asker, key: str) -> Instant:
    """When the latest pause ends of a look-up, or of the one that it waits for; 0: there was none."""
    flights = client.caches.flights
    flight: Flight | None = flights.get(key)
    while flight is not None and flight.waits_for:
        flight = flights.get(flight.waits_for)
    return flight.paused_until if flight is not None else 0.0


async def _fly(client: A, key: str, work: Callable[[A], Program[T]], deadline: Deadline) -> T:
    flights = client.caches.flights
    flight = Flight()
    flights.put(key, flight)
    try:
        return await work(replace(client, deadline=deadline, flight=flight))
    finally:
        flights.drop(key)


async def _attempt(client: A, key: str, paused_until: Instant, work: Callable[[A], Program[T]], _: Deadline) -> T:
    """Do the work without retries, unless that failed before in the same pause.

    Its deadline is one that cannot wait for the end of the pause, so that a look-up within it makes an attempt as well.
    """
    flight: Flight = client.caches.flights.get(key) or Flight()
    if flight.failure is not None and flight.failed_until == paused_until:
        raise flight.failure.with_traceback(None)  # otherwise each raise would lengthen it
    hasty = replace(
        client, deadline=Deadline(paused_until + SHORTEST_TRY), flight=None, retry=RetryPolicy(max_retries=0)
    )
    try:
        return await work(hasty)
    except CloudidError as failure:
        flight.failed_until, flight.failure = paused_until, failure
        raise
