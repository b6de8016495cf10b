"""The app registrations with which mounts authenticate, and the roles that use such an app registration."""

from __future__ import annotations

from collections.abc import Mapping, Set
from contextlib import suppress
from typing import Final

from attrs import evolve, frozen

from ..background import Intent
from ..context import Context, Due
from ..credentials import RootCredential, credentials_of
from ..effects import ABSENT, Instant, ListKeys, Now
from ..errors import EntryDamaged, Refused
from ..forms import effective
from ..mounts import Mount, mount_table
from ..provider import Identities, Proofs, Source, identities_for_writing
from ..store import Changes, keys, retry_on_conflict
from .record import find_undamaged_rotation
from .root import find_root

PAGE: Final = 80
"""How many entries are read at a time, or written by one commit; see `MOST_COMMITTED`."""
MOST_COUNTED: Final = 100
"""How many of the roles that are refused are found."""


@frozen
class SelfTarget:
    """A stored role whose credentials are refused: it uses an app registration with which the service authenticates."""

    mount: Mount
    role: str
    client_id: str

    @property
    def path(self) -> str:
        """Where the role is written, below the mount. The name of a static one says so."""
        return self.role if "/" in self.role else f"roles/{self.role}"


async def proofs_of(
    context: Context, mount: Mount, config: RootCredential | None, before: Proofs, now: Instant
) -> Proofs:
    """Return the client ids of a mount once it has a configuration (`None`: it has none)."""
    form = context.components.of(mount).config or RootCredential
    used = effective(config or form(), context.settings.environment)
    current = _ids(used.client_id)
    is_of_platform = credentials_of(context, mount, used).source is Source.MANAGED_IDENTITY
    return Proofs(
        current=current,
        platform=before.platform if is_of_platform else (),
        former=await _former(context, mount, current, now),
    )


async def rewritten(context: Context, mount: Mount, config: RootCredential | None, now: Instant) -> Changes:
    """Goes with every commit that changes a configuration."""
    identities, expects = await identities_for_writing(context.records)
    proofs = await proofs_of(context, mount, config, identities.of(mount.id), now)
    return Changes(expects, {keys.IDENTITIES: identities.having(mount.id, proofs)})


async def self_targets(context: Context, mount_id: str = "") -> list[SelfTarget]:
    """Return stored roles that use an app registration with which a mount (or any) authenticates, up to `MOST_COUNTED`.

    One listing for each such application: no role is read that does not point at one.
    """
    identities, _ = await identities_for_writing(context.records)
    if mount_id:
        identities = identities.of_mounts((mount_id,))
    targets: list[SelfTarget] = []
    for client_id in sorted(identities.client_ids):
        targets += await roles_pointing_at(context, client_id, MOST_COUNTED - len(targets))
    return targets


@retry_on_conflict
async def keep_identities(context: Context) -> None:
    """Have every mount's identities on record, with what the environment of this node makes of them.

    Earlier stores have no record, and no index of the roles that issue secrets of an existing app registration.
    """
    identities, expects = await identities_for_writing(context.records)
    if is_new := expects[keys.IDENTITIES] == ABSENT:
        await _index_roles(context)
    kept = await _kept(context, identities)
    if is_new or kept != identities:
        await context.records.commit(Changes(expects, {keys.IDENTITIES: kept}))


async def _kept(context: Context, identities: Identities) -> Identities:
    mounts = (await mount_table(context.records)).record.mounts
    kept, now = identities.of_mounts(mount.id for mount in mounts), await Now()
    for mount in mounts:
        if context.components.of(mount).config is None:
            continue
        with suppress(EntryDamaged, Refused):  # the operator has to rewrite it, or a variable
            before = identities.of(mount.id)
            root = await find_root(context, mount)
            proofs = await proofs_of(context, mount, root.record if root else None, before, now)
            current = tuple(dict.fromkeys((*before.current, *proofs.current)))  # other nodes have other variables
            kept = kept.having(mount.id, evolve(proofs, current=current, platform=before.platform))
    return kept


async def _former(context: Context, mount: Mount, current: tuple[str, ...], now: Instant) -> tuple[str, ...]:
    """Return former app registrations of a mount that may still have client secrets from its rotations."""
    homes: set[str] = set()
    found = await find_undamaged_rotation(context, mount.id)
    if found is not None and (not found.record.is_idle or found.record.has_living_key(now)):
        homes.add(found.record.home.client_id)
    abandoned = await ListKeys(f"{keys.intents(mount.id)}rotation-", "", PAGE)
    intents = await context.records.find_undamaged(abandoned, Intent) if abandoned else []
    homes.update(intent.record.provisioned.client_id for intent in intents)
    return tuple(sorted({client_id for home in homes for client_id in _ids(home)} - {*current}))


def _ids(client_id: str) -> tuple[str, ...]:
    return (client_id.lower(),) if client_id else ()


async def roles_pointing_at(context: Context, client_id: str, most: int = MOST_COUNTED) -> list[SelfTarget]:
    """Return the stored roles that issue secrets of an app registration.

    The index may be outdated, so they are read.
    """
    mounts = (await mount_table(context.records)).record.by_id
    prefix, after = keys.targets(client_id), ""
    targets: list[SelfTarget] = []
    while len(targets) < most and (page := await ListKeys(prefix, after, PAGE)):
        after = page[-1]
        for key in page:
            mount_id, _, role = key.removeprefix(prefix).partition("/")
            if mount_id in mounts and await _target(context, mounts[mount_id], role) == client_id.lower():
                targets.append(SelfTarget(mounts[mount_id], role, client_id))
    return targets[:most]


async def roles_by_target(context: Context) -> Mapping[str, Set[str]]:
    """Return the keys of the index of roles, by the prefix `keys.targets` of their app registration.

    This is one listing for all app registrations. The index may be outdated: `roles_pointing_at` reads the roles.
    """
    found: dict[str, set[str]] = {}
    for name in await context.records.names(keys.TARGETS):
        found.setdefault(f"{keys.TARGETS}{name.partition('/')[0]}/", set()).add(f"{keys.TARGETS}{name}")
    return found


async def _target(context: Context, mount: Mount, role: str) -> str:
    try:
        return (await context.components.of(mount).target(context, mount, role)).lower()
    except EntryDamaged:
        return ""


async def _index_roles(context: Context) -> None:
    """Write the index of all roles that issue secrets of an existing app registration."""
    for mount in (await mount_table(context.records)).record.live:
        names = await context.records.names(keys.roles(mount.id))
        for start in range(0, len(names), PAGE):
            found = [(role, await _target(context, mount, role)) for role in names[start : start + PAGE]]
            page = [keys.target(client_id, mount.id, role) for role, client_id in found if client_id]
            if page:
                await context.records.commit(Changes(puts=dict.fromkeys(page, Due())))
