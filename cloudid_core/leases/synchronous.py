"""Revocation inside a request: it makes one attempt for each lease itself, and answers what is true then.

The leases are made due for the background first, at a time when the request is certainly over. So nothing is lost if
the request is interrupted.
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
"""How many leases are revoked at the same time."""
LEAST_SECONDS: Final = 5.0
"""How long one attempt may take at least, while the request has time."""
ANSWER_SECONDS: Final = 0.5
"""How much of a request's time is kept for its answer."""
REASONS: Final = 10
"""How many different reasons one answer names."""
COME_AGAIN: Final = 5.0
"""Seconds after which the same request may be worth repeating."""


def due_after(context: Context, deadline: Deadline) -> Instant:
    """When nothing that a request has sent can still be under way."""
    return deadline.at + context.settings.request_grace


@define
class Attempts:
    """The attempts that a request makes itself, as long as it has time, and what they have achieved.

    `left` counts what is not known to be removed.
    """

    context: Context
    now: Instant
    deadline: Deadline
    left: int = 0
    failures: list[CloudidError] = field(factory=list)
    reasons: Counter[str] = field(factory=Counter)

    @property
    def due_at(self) -> Instant:
        """When the background tries what is left."""
        return due_after(self.context, self.deadline)

    @property
    def ends_at(self) -> Instant:
        """When the last attempt ends: some time is left for the answer."""
        return self.deadline.at - ANSWER_SECONDS

    async def are_over(self) -> bool:
        """Whether the request has no time left for work of its own."""
        return await Now() >= self.ends_at

    def job(self, mount_id: str, ref: str, ends_at: Instant) -> Job:
        """Background work that the request does itself."""
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
        """Make one attempt, and count what comes of it; `None`: nothing is there any more."""
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
        """Make all leases of a scope due for revocation, in bounded commits.

        Refuses with `DEADLINE_PASSED` when there is no time for all of them. What was marked stays so.
        """
        after = ""
        while page := await ListKeys(scope.index, after, PAGE):
            await self.deadline.remaining()
            lease_ids = scope.select(page)
            await end_leases(self.context, lease_ids, due_at)
            self.left += len(lease_ids)
            after = page[-1]

    async def work_off(self, scope: Scope) -> None:
        """Make one attempt for each lease of a scope."""
        after = ""
        while not await self.are_over() and (page := await ListKeys(scope.index, after, PAGE)):
            await self.revoke(scope.select(page), scope.mount_id)
            after = page[-1]

    async def revoke(self, lease_ids: Sequence[str], mount_id: str) -> None:
        """Make one attempt for each lease of a mount, a few at a time."""
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
        """204 when nothing is left; 202 with the path of what is, when time is over; otherwise the provider's failure
        as a refusal.
        """
        if not self.left:
            return Answer(wake_at=wake_at)
        if not await self.are_over():
            raise await self.refusal(f"leases that are left: {self.left}")
        reasons = [reason for reason, _ in self.reasons.most_common(REASONS)]
        return Answer(status=ACCEPTED, data={"left": self.left, "reasons": reasons, "path": path}, wake_at=wake_at)

    async def refusal(self, detail: str = "") -> Refused:
        """Why a revocation is not complete: 504 when time is over, 502 or 503 when the provider did not do its part."""
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
    """Revoke a lease: 204 when its secret is dead and all deletions were accepted, otherwise a refusal."""
    attempts = Attempts(context, now, deadline, left=1)
    await attempts.revoke((lease.id,), lease.mount_id)
    if attempts.left:
        raise await attempts.refusal()
    return NOTHING


def _cause(failure: CloudidError) -> Refused:
    """A failure as callers see it. A step whose share of the time is over means that the provider does not answer."""
    if isinstance(failure, PROVIDER_FAILURES):
        return refusal_of(failure)
    if isinstance(failure, Refused) and failure.code is not Code.DEADLINE_PASSED:
        return failure
    return Refused(Code.PROVIDER_UNREACHABLE)
