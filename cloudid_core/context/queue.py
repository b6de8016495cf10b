"""Scheduled work: entries in queues that are sorted by time.

A record with scheduled work stores its `due_at`, and every commit that changes it also writes its queue entry. So each
such record has exactly one entry, which can be found from the record. An entry that no record refers to is dropped.

There is a queue for each mount and kind of work, so that a backlog in one does not block the others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from attrs import frozen

from ..backoff import Backoff
from ..deadline import Deadline
from ..effects import Instant, Now
from ..store import Changes, Found, expected, keys
from .context import Context

LEASE: Final = "lease"
INTENT: Final = "intent"
TOKEN: Final = "token"
ROTATION: Final = "rotation"
MOUNT: Final = "mount"
ROTATION_PLAN: Final = "rotation-plan"
SIGNING_KEY: Final = "signing-key"
PUBLICATION: Final = "publication"
AUDIENCE: Final = "audience"
TIDY: Final = "tidy"
KINDS: Final = (LEASE, INTENT, TOKEN, ROTATION, MOUNT, ROTATION_PLAN, SIGNING_KEY, PUBLICATION, AUDIENCE, TIDY)

NO_FENCE: Final[Mapping[str, int]] = MappingProxyType({})
"""What a commit of a request expects of the leadership: nothing."""

_KEY: Final = re.compile(rf"{keys.DUE}[^/]+/[^/]+/[0-9]{{13}}/.*", re.DOTALL)
PAUSES: Final = Backoff(first=2.0, longest=3600.0, spread=(0.5, 1.5))


@frozen
class Due:
    """The value of a queue entry, of which only the name matters."""


@frozen(kw_only=True)
class Job:
    """One piece of scheduled work.

    Its commits expect `fence`, so that only the node that does the background work makes them.
    """

    context: Context
    key: str
    """The queue entry. Empty: a request does the work itself."""
    mount_id: str
    ref: str
    now: Instant
    deadline: Deadline
    fence: Mapping[str, int]

    @property
    def is_in_background(self) -> bool:
        return bool(self.key)


def is_named(key: str) -> bool:
    """Return whether a key is the name of a queue entry of this service."""
    return _KEY.fullmatch(key) is not None


def parse(key: str) -> tuple[Instant, str, str, str]:
    """Return time, kind, mount id and reference from the key of a queue entry, for which `is_named` holds."""
    mount_id, kind, instant, ref = key.removeprefix(keys.DUE).split("/", 3)
    return int(instant) / 1000, kind, mount_id, ref


async def retry_at(job: Job, attempts: int) -> Instant:
    """Return when to retry after a number of attempts."""
    return job.now + await PAUSES.draw(attempts)


async def retry_after(job: Job, attempts: int, due_at: Instant, seconds: float | None) -> Instant:
    """Return when to retry after a failed attempt: at `due_at`, unless Azure requested a longer pause.

    The attempt of a request is claimed until the request must have ended. Once it has failed, the background work need
    not wait that long.
    """
    if not job.is_in_background:
        due_at = min(due_at, await Now() + await PAUSES.draw(attempts))
    if seconds is None:
        return due_at
    return max(due_at, await Now() + min(seconds, PAUSES.longest))


async def drop(job: Job, record_key: str, found: Found[Any] | None) -> None:
    """Delete a queue entry that its record does not refer to."""
    await job.context.records.commit(Changes({**job.fence, **expected(found, record_key)}, deletes=(job.key,)))
