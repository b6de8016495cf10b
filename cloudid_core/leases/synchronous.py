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
from ..effects import Instant, ListKeys, Now, gather
from ..errors import CloudidError, Code, Problem, Refused, reason_of
from ..forms import Json
from ..messages import ACCEPTED, NOTHING, Answer
from ..provider import PROVIDER_FAILURES, Removal, refusal_of
from .record import Lease
from .revocation import end_leases, revoke_now
from .scope import Scope

PAGE: Final = 30
"""How many leases are marked in one commit, which changes three entries of each."""
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


@define
class Progress:
    """What a request has achieved. `left` counts what is not known to be removed."""

    left: int
    failures: list[CloudidError] = field(factory=list)
    reasons: Counter[str] = field(factory=Counter)

    def note(self, removal: Removal | None) -> None:
        """Count one thing that was worked on; `None`: it is not there any more."""
        if removal is None or removal.is_accepted:
            self.left -= 1
            return
        self.failures.extend(failure for _, failure in removal.failures)
        self.reasons.update(removal.reasons)

    def note_failure(self, failure: CloudidError) -> None:
        self.failures.append(failure)
        self.reasons.update((reason_of(failure),))

    def described(self, path: str) -> dict[str, Json]:
        """The members of an answer for work that is accepted and not finished; `path` is where to read its state."""
        return {"left": self.left, "reasons": [reason for reason, _ in self.reasons.most_common(REASONS)], "path": path}


def due_after(context: Context, deadline: Deadline) -> Instant:
    """When nothing that a request has sent can still be under way."""
    return deadline.at + context.settings.request_grace


def working_deadline(deadline: Deadline) -> Deadline:
    """The deadline of a request's own work: some time is left for the answer."""
    return Deadline(deadline.at - ANSWER_SECONDS)


def job_of_request(context: Context, mount_id: str, ref: str, now: Instant, deadline: Deadline) -> Job:
    """Background work that a request does itself."""
    return Job(context=context, key="", mount_id=mount_id, ref=ref, now=now, deadline=deadline, fence=NO_FENCE)


async def revoke_one(context: Context, lease: Lease, now: Instant, deadline: Deadline) -> Answer:
    """Revoke a lease: 204 when its secret is dead and all deletions were accepted, otherwise a refusal."""
    progress = Progress(1)
    await revoke_all(context, (lease.id,), lease.mount_id, now, deadline, progress)
    if not progress.left:
        return NOTHING
    raise await refusal(progress, deadline)


async def mark(context: Context, scope: Scope, due_at: Instant, deadline: Deadline) -> int:
    """Make all leases of a scope due for revocation, in bounded commits; how many there are.

    Refuses with `DEADLINE_PASSED` when there is no time for all of them. What was marked stays so.
    """
    count, after = 0, ""
    while page := await ListKeys(scope.index, after, PAGE):
        await deadline.remaining()
        lease_ids = scope.select(page)
        await end_leases(context, lease_ids, due_at)
        count += len(lease_ids)
        after = page[-1]
    return count


async def work_off(context: Context, scope: Scope, now: Instant, deadline: Deadline, progress: Progress) -> None:
    """Make one attempt for each lease of a scope, as long as there is time."""
    after = ""
    while not await is_over(deadline) and (page := await ListKeys(scope.index, after, PAGE)):
        await revoke_all(context, scope.select(page), scope.mount_id, now, deadline, progress)
        after = page[-1]


async def revoke_all(
    context: Context, lease_ids: Sequence[str], mount_id: str, now: Instant, deadline: Deadline, progress: Progress
) -> None:
    """Make one attempt for each lease of a mount, a few at a time, as long as there is time."""
    due_at, deadline = due_after(context, deadline), working_deadline(deadline)
    waiting = deque(lease_ids)

    async def lane() -> None:
        while waiting:
            lease_id, attempts_left = waiting.popleft(), len(waiting)
            started_at = await Now()
            if started_at >= deadline.at:
                return
            share = (deadline.at - started_at) * LANES / max(LANES, attempts_left)
            until = Deadline(min(deadline.at, started_at + max(LEAST_SECONDS, share)))
            job = job_of_request(context, mount_id, lease_id, now, until)
            try:
                progress.note(await revoke_now(job, due_at))
            except CloudidError as failure:
                progress.note_failure(failure)

    if waiting:
        await gather([lane() for _ in lease_ids[:LANES]])


async def is_over(deadline: Deadline) -> bool:
    """Whether a request has no time left for work of its own."""
    return await Now() >= working_deadline(deadline).at


async def answer_for_many(progress: Progress, deadline: Deadline, *, path: str, wake_at: Instant) -> Answer:
    """204 when nothing is left; 202 when time is over; otherwise the provider's failure as a refusal."""
    if not progress.left:
        return Answer(wake_at=wake_at)
    if await is_over(deadline):
        return Answer(status=ACCEPTED, data=progress.described(path), wake_at=wake_at)
    raise await refusal(progress, deadline, f"leases that are left: {progress.left}")


async def refusal(progress: Progress, deadline: Deadline, detail: str = "") -> Refused:
    """Why a revocation is not complete: 504 when time is over, 502 or 503 when the provider did not do its part."""
    if await is_over(deadline):
        return Refused(Code.DEADLINE_PASSED, detail, Problem(Code.REVOCATION_PENDING))
    causes = [_cause(failure) for failure in progress.failures]
    codes = dict.fromkeys(cause.code for cause in causes)
    return Refused(
        Code.REVOCATION_PENDING,
        detail,
        *(Problem(code) for code in codes),
        status=502 if any(cause.status == 502 for cause in causes) else 503,
        retry_after=max((cause.retry_after or COME_AGAIN for cause in causes), default=COME_AGAIN),
    )


def _cause(failure: CloudidError) -> Refused:
    """A failure as callers see it. A step whose share of the time is over means that the provider does not answer."""
    if isinstance(failure, PROVIDER_FAILURES):
        return refusal_of(failure)
    if isinstance(failure, Refused) and failure.code is not Code.DEADLINE_PASSED:
        return failure
    return Refused(Code.PROVIDER_UNREACHABLE)
