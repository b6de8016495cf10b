"""The lease as it is stored."""

from __future__ import annotations

from attrs import evolve, frozen

from ..background import queue
from ..background.queue import Due
from ..effects import Instant
from ..foundation.context import Context
from ..provider.provisioned import Provisioned
from ..store import keys
from ..store.records import Found


@frozen(kw_only=True)
class Lease:
    """Credentials on loan. `id` is the path that clients know it by; times are instants.

    `ends_at` is when the provider's secret ends: no renewal goes past it. A lease that is `revoking` waits for its
    objects to be removed, `reason` tells what keeps it; it is listed until they are gone.
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
        return (keys.mount_lease(self.mount_id, self.id), *by_token)

    def is_alive(self, now: Instant) -> bool:
        return not self.revoking and now < self.expires_at

    def puts(self) -> dict[str, object]:
        """Everything that a commit writes for a new lease."""
        return {self.key: self, self.due_key: Due(), **{key: Due() for key in self.index_keys}}

    def deletes(self) -> tuple[str, ...]:
        """Everything that a commit deletes when nothing is left of a lease."""
        return (self.key, self.due_key, self.stuck_key, *self.index_keys)


def rescheduled(old: Lease, new: Lease) -> tuple[dict[str, object], tuple[str, ...]]:
    """What a commit puts and deletes that changes a lease and possibly its due time."""
    puts: dict[str, object] = {new.key: new, new.due_key: Due()}
    return puts, () if old.due_key == new.due_key else (old.due_key,)


def ending(lease: Lease, now: Instant) -> tuple[dict[str, object], tuple[str, ...]]:
    """What a commit puts and deletes that has a lease revoked at once. It no longer hangs on its token then."""
    puts, deletes = rescheduled(lease, evolve(lease, revoking=True, due_at=now))
    untied = (keys.token_lease(lease.token_id, lease.id),) if lease.token_id else ()
    return puts, (*deletes, *untied)


async def find_lease(context: Context, lease_id: str) -> Found[Lease] | None:
    return await context.records.find_fresh(keys.lease(lease_id), Lease)
