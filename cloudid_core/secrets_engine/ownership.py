"""Ownership: which objects in Azure the records of this installation list or use, in all mounts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar

from attrs import frozen

from ..background import Intent
from ..credentials import RootCredential
from ..effects import ListKeys, in_turns
from ..errors import EntryDamaged
from ..forms import effective
from ..leases import Lease
from ..mounts import Mount, mount_table
from ..provider import Provisioned
from ..rotation import HINT_LENGTH, Rotation
from ..routing import Call
from ..store import PAGE, Found, keys
from .inventory import KINDS, Object, ObjectKind
from .roles import Role

T = TypeVar("T")
AT_ONCE: Final = 1000
"""How many records are read before other programs get a turn."""


@frozen(kw_only=True)
class Ownership:
    """What records mention: by id, or by name if the id is unknown.

    `leases`, `roles` and `static_rotations` belong to one mount.
    """

    leases: tuple[Lease, ...]
    roles: Mapping[str, Role]
    static_rotations: tuple[Rotation, ...]
    ids: frozenset[str]
    names: frozenset[tuple[ObjectKind, str]]
    roots: frozenset[str]
    """Client ids with which mounts authenticate."""
    hints: frozenset[tuple[str, str]]
    """Such client ids with the start of the secret in use."""
    damaged: tuple[EntryDamaged, ...]
    """Entries that cannot be read, so that their contents are unknown."""

    def covers(self, one: Object) -> bool:
        """Return whether a record lists an object or uses it. The secret that a mount uses is in no list."""
        if one.id in self.ids or (one.kind, one.name) in self.names:
            return True
        client_id = one.client_id.lower()
        if one.kind is ObjectKind.PASSWORD:
            return client_id in self.roots and (not one.hint or (client_id, one.hint) in self.hints)
        return client_id in self.roots


class Reader:
    """Read records of any kind, and note damaged ones, which are skipped."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._damaged: dict[str, EntryDamaged] = {}

    @property
    def damaged(self) -> tuple[EntryDamaged, ...]:
        return tuple(self._damaged.values())

    async def below(self, prefix: str, form: type[T]) -> list[Found[T]]:
        """Yield all records below a prefix, page by page, as long as the request has time."""
        records: list[Found[T]] = []
        after = ""
        while page := await ListKeys(prefix, after, PAGE):
            await self._call.deadline.remaining()
            found, damaged = await self._call.context.records.find_all_fresh(page, form)
            records += found
            self._damaged |= {each.key: each for each in damaged}
            after = page[-1]
        return records

    async def at(self, key: str, form: type[T]) -> Found[T] | None:
        try:
            return await self._call.context.records.find_fresh(key, form)
        except EntryDamaged as damaged:
            self._damaged[key] = damaged
            return None


async def roles_of(reader: Reader, mount: Mount) -> dict[str, Role]:
    """Yield all roles of an engine, by name."""
    prefix = keys.roles(mount.id)
    return {found.key.removeprefix(prefix): found.record for found in await reader.below(prefix, Role)}


async def read_ownership(call: Call) -> Ownership:
    """Read all records of the installation.

    They were created before Azure was queried, so they account for all its objects.

    Objects move from an intent to a lease or a role, and from there to an intent again, each time in one commit. So
    intents are read first and again at the end, and none is missed.
    """
    reader = Reader(call)
    mounts = (await mount_table(call.context.records)).record.mounts
    before = await _intents(reader, mounts)
    leases = [found.record for found in await reader.below(keys.LEASES, Lease)]
    roles = {
        mount.id: await roles_of(reader, mount)
        for mount in mounts
        if (mount.kind, mount.type) == (call.mount.kind, call.mount.type)
    }
    rotations = [found.record for mount in mounts if (found := await reader.at(keys.rotation(mount.id), Rotation))]
    for mount in mounts:
        rotations += [found.record for found in await reader.below(keys.static_rotations(mount.id), Rotation)]
    configs = [config for mount in mounts if (config := await _config(call, reader, mount))]
    after = await _intents(reader, mounts)
    every_role = [role for by_name in roles.values() for role in by_name.values()]
    held = [
        *(intent.provisioned for intent in (*before, *after)),
        *(lease.provisioned for lease in leases),
        *(provisioned for role in every_role for provisioned in role.held),
    ]
    return Ownership(
        leases=tuple(lease for lease in leases if lease.mount_id == call.mount.id),
        roles=roles[call.mount.id],
        static_rotations=tuple(each for each in rotations if each.role and each.mount_id == call.mount.id),
        ids=frozenset((*await in_turns(held, _ids_of, AT_ONCE), *_other_ids(every_role, rotations))),
        names=frozenset(
            (*await in_turns(held, _names_of, AT_ONCE), *((KINDS[each.proof], each.name) for each in rotations))
        ),
        roots=frozenset(config.client_id.lower() for config in configs) - {""},
        hints=frozenset((config.client_id.lower(), config.client_secret.reveal()[:HINT_LENGTH]) for config in configs),
        damaged=reader.damaged,
    )


def _ids_of(held: Provisioned) -> Iterator[str]:
    yield from (held.application_id, held.principal_id, held.member_id)
    yield from (held.password_on, held.password_key_id)


def _other_ids(roles: Iterable[Role], rotations: Iterable[Rotation]) -> Iterator[str]:
    yield from (role.existing_id for role in roles)
    for rotation in rotations:
        yield rotation.home.object_id
        yield from (key.id for key in rotation.known_keys)


def _names_of(held: Provisioned) -> Iterator[tuple[ObjectKind, str]]:
    """Return the names of objects without a known id. An object with a known id does not protect others with its name.

    The client secret of an app registration has the name of the app registration.
    """
    if not held.application_id:
        yield ObjectKind.APPLICATION, held.unique_name
    if not held.principal_id:
        yield ObjectKind.PRINCIPAL, held.unique_name
    yield ObjectKind.PASSWORD, held.unique_name
    if not held.password_key_id:
        yield KINDS[held.proof], held.password_name


async def _intents(reader: Reader, mounts: Iterable[Mount]) -> list[Intent]:
    return [found.record for mount in mounts for found in await reader.below(keys.intents(mount.id), Intent)]


async def _config(call: Call, reader: Reader, mount: Mount) -> RootCredential | None:
    """Return the effective root credential of a mount, if its type has one."""
    context = call.context
    form = context.components.of(mount).config
    if form is None:
        return None
    found = await reader.at(keys.config(mount.id), form)
    return effective(found.record if found else form(), context.settings.environment)
