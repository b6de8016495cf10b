"""The read budget: how often this node may read from Azure Resource Manager.

Azure Resource Manager limits the reads of each subscription with a token bucket. A caller who finds the bucket empty
waits in line for the next token, and is refused immediately if that would take too long. Nodes share the bucket in
equal parts without communicating, because each knows how many nodes there are. Azure's responses can only lower the
estimate of what is in the bucket.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Callable
from math import ceil, floor
from typing import Final, TypeAlias

from attrs import frozen

from ..clouds import Cloud
from ..effects import HttpResponse, Instant, Now, Sleep
from ..errors import Code, Refused
from ..values import fold
from .responses import problem_of
from .retry import SHORTEST_TRY
from .single_flight import BaseClient, Flight

BURST_SECONDS: Final = 9.0
"""Seconds in which a full bucket fills up.

The bucket holds the tokens of one second less than Azure's, so that reads are admitted even if they arrive closer
together than they were sent.
"""

NO_HINT: Final = 1.0
"""Seconds without any read after a 429 that does not say how long to wait."""

MOST_CLOSED: Final = 300.0
"""Maximum seconds after which a read is retried, however long Azure asks to wait."""

SUBSCRIPTION_CODES: Final = frozenset({"SubscriptionRequestsThrottled", "TenantRequestsThrottled"})
"""Codes of a 429 that is about more than one resource or type of resource."""

REMAINING: Final = ("x-ms-ratelimit-remaining-subscription-reads", "x-ms-ratelimit-remaining-subscription-global-reads")
"""Headers with the number of reads that are still allowed."""

LOOK_PAUSE: Final = 1.0
"""Seconds before its turn when a waiting caller starts to check more often whether the line moves faster."""

_COUNT: Final = re.compile(r"[0-9]{1,9}")
_SUBSCRIPTION: Final = re.compile(r"/subscriptions/([^/?]+)", re.IGNORECASE)

SHORTEST_PAUSE: Final = 1e-3
"""Seconds."""


IsOver: TypeAlias = Callable[[Instant], bool]
"""Returns whether a read is no longer needed at an instant."""


class ReadBudget:
    """The bucket of one subscription. A reader takes a number, and proceeds when as many tokens have accumulated."""

    def __init__(self) -> None:
        self._rate = 0.0
        self._flowed = 0.0
        """How many tokens have accumulated in total. Callers with a higher number wait."""
        self._taken = 0
        """How many numbers were taken."""
        self._given_up: list[int] = []
        """Sorted numbers of callers who gave up."""
        self._at: Instant = 0.0
        self._closed_until: Instant = 0.0

    def flow(self, rate: float, now: Instant) -> None:
        """Add the tokens that have accumulated until now, and set the rate from now on."""
        if not self._rate:
            self._flowed, self._at = rate * BURST_SECONDS, now
        elif now < self._at:  # the clock was put back
            self._closed_until -= self._at - now
        self._flowed += max(0.0, now - max(self._at, self._closed_until)) * self._rate
        while self._given_up and self._given_up[0] <= self._flowed:
            self._given_up.pop(0)
            self._flowed += 1
        self._rate, self._at = rate, now
        self._lower_to(max(1.0, rate * BURST_SECONDS))

    def opens_at(self, number: int) -> Instant:
        """Return when a number's turn comes if nothing else happens.

        No caller proceeds while Azure has blocked reads.
        """
        missing = number + 1 - bisect_left(self._given_up, number) - self._flowed
        return max(self._at, self._closed_until) + max(0.0, missing) / self._rate

    @property
    def next_opens_at(self) -> Instant:
        """Return when the next caller may proceed."""
        return self.opens_at(self._taken)

    def left(self, now: Instant) -> float:
        """Return how many reads may be sent immediately. Negative: so many are waiting."""
        self.flow(self._rate, now)
        return self._flowed + len(self._given_up) - self._taken

    def take(self) -> int:
        """Return the next number."""
        self._taken += 1
        return self._taken - 1

    def take_first(self) -> int:
        """Return a number before all waiting callers, who move back by one."""
        if self._taken + 1 <= self._flowed:
            return self.take()
        self._flowed -= 1
        return floor(self._flowed)

    def give_up(self, number: int) -> None:
        """Give up a number, so that the callers after it move up."""
        insort(self._given_up, number)

    def heed(self, answer: HttpResponse, now: Instant) -> None:
        """Lower the budget according to a response.

        A 429 may be about one machine, or one type of resource, whose reads are limited separately. It blocks all reads
        for a while only if it says that it is about the subscription.
        """
        texts = [answer.headers.get(name, "") for name in REMAINING]
        remaining = min((int(text) for text in texts if _COUNT.fullmatch(text)), default=None)
        if answer.status == 429:
            problem = problem_of(answer, now)
            if problem.code in SUBSCRIPTION_CODES or remaining == 0:
                pause = NO_HINT if problem.retry_after is None else problem.retry_after
                self._closed_until = max(self._closed_until, now + min(pause, MOST_CLOSED))
                remaining = 0
        if remaining is not None:
            self._lower_to(remaining)

    def _lower_to(self, tokens: float) -> None:
        self._flowed = min(self._flowed, self._taken + tokens)


def _never(_: Instant) -> bool:
    return False


@frozen
class Line:
    """Where a client's reads below a path of Azure Resource Manager wait for their turn."""

    client: BaseClient
    cloud: Cloud
    path: str

    def budget(self, now: Instant) -> ReadBudget | None:
        """Return the current budget. `None` if reads are not limited."""
        rate, budgets = self._rate, self.client.caches.read_budgets
        if not rate:
            return None
        subscription = _SUBSCRIPTION.match(self.path)
        key = self.cloud.resource_manager, fold(subscription[1]) if subscription else ""
        budget: ReadBudget | None = budgets.get(key)
        if budget is None:
            budgets.put(key, budget := ReadBudget())
        budget.flow(rate, now)
        return budget

    async def admit(self, *, is_repeated: bool) -> None:
        """Wait until a read may be sent. A flight that has already started goes before all that have not."""
        flight = self.client.flight
        if flight is None:
            await self._wait(is_first=is_repeated)
        elif flight.is_admitted:
            flight.is_admitted = False
        else:
            await self._wait(is_first=is_repeated or flight.has_begun)
            flight.has_begun = True

    async def begin(self, *, is_first: bool = False, is_over: IsOver = _never) -> None:
        """Wait until the first read of a flight may be sent, or is no longer needed."""
        flight = self.client.flight
        assert flight is not None
        flight.has_begun = flight.is_admitted = await self._wait(is_first=is_first, is_over=is_over)

    async def _wait(self, *, is_first: bool, is_over: IsOver = _never) -> bool:
        """Return whether it is its turn, and not over."""
        now = await Now()
        budget = self.budget(now)
        if is_over(now):
            return False
        if budget is None:
            return True
        if not is_first:
            self._require_in_time(budget.next_opens_at, now)
        number, is_mine = budget.take_first() if is_first else budget.take(), False
        try:
            while (pause := budget.opens_at(number) - now) > 0:
                self._require_in_time(now + pause, now)
                if self.client.flight is not None:
                    self.client.flight.turn_at = now + pause
                await Sleep(max(pause, SHORTEST_PAUSE) if pause <= 2 * LOOK_PAUSE else pause / 2)
                now = await Now()
                if is_over(now):
                    return False
                budget.flow(self._rate, now)
            is_mine = True
        finally:
            if not is_mine:
                budget.give_up(number)
        return True

    async def heed(self, answer: HttpResponse) -> None:
        """Lower the budget according to a response."""
        if answer.status == 429 or any(name in answer.headers for name in REMAINING):
            now = await Now()
            budget = self.budget(now)
            if budget is not None:
                budget.heed(answer, now)

    def require_patience(self, key: str, now: Instant) -> None:
        """Refuse with `PROVIDER_THROTTLED` if a look-up cannot finish in time, by the flight of a key or a new one."""
        budget = self.budget(now)
        if budget is not None:
            flight: Flight | None = self.client.caches.flights.get(key)
            self._require_in_time(flight.turn_at if flight is not None else budget.next_opens_at, now)

    def _require_in_time(self, turn_at: Instant, now: Instant) -> None:
        late = turn_at + SHORTEST_TRY - self.client.deadline.at
        if turn_at > now and late > 0:
            raise Refused(Code.PROVIDER_THROTTLED, retry_after=ceil(late))

    @property
    def _rate(self) -> float:
        return self.client.settings.provider_read_rate / self.client.caches.nodes
