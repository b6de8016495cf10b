"""Leases: credentials for a limited time. They end when they expire, are revoked, or their token ends."""

from .record import LEASES_AT_ONCE, Lease, find_lease, find_undamaged_leases, rescheduled
from .retirement import Remains, drop_remains, remove_now, retire, try_at_once, what_remains, wipe_mount
from .revocation import end_intent, end_lease, end_lease_when_due, end_leases, end_token, forget_lease
from .scope import Scope, count_leases, find_moved, local_path, next_level, scopes_of
from .synchronous import REASONS, Attempts, due_after, revoke_one
