"""The journal: objects at the provider are written down before the first call that could make them.

An intent names every object that is about to be made. The commit that accounts for the objects (a lease, a role)
removes it. An intent that is still there when its request can no longer live is undone: its objects are removed, and
looked for until the directory's settle time has passed, since an object that is not shown yet is not an object that is
not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from attrs import evolve, frozen
from msgspec.structs import replace

from ..context import Context, Due, Job, queue
from ..effects import ABSENT, Instant, Now
from ..errors import REASON_LIMIT, CloudidError, Code, Conflict, EntryDamaged, Refused
from ..events import IntentChanged
from ..mounts import mount_table
from ..provider import Provisioned, Removal, remove
from ..routing import mount_client
from ..store import NO_CHANGES, Changes, Found, keys, retry_on_conflict

BETWEEN_REASONS: Final = "; "
MOST_REASONS: Final = 20
"""How many different reasons are told of everything that is left together."""
LONGEST_TEXT: Final = 6 * REASON_LIMIT
"""Room for a reason of every step."""
_REQUEST_ID: Final = re.compile(r" \((?:client )?request ")
UNDER_WAY: Final = "an attempt is running or was interrupted"
MOUNT_GONE: Final = "its mount is gone: a reconciliation of another mount finds what was made too late"
OTHER_TENANT: Final = "it is in a tenant that the mount is no longer configured for"


@frozen
class IntentGuard:
    """Written with every intent that is opened. A commit that rests on there being none expects its version."""

    latest: str
    """The id of that intent."""


@frozen(kw_only=True)
class Intent:
    """Objects that may exist at the provider although no record accounts for them yet."""

    id: str
    mount_id: str
    provisioned: Provisioned
    made_at: Instant
    last_call_at: Instant
    """When the last call ends, at the latest, that could make one of them."""
    due_at: Instant
    role: str = ""
    """The role of the lease that is to account for them, or did; empty: it is no lease."""
    attempts: int = 0
    reason: str = ""

    @property
    def key(self) -> str:
        return keys.intent(self.mount_id, self.id)

    @property
    def due_key(self) -> str:
        return keys.due(self.due_at, queue.INTENT, self.mount_id, self.id)

    @property
    def changes(self) -> Changes:
        """Writes the intent and its due entry."""
        return Changes(puts={self.key: self, self.due_key: Due()})

    @property
    def abandonment(self) -> Changes:
        """Gives its objects to the journal, which removes them when it is due."""
        return self.changes | Changes(events=(self.event("abandoned"),))

    def event(self, state: str, reason: str = "") -> IntentChanged:
        return IntentChanged(
            intent_id=self.id, mount_id=self.mount_id, state=state, attempts=self.attempts, reason=reason
        )


def marker(context: Context, intent_id: str) -> str:
    """The name under which everything that an intent makes is found again."""
    return f"{context.marker_prefix}{intent_id}"


async def open_intent(
    context: Context,
    intent_id: str,
    mount_id: str,
    provisioned: Provisioned,
    *,
    until: Instant,
    expects: Mapping[str, int],
    role: str = "",
    more: Changes = NO_CHANGES,
) -> Found[Intent]:
    """Write an intent before the provider is touched. `until`: the deadline of the request that works on it.

    `more` goes into the same commit.

    When it raises, the caller must not touch the provider. If the intent was written all the same, it finds nothing.
    """
    earliest = until + context.settings.request_grace
    intent = Intent(
        id=intent_id,
        mount_id=mount_id,
        provisioned=provisioned,
        made_at=provisioned.made_at,
        last_call_at=earliest,
        due_at=earliest,
        role=role,
    )
    opened = Changes({**expects, intent.key: ABSENT}, {keys.intent_guard(mount_id): IntentGuard(intent_id)})
    event = Changes(events=(intent.event("opened"),))
    version = await context.records.commit(opened | event | intent.changes | more)
    return Found(intent.key, intent, version)


def closing(intent: Found[Intent], state: str = "closed") -> Changes:
    """Removes an intent in the commit that accounts for its objects."""
    return Changes(intent.expected, deletes=(intent.key, intent.record.due_key), events=(intent.record.event(state),))


def abandoned_intent(
    intent_id: str,
    mount_id: str,
    provisioned: Provisioned,
    now: Instant,
    *,
    role: str = "",
    due_at: Instant | None = None,
) -> Intent:
    """An intent for objects that nobody wants any more: it is due at once, unless `due_at` says otherwise.

    `role`: that of the lease that listed them.
    """
    return Intent(
        id=intent_id,
        mount_id=mount_id,
        provisioned=provisioned,
        made_at=now,
        last_call_at=now,
        due_at=now if due_at is None else due_at,
        role=role,
    )


async def abandon(context: Context, intent: Found[Intent], failure: CloudidError | None = None) -> None:
    """Have an intent undone as soon as possible, because its request gives up.

    Never fails, so that the caller can report why the request gave up. An intent that cannot be written now is undone
    when it is due, unless others have undone it already (`look_again`).
    """
    now = await Now()
    abandoned = evolve(intent.record, last_call_at=now, due_at=now)
    with suppress(CloudidError):
        try:
            await context.records.commit(rescheduled(intent, abandoned) | abandoned.abandonment)
        except Conflict:
            if now > intent.record.last_call_at:
                await look_again(context, abandoned, failure)


async def look_again(context: Context, abandoned: Intent, failure: CloudidError | None) -> None:
    """Have objects removed although others may have looked for them already.

    A request on a machine that stood still can call the provider after its time, when nobody looks any more. Does
    nothing if the `failure` is a commit whose outcome is unknown: it may have accounted for the objects.
    """
    found, expects = await context.records.find_for_writing(abandoned.key, Intent)
    may_be_accounted_for = isinstance(failure, Refused) and failure.code is Code.COMMIT_UNRESOLVED
    if found or not may_be_accounted_for:
        replaced = Changes(deletes=(found.record.due_key,)) if found else NO_CHANGES
        await context.records.commit(Changes(expects) | replaced | abandoned.abandonment)


@retry_on_conflict
async def withdraw(context: Context, mount_id: str, intent_id: str) -> None:
    """Have the intent of a closed request undone as soon as possible. The commit that was to account for it conflicts.

    Calls that the request had under way may end later, so it is still looked for until `last_call_at`.
    """
    try:
        found = await find_intent(context, mount_id, intent_id)
    except EntryDamaged:  # no commit that rests on it can have its version
        return
    if found is None:
        return
    now = await Now()
    if now < found.record.due_at:
        changes = rescheduled(found, evolve(found.record, due_at=now))
    else:
        changes = Changes(found.expected, {found.key: found.record})
    await context.records.commit(changes | Changes(events=(found.record.event("abandoned"),)))


async def find_intent(context: Context, mount_id: str, intent_id: str) -> Found[Intent] | None:
    return await context.records.find_fresh(keys.intent(mount_id, intent_id), Intent)


async def undo(job: Job, found: Found[Intent]) -> None:
    """Make one attempt in the background to remove the objects of an abandoned intent.

    Without its mount nobody can: a request on a machine that stood still has abandoned it after the mount was wiped.
    """
    records = job.context.records
    if (await mount_table(records)).record.with_storage(job.mount_id) is None:
        left = Changes(events=(found.record.event("left", MOUNT_GONE),))
        await records.commit(Changes({**job.fence, **found.expected}, deletes=(found.key, found.record.due_key)) | left)
    else:
        await undo_until(job, found, due_at=await queue.retry_at(job, found.record.attempts + 1))


async def undo_until(job: Job, found: Found[Intent], due_at: Instant) -> Removal:
    """Remove the objects of an abandoned intent. The intent stays until they are certainly gone.

    A commit claims the attempt first: a node that lost the leadership does not touch the provider, and the next attempt
    is due at `due_at`, even if this one is interrupted. If this one fails in a request, the next one may be due sooner.
    """
    records, intent = job.context.records, found.record
    claimed = evolve(intent, attempts=intent.attempts + 1, due_at=due_at, reason=UNDER_WAY)
    version = await records.commit(Changes(job.fence) | rescheduled(found, claimed))
    removal = await attempt(job, intent.provisioned, since=intent.last_call_at)
    claim = Found(claimed.key, claimed, version)
    if removal.left.is_empty:
        await records.commit(Changes(job.fence) | closing(claim, "undone"))
    else:
        role = claimed.role if removal.left.may_sign_in else ""
        again = await queue.retry_after(job, claimed.attempts, claimed.due_at, removal.retry_after)
        left = evolve(claimed, provisioned=removal.left, role=role, reason=reason_text(removal), due_at=again)
        failed = Changes(events=(left.event("undoing failed", left.reason),))
        await records.commit(Changes(job.fence) | rescheduled(claim, left) | failed)
    return removal


async def attempt(job: Job, provisioned: Provisioned, *, since: Instant) -> Removal:
    """Try to remove what a record lists. Failures of the provider are part of the answer.

    `since`: when the last call ended, at the latest, that could make any of it.

    A call that Azure refuses is retried inside the attempt only for a request, which waits for the answer. In the
    background the next attempt retries it, so that no lane is occupied meanwhile.
    """
    settled = job.now >= since + job.context.settings.settle_time
    try:
        client = await mount_client(job.context, job.mount_id, job.deadline)
        if provisioned.tenant and provisioned.tenant.lower() != client.tenant.lower():
            return Removal(provisioned, (("mount", Refused(Code.CONFIG_MISSING, OTHER_TENANT)),))
        return await remove(replace(client, returns_later=job.is_in_background), provisioned, settled=settled)
    except CloudidError as failure:
        return Removal(provisioned, (("provider", failure),))


def reason_text(removal: Removal) -> str:
    """Why something is left, as it is stored and shown: as many different reasons as there is room for."""
    text = ""
    for reason in different_reasons(removal.reasons):
        longer = f"{text}{BETWEEN_REASONS}{reason}" if text else reason
        if len(longer) > LONGEST_TEXT:
            break
        text = longer
    return text


def different_reasons(texts: Iterable[str]) -> tuple[str, ...]:
    """The reasons in such texts, each with its step; of those that differ in the ids of requests only, one."""
    reasons = (reason for text in texts if text for reason in text.split(BETWEEN_REASONS))
    told: dict[str, str] = {}
    for reason in reasons:
        told.setdefault(_REQUEST_ID.split(reason, maxsplit=1)[0], reason)
    return tuple(told.values())[:MOST_REASONS]


def rescheduled(found: Found[Intent], changed: Intent) -> Changes:
    """Replaces an intent, and with it its due entry."""
    return Changes(found.expected, deletes=(found.record.due_key,)) | changed.changes
