"""Trouble that goes on in the background: what fails again and again at the provider, and what soon ends.

Each is a row like those of the stored rules: a problem of health, and what finds its occurrences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from ..effects import ListKeys, Now
from ..errors import EntryDamaged
from ..health import SEVERAL, HealthProblem, Occurrence
from ..issuer import unpublished
from ..leases import Lease
from ..provider import outdated_tenants
from ..rotation import credential_risks, secret_risks
from ..store import keys
from .stored_rules import PAGE, Stored, StoredRule

MOST_COUNTED: Final = 1000
"""How many leases are read to count those whose revocation fails."""


async def credentials_at_risk(stored: Stored) -> Sequence[Occurrence]:
    """Root credentials that cannot be used, are not rotated, or end soon."""
    now = await Now()
    found: list[Occurrence] = []
    for mount, config in await stored.configurations():
        with suppress(EntryDamaged):
            risks = await credential_risks(stored.context, mount, config, now)
            found += [{"mount": mount.path, "reason": risk} for risk in risks]
    return found


async def static_secrets_at_risk(stored: Stored) -> Sequence[Occurrence]:
    """Static roles whose secrets are not there yet, are not rotated, or end soon."""
    now = await Now()
    found: list[Occurrence] = []
    for mount in stored.table.live:
        for role in await stored.context.records.names(keys.static_roles(mount.id)):
            with suppress(EntryDamaged):
                risks = await secret_risks(stored.context, mount, role, now)
                found += [{"mount": mount.path, "role": role, "reason": risk} for risk in risks]
    return found


async def failing_revocations(stored: Stored) -> Sequence[Occurrence]:
    """Mounts with leases whose revocation has failed several times, retired ones included."""
    listed = await ListKeys(keys.STUCK, "", MOST_COUNTED)
    parts = [key.removeprefix(keys.STUCK).partition("/") for key in listed]
    counts: Counter[str] = Counter()
    for start in range(0, len(parts), PAGE):
        leases = [keys.lease(lease_id) for _, _, lease_id in parts[start : start + PAGE]]
        for lease in await stored.context.records.find_undamaged(leases, Lease):
            counts[lease.record.mount_id] += lease.record.attempts >= SEVERAL
    mounts = {mount_id: stored.table.with_storage(mount_id) for mount_id in counts}
    return [
        {"mount": mount.path, "count": str(counts[mount_id])}
        for mount_id, mount in mounts.items()
        if mount is not None and counts[mount_id]
    ]


async def outdated_signing_keys(stored: Stored) -> Sequence[Occurrence]:
    """Tenants whose signing keys could not be refreshed for several hours."""
    tenants = outdated_tenants(stored.context.caches, await Now())
    return [{"tenant": tenant, "reason": code.wire} for tenant, code in tenants.items()]


TROUBLES: Final = (
    StoredRule(HealthProblem.CREDENTIAL_AT_RISK, credentials_at_risk),
    StoredRule(HealthProblem.STATIC_SECRET_AT_RISK, static_secrets_at_risk),
    StoredRule(HealthProblem.REVOCATIONS_FAILING, failing_revocations),
    StoredRule(HealthProblem.SIGNING_KEYS_OUTDATED, outdated_signing_keys),
    StoredRule(HealthProblem.ISSUER_UNPUBLISHED, lambda stored: unpublished(stored.context)),
)
"""All trouble that health tells, and what finds it."""
