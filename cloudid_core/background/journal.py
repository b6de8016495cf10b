"""The journal records objects in Azure before the first call that could create them.

An intent lists every object that is about to be created. The commit that takes ownership of the objects (for a lease or
a role) removes the intent. If the intent still exists when its request must have ended, it is undone: its objects are
deleted. They are looked for until the settle time has passed, because Azure may show a new object late.
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
"""Maximum number of different reasons that are reported for all remaining objects together."""
LONGEST_TEXT: Final = 6 * REASON_LIMIT
"""Maximum length of all reasons together, in characters."""
_REQUEST_ID: Final = re.compile(r" \((?:client )?request ")
UNDER_WAY: Final = "an attempt is running or was interrupted"
MOUNT_GONE: Final = (
    "its mount was deleted: reconcile another mount of the tenant to find objects that were created late"
)
OTHER_TENANT: Final = "it is in a tenant for which the mount is no longer configured"


@frozen
class IntentGuard:
    """Written with every new intent. A commit that depends on there being no new intent expects its version."""

    latest: str
    """The id of the latest intent."""


@frozen(kw_only=True)
class Intent:
    """Objects that may exist in Azure although no record owns them yet."""

    id: str
    mount_id: str
    provisioned: Provisioned
    made_at: Instant
    last_call_at: Instant
    """The latest time at which a call that could create one of them ends."""
    due_at: Instant
    role: str = ""
    """The role of the lease that will own them, or did. Empty: they do not belong to a lease."""
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
        """Return the change that writes the intent and its queue entry."""
        return Changes(puts={self.key: self, self.due_key: Due()})

    @property
    def abandonment(self) -> Changes:
        """Return the change that passes its objects to the journal, which removes them when the intent is due."""
        return self.changes | Changes(events=(self.event("abandoned"),))

    def event(self, state: str, reason: str = "") -> IntentChanged:
        return IntentChanged(
            intent_id=self.id, mount_id=self.mount_id, state=state, attempts=self.attempts, reason=reason
        )


def marker(context: Context, intent_id: str) -> str:
    """Return the name by which all objects of the intent can be found."""
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
    """Write an intent before the first call to Azure. `until` is the deadline of the request.

    The same commit includes `more`.

    If this raises, the caller must not call Azure. If the intent was written anyway, its objects are looked for and not
    found.
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
    """Return the change that removes an intent, for the commit that takes ownership of its objects."""
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
    """Return an intent for objects that are no longer needed. It is due immediately, or at `due_at`.

    `role` is the role of the lease that listed them.
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
    """Schedule an intent to be undone as soon as possible, because its request gives up.

    This never fails, so that the caller can report why the request gave up. If the intent cannot be written now, it is
    undone when it is due, unless another node has undone it already (`look_again`).
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
    """Schedule objects for removal even if others may have looked for them already.

    If a machine was suspended, its request can call Azure after its deadline, when no other node looks any more. Does
    nothing if the `failure` is a commit with an unknown outcome, because it may have taken ownership of the objects.
    """
    found, expects = await context.records.find_for_writing(abandoned.key, Intent)
    may_be_accounted_for = isinstance(failure, Refused) and failure.code is Code.COMMIT_UNRESOLVED
    if found or not may_be_accounted_for:
        replaced = Changes(deletes=(found.record.due_key,)) if found else NO_CHANGES
        await context.records.commit(Changes(expects) | replaced | abandoned.abandonment)


@retry_on_conflict
async def withdraw(context: Context, mount_id: str, intent_id: str) -> None:
    """Schedule the intent of a closed request to be undone as soon as possible.

    The commit that would own its objects conflicts.

    Pending calls of the request may end later, so its objects are looked for until `last_call_at`.
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
    """Try once in the background to remove the objects of an abandoned intent.

    Nothing can be removed without the mount. This happens if a machine was suspended, and its request abandoned the
    intent after the mount was wiped.
    """
    records = job.context.records
    if (await mount_table(records)).record.with_storage(job.mount_id) is None:
        left = Changes(events=(found.record.event("left", MOUNT_GONE),))
        await records.commit(Changes({**job.fence, **found.expected}, deletes=(found.key, found.record.due_key)) | left)
    else:
        await undo_until(job, found, due_at=await queue.retry_at(job, found.record.attempts + 1))


async def undo_until(job: Job, found: Found[Intent], due_at: Instant) -> Removal:
    """Remove the objects of an abandoned intent. The intent stays until they are definitely gone.

    A commit claims the attempt first, so a node that lost the leadership does not call Azure. The next attempt is due
    at `due_at`, even if this one is interrupted. If this one fails in a request, the next one may be due sooner.
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
    """Try to remove the objects in a record. Failures of Azure are part of the result.

    `since` is the latest time at which a call that could create one of them ended.

    Calls that Azure refuses are retried within the attempt only for a request, because it waits for the result. In the
    background, the next attempt retries them, so that no lane is blocked.
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
    """Return why objects remain, as text to store and show, with as many different reasons as fit."""
    text = ""
    for reason in different_reasons(removal.reasons):
        longer = f"{text}{BETWEEN_REASONS}{reason}" if text else reason
        if len(longer) > LONGEST_TEXT:
            break
        text = longer
    return text


def different_reasons(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the reasons in these texts with their steps, without those that differ only in request ids."""
    reasons = (reason for text in texts if text for reason in text.split(BETWEEN_REASONS))
    told: dict[str, str] = {}
    for reason in reasons:
        told.setdefault(_REQUEST_ID.split(reason, maxsplit=1)[0], reason)
    return tuple(told.values())[:MOST_REASONS]


def rescheduled(found: Found[Intent], changed: Intent) -> Changes:
    """Return the change that replaces an intent and its queue entry."""
    return Changes(found.expected, deletes=(found.record.due_key,)) | changed.changes
