"""Sign-in audiences: close app registrations once that earlier releases left open to every tenant.

Earlier releases sent no audience if a role has none. Azure then opens the registration to every tenant and to personal
accounts. Each node looks for such registrations when it starts, and schedules work for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from attrs import evolve

from ..background import OTHER_TENANT
from ..context import Context, Due, Job, queue
from ..effects import ListKeys, Now, give_way
from ..errors import CloudidError, Code, Conflict, Refused
from ..leases import Lease, find_lease
from ..mounts import Mount, mount_table
from ..provider import Provisioned, change_audience
from ..routing import mount_client
from ..store import NO_CHANGES, Changes, Found, keys
from .provisioning import provider_spelling
from .roles import Role, find_role

T = TypeVar("T", Lease, Role)
PAGE: Final = 80
MOST_COUNTED: Final = 1000
RETRY_INTERVAL: Final = 300.0
ROLE_PREFIX: Final = "roles/"


def _is_open(made: Provisioned) -> bool:
    return bool(made.application_id and not made.audience)


def _is_open_role(role: Role) -> bool:
    return role.persistent_app is not None and _is_open(role.persistent_app.provisioned)


async def find_open_audiences(context: Context) -> None:
    """Schedule work for each app registration without a recorded audience, unless it is already scheduled."""
    for mount in (await mount_table(context.records)).record.live:
        waiting = {queue.parse(key)[3] for key in await _all_keys(keys.due_queue(mount.id, queue.AUDIENCE))}
        prefix = keys.mount_leases(mount.id)
        lease_ids = [key.removeprefix(prefix) for key in await _all_keys(prefix)]
        leases = {lease_id: keys.lease(lease_id) for lease_id in lease_ids}
        refs = await _open(context, leases, Lease, lambda lease: not lease.revoking and _is_open(lease.provisioned))
        names = await context.records.names(keys.roles(mount.id))
        roles = {f"{ROLE_PREFIX}{name}": keys.role(mount.id, name) for name in names}
        refs += await _open(context, roles, Role, _is_open_role)
        now = await Now()
        missing = [keys.due(now, queue.AUDIENCE, mount.id, ref) for ref in refs if ref not in waiting]
        for start in range(0, len(missing), PAGE):
            await context.records.commit(Changes(puts=dict.fromkeys(missing[start : start + PAGE], Due())))


async def _open(context: Context, entries: dict[str, str], form: type[T], is_open: Callable[[T], bool]) -> list[str]:
    """Return the references of the open ones among those entries."""
    refs, found = list(entries), []
    for start in range(0, len(refs), PAGE):
        page = {entries[ref]: ref for ref in refs[start : start + PAGE]}
        records: Iterable[Found[T]] = await context.records.find_undamaged(list(page), form)
        found += [page[each.key] for each in records if is_open(each.record)]
        await give_way()
    return found


async def _all_keys(prefix: str) -> list[str]:
    found: list[str] = []
    while page := await ListKeys(prefix, found[-1] if found else "", PAGE):
        found += page
    return found


async def count_open_audiences(mount: Mount) -> int:
    """Count the app registrations of a mount that are still open, up to `MOST_COUNTED`."""
    return len(await ListKeys(keys.due_queue(mount.id, queue.AUDIENCE), "", MOST_COUNTED))


async def close_audience(job: Job) -> None:
    """Give one app registration the audience that its role currently has. A failure is retried later."""
    changes = Changes(job.fence, deletes=(job.key,))
    mount = (await mount_table(job.context.records)).record.by_id.get(job.mount_id)
    if mount is None:
        await job.context.records.commit(changes)
        return
    try:
        is_role = job.ref.startswith(ROLE_PREFIX)
        changes |= await (_close_role(job, mount) if is_role else _close_lease(job, mount))
    except Conflict:
        raise
    except CloudidError:  # health counts it until it succeeds
        changes |= Changes(puts={keys.due(job.now + RETRY_INTERVAL, queue.AUDIENCE, job.mount_id, job.ref): Due()})
    await job.context.records.commit(changes)


async def _close_lease(job: Job, mount: Mount) -> Changes:
    found = await find_lease(job.context, job.ref)
    if found is None or found.record.revoking or not _is_open(found.record.provisioned):
        return NO_CHANGES
    role = await find_role(job.context, mount, found.record.role)
    closed = await _close(job, found.record.provisioned, role.record.sign_in_audience if role else "")
    return Changes(found.expected, {found.key: evolve(found.record, provisioned=closed)})


async def _close_role(job: Job, mount: Mount) -> Changes:
    found = await job.context.records.find_fresh(keys.role(mount.id, job.ref.removeprefix(ROLE_PREFIX)), Role)
    kept = found.record.persistent_app if found else None
    if found is None or kept is None or not _is_open(kept.provisioned):
        return NO_CHANGES
    closed = evolve(kept, provisioned=await _close(job, kept.provisioned, kept.sign_in_audience))
    return Changes(found.expected, {found.key: evolve(found.record, persistent_app=closed)})


async def _close(job: Job, made: Provisioned, asked: str) -> Provisioned:
    """Set the audience in Azure. A deleted app registration needs none."""
    client, audience = await mount_client(job.context, job.mount_id, job.deadline), provider_spelling(asked)
    if made.tenant and made.tenant.lower() != client.tenant.lower():
        raise Refused(Code.CONFIG_MISSING, OTHER_TENANT)
    await change_audience(client, made.application_id, audience)
    return evolve(made, audience=audience)
