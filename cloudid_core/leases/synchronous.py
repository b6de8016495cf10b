"""Revocation within a request: it makes one attempt for each lease itself, and reports the actual result.

First, all leases are scheduled for the background work, at a time when the request must have ended. So nothing is lost
if the request is interrupted.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from typing import Final

from attrs import define, field

from ..context import NO_FENCE, Context, Job
from ..deadline import Deadline
from ..effects import Instant, ListKeys, Now, Program, gather
from ..errors import CloudidError, Code, Problem, Refused, drop_tracebacks, reason_of
from ..messages import ACCEPTED, NOTHING, Answer
from ..provider import PROVIDER_FAILURES, Removal, refusal_of
from .record import LEASES_AT_ONCE, Lease
from .revocation import end_leases, revoke_now
from .scope import Scope

PAGE: Final = LEASES_AT_ONCE
"""How many leases are marked in one commit."""
LANES: Final = 8
"""Maximum number of leases that are revoked concurrently."""
LEAST_SECONDS: Final = 5.0
"""Minimum duration of an attempt, as long as the request has time."""
ANSWER_SECONDS: Final = 0.5
"""How much of a request's time is reserved for its response."""
REASONS: Final = 10
"""Maximum number of different reasons in a response."""
COME_AGAIN: Final = 5.0
"""Seconds after which it may be useful to repeat the request."""


def due_after(context: Context, deadline: Deadline) -> Instant:
    """Return when no call of a request can still be pending."""
    return deadline.at + context.settings.request_grace


@define
class Attempts:
    """The attempts that a request makes while it has time, and their results.

    `left` counts the leases that are not known to be removed.
    """

    context: Context
    now: Instant
    deadline: Deadline
    left: int = 0
    failures: list[CloudidError] = field(factory=list)
    reasons: Counter[str] = field(factory=Counter)

    @property
    def due_at(self) -> Instant:
        """When the background work retries what remains."""
        return due_after(self.context, self.deadline)

    @property
    def ends_at(self) -> Instant:
        """When the last attempt ends, so that there is time for the response."""
        return self.deadline.at - ANSWER_SECONDS

    async def are_over(self) -> bool:
        """Return whether the request has no time left for attempts."""
        return await Now() >= self.ends_at

    def job(self, mount_id: str, ref: str, ends_at: Instant) -> Job:
        """Return a background job that the request does itself."""
        return Job(
            context=self.context,
            key="",
            mount_id=mount_id,
            ref=ref,
            now=self.now,
            deadline=Deadline(ends_at),
            fence=NO_FENCE,
        )

    async def note(self, attempt: Program[Removal | None]) -> None:
        """Make one attempt, and count its result. `None`: everything is removed."""
        try:
            removal = await attempt
        except CloudidError as failure:
            drop_tracebacks(failure)
            self.failures.append(failure)
            self.reasons.update((reason_of(failure),))
            return
        if removal is None or removal.is_accepted:
            self.left -= 1
            return
        self.failures.extend(failure for _, failure in removal.failures)
        self.reasons.update(removal.reasons)

    async def mark(self, scope: Scope, due_at: Instant) -> None:
        """Schedule the revocation of all leases of a scope, in commits of limited size.

        Refuse with `DEADLINE_PASSED` if there is no time for all of them. The leases that were marked stay marked.
        """
        after = ""
        while page := await ListKeys(scope.index, after, PAGE):
            await self.deadline.remaining()
            lease_ids = scope.select(page)
            await end_leases(self.context, lease_ids, due_at)
            self.left += len(lease_ids)
            after = page[-1]

    async def work_off(self, scope: Scope) -> None:
        """Try to revoke each lease of a scope once."""
        after = ""
        while not await self.are_over() and (page := await ListKeys(scope.index, after, PAGE)):
            await self.revoke(scope.select(page), scope.mount_id)
            after = page[-1]

    async def revoke(self, lease_ids: Sequence[str], mount_id: str) -> None:
        """Try to revoke each lease of a mount once, a few concurrently."""
        waiting = deque(lease_ids)

        async def lane() -> None:
            while waiting:
                lease_id, attempts_left = waiting.popleft(), len(waiting)
                started_at = await Now()
                if started_at >= self.ends_at:
                    return
                share = (self.ends_at - started_at) * LANES / max(LANES, attempts_left)
                ends_at = min(self.ends_at, started_at + max(LEAST_SECONDS, share))
                await self.note(revoke_now(self.job(mount_id, lease_id, ends_at), self.due_at))

        if waiting:
            await gather([lane() for _ in lease_ids[:LANES]])

    async def answer(self, path: str, wake_at: Instant) -> Answer:
        """Return 204 if nothing remains, 202 with a path if time is over, or refuse with Azure's failure."""
        if not self.left:
            return Answer(wake_at=wake_at)
        if not await self.are_over():
            raise await self.refusal(f"leases that remain: {self.left}")
        reasons = [reason for reason, _ in self.reasons.most_common(REASONS)]
        return Answer(status=ACCEPTED, data={"left": self.left, "reasons": reasons, "path": path}, wake_at=wake_at)

    async def refusal(self, detail: str = "") -> Refused:
        """Return why a revocation is incomplete: 504 if time is over, 502 or 503 if Azure failed."""
        if await self.are_over():
            return Refused(Code.DEADLINE_PASSED, detail, Problem(Code.REVOCATION_PENDING))
        causes = [_cause(failure) for failure in self.failures]
        codes = dict.fromkeys(cause.code for cause in causes)
        return Refused(
            Code.REVOCATION_PENDING,
            detail,
            *(Problem(code) for code in codes),
            status=502 if any(cause.status == 502 for cause in causes) else 503,
            retry_after=max((cause.retry_after or COME_AGAIN for cause in causes), default=COME_AGAIN),
        )


async def revoke_one(context: Context, lease: Lease, now: Instant, deadline: Deadline) -> Answer:
    """Revoke a lease. Return 204 when its secret is invalid and Azure has accepted all deletions, otherwise refuse."""
    attempts = Attempts(context, now, deadline, left=1)
    await attempts.revoke((lease.id,), lease.mount_id)
    if attempts.left:
        raise await attempts.refusal()
    return NOTHING


def _cause(failure: CloudidError) -> Refused:
    """Return a failure as callers see it. A step that used up its time means that Azure does not answer."""
    if isinstance(failure, PROVIDER_FAILURES):
        return refusal_of(failure)
    if isinstance(failure, Refused) and failure.code is not Code.DEADLINE_PASSED:
        return failure
    return Refused(Code.PROVIDER_UNREACHABLE)
