"""The stored form of a lease."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from attrs import evolve, frozen

from ..context import Context, Due, queue
from ..effects import MOST_COMMITTED, Instant
from ..events import LeaseChanged
from ..provider import Provisioned, Rights
from ..store import Changes, Found, keys

MOST_ENTRIES_OF_A_LEASE: Final = 6
"""The lease, its due entry, the note that it is stuck, and three index entries."""

LEASES_AT_ONCE: Final = MOST_COMMITTED // MOST_ENTRIES_OF_A_LEASE - 1
"""How many leases one commit changes at most: it also names what its caller expects."""


@frozen(kw_only=True)
class Lease:
    """Credentials for a limited time. `id` is the path by which clients know it; times are instants.

    `ends_at` is when the credentials expire in Azure, and no renewal exceeds it. A lease that is `revoking` is listed
    until its objects are removed; `reason` says why they are not.
    """

    id: str
    mount_id: str
    role: str
    token_id: str
    provisioned: Provisioned
    issued_at: Instant
    expires_at: Instant
    ends_at: Instant
    due_at: Instant
    batch_mount_id: str = ""
    """The mount of the batch token, without a parent, that requested it. The lease ends with that mount."""
    batch_holder: str = ""
    """The holder in that case, as in `Token.batch_holder`. Empty in leases of earlier releases."""
    rights: Rights | None = None
    """The rights of the credentials when they were issued, if the app registration is shared.

    Otherwise, `provisioned` contains them. `None` in leases of earlier releases.
    """
    last_renewal: Instant | None = None
    revoking: bool = False
    attempts: int = 0
    reason: str = ""

    @property
    def key(self) -> str:
        return keys.lease(self.id)

    @property
    def due_key(self) -> str:
        return keys.due(self.due_at, queue.LEASE, self.mount_id, self.id)

    @property
    def stuck_key(self) -> str:
        return keys.stuck(self.mount_id, self.id)

    @property
    def index_keys(self) -> tuple[str, ...]:
        by_token = (keys.token_lease(self.token_id, self.id),) if self.token_id else ()
        by_mount = (keys.batch_lease(self.batch_mount_id, self.id),) if self.batch_mount_id else ()
        return (keys.mount_lease(self.mount_id, self.id), *by_token, *by_mount)

    def is_alive(self, now: Instant) -> bool:
        return not self.revoking and now < self.expires_at

    @property
    def creation(self) -> Changes:
        """Return the change that writes a new lease with its queue entry and indexes."""
        puts = {self.key: self, self.due_key: Due(), **{key: Due() for key in self.index_keys}}
        return Changes(puts=puts, events=(self.event("issued"),))

    @property
    def removal(self) -> Changes:
        """Return the change that deletes a lease with everything that belongs to it."""
        keys_of_lease = (self.key, self.due_key, self.stuck_key, *self.index_keys)
        return Changes(deletes=keys_of_lease, events=(self.event("revoked"),))

    def event(self, state: str, reason: str = "") -> LeaseChanged:
        return LeaseChanged(
            lease_id=self.id, mount_id=self.mount_id, state=state, attempts=self.attempts, reason=reason
        )


def rescheduled(found: Found[Lease], changed: Lease) -> Changes:
    """Return the change that replaces a lease and its queue entry."""
    puts = {changed.key: changed, changed.due_key: Due()}
    return Changes(found.expected, puts) | Changes(deletes=(found.record.due_key,))


def ending(found: Found[Lease], due_at: Instant) -> Changes:
    """Return the lease with a scheduled revocation. It no longer ends with its token, and cannot be renewed."""
    lease = found.record
    return rescheduled(found, evolve(lease, revoking=True, due_at=due_at)) | revoking(lease)


def revoking(lease: Lease) -> Changes:
    """Return the lease as every commit writes it that starts a revocation.

    The lease no longer ends with its token, and an event is recorded.
    """
    untied = (keys.token_lease(lease.token_id, lease.id),) if lease.token_id else ()
    return Changes(deletes=untied, events=() if lease.revoking else (lease.event("revoking"),))


async def find_undamaged_leases(context: Context, lease_ids: Iterable[str]) -> list[Found[Lease]]:
    """Return the existing leases, skipping damaged ones."""
    return await context.records.find_undamaged([keys.lease(lease_id) for lease_id in lease_ids], Lease)


async def find_lease(context: Context, lease_id: str) -> Found[Lease] | None:
    return await context.records.find_fresh(keys.lease(lease_id), Lease)
