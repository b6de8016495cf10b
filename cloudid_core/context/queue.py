"""What must happen later: entries in queues that are sorted by time, and the work that they stand for.

A record that has something due knows its `due_at`, and every commit that changes one writes the other with it: there is
exactly one due entry for each such record, and it is found from the record. An entry that no record knows is dropped.

There is a queue for each mount and kind of work, so that a backlog in one never hides what waits in another.
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
    """The value of a due entry: nothing but its name matters."""


@frozen(kw_only=True)
class Job:
    """One piece of background work that is due. Every commit of it expects `fence`: this node must still lead."""

    context: Context
    key: str
    """The due entry; empty: a request does the work itself."""
    mount_id: str
    ref: str
    now: Instant
    deadline: Deadline
    fence: Mapping[str, int]

    @property
    def is_in_background(self) -> bool:
        return bool(self.key)


def is_named(key: str) -> bool:
    """Whether a key is the name of a due entry, as this service writes them."""
    return _KEY.fullmatch(key) is not None


def parse(key: str) -> tuple[Instant, str, str, str]:
    """Time, kind, mount id and reference of a due entry's key, which `is_named`."""
    mount_id, kind, instant, ref = key.removeprefix(keys.DUE).split("/", 3)
    return int(instant) / 1000, kind, mount_id, ref


async def retry_at(job: Job, attempts: int) -> Instant:
    """When to try again after a number of attempts."""
    return job.now + await PAUSES.draw(attempts)


async def retry_after(job: Job, attempts: int, due_at: Instant, seconds: float | None) -> Instant:
    """When to try again after an attempt that failed: at `due_at`, unless Azure asked to wait longer.

    An attempt of a request is claimed until the request is certainly over. Once it has failed, the background need not
    wait so long.
    """
    if not job.is_in_background:
        due_at = min(due_at, await Now() + await PAUSES.draw(attempts))
    if seconds is None:
        return due_at
    return max(due_at, await Now() + min(seconds, PAUSES.longest))


async def drop(job: Job, record_key: str, found: Found[Any] | None) -> None:
    """Delete a due entry that its record, as it was found, does not know."""
    await job.context.records.commit(Changes({**job.fence, **expected(found, record_key)}, deletes=(job.key,)))
