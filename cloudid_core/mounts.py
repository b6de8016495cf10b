"""Mounts: which component answers below which path.

The whole table is one record: it is small, every request needs it, and one version of it is what a commit rests on.
A mount's storage is keyed by its id: a move keeps its data, a new mount at an old path starts empty.

A mount that was disabled is retired: it answers no requests, and its path is free. It stays in the table until its
leases are revoked, which needs its configuration, and its storage is wiped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Final

import msgspec
from attrs import evolve, field, frozen

from .audit import Device
from .effects import Instant
from .errors import Code, Conflict, Refused
from .events import DeviceChanged, Event, MountChanged
from .settings import Settings
from .store import Changes, Found, Records, keys, retry_on_conflict
from .values import fold

AUTH: Final = "auth"
SECRET: Final = "secret"
LIMIT: Final = 1000
MOVES_KEPT: Final = 32
CORRELATION_ID: Final = "X-Correlation-Id"
"""The request header that audit entries of a new installation have."""
TYPE_ALIASES: Final[Mapping[str, str]] = {"azure": "cloud"}
"""Other names of types, as existing clients spell them."""
ID_BYTES: Final = 16
"""How many random bytes a mount is made of."""
MOUNT_BYTES: Final = 2 * ID_BYTES
"""How many random bytes the default mounts are made of."""


@frozen(kw_only=True)
class Mount:
    """One mounted component. `path` has no slash at either end; `kind` is `auth` or `secret`.

    Where its type was given by another name, `type_alias` is that name. Lifetimes are in seconds; 0: the service's.
    """

    id: str
    path: str
    kind: str
    type: str
    accessor: str
    description: str = ""
    default_lease_ttl: int = 0
    max_lease_ttl: int = 0
    max_leases: int = 0
    """Most leases at a time; 0: without limit."""
    token_type: str = "default-service"
    listing_visibility: str = ""
    options: Mapping[str, str] | None = None
    type_alias: str = ""
    audit_non_hmac_request_keys: tuple[str, ...] = ()
    audit_non_hmac_response_keys: tuple[str, ...] = ()
    passthrough_request_headers: tuple[str, ...] = ()
    allowed_response_headers: tuple[str, ...] = ()
    plugin_version: str = ""
    identity_token_key: str = ""
    retired_at: Instant | None = None

    @property
    def shown_type(self) -> str:
        """The type by the name that it was given when the mount was made."""
        return self.type_alias or self.type

    def default_ttl(self, settings: Settings) -> int:
        """The TTL of what is issued here when nothing else says: seconds."""
        return min(self.default_lease_ttl or settings.default_lease_ttl, self.max_ttl(settings))

    def max_ttl(self, settings: Settings) -> int:
        """The longest life of what is issued here: seconds."""
        return self.max_lease_ttl or settings.max_lease_ttl


SYSTEM: Final = Mount(id="sys", path="sys", kind=SECRET, type="system", accessor="system_00000000")
TOKEN: Final = Mount(id="token", path="auth/token", kind=AUTH, type="token", accessor="auth_token_00000000")
IDENTITY: Final = Mount(id="identity", path="identity", kind=SECRET, type="identity", accessor="identity_00000000")
BUILT_IN: Final = (SYSTEM, TOKEN, IDENTITY)
"""Always there, and never changed."""
RESERVED: Final = frozenset({"sys", "auth", "audit", "identity", "cubbyhole"})
"""No secrets engine is below these; below `auth` are the authentication methods."""


@frozen
class Move:
    """A mount that was given another path."""

    id: str
    source: str
    target: str


@frozen(slots=False)  # slots and cached properties take a `__getattr__`, which slows all down
class MountTable:
    """All mounts that were made and not wiped, the last few moves, and what audit is done with."""

    mounts: tuple[Mount, ...] = ()
    moves: tuple[Move, ...] = ()
    devices: tuple[Device, ...] = ()
    """The audit devices, also those that are suspended. They are here because every request needs them, and every
    commit of a login expects them."""
    audit_key: str = field(default="", repr=False)
    """64 hexadecimal digits that all devices share, once there is one."""
    audited_headers: dict[str, bool] = field(factory=dict[str, bool], repr=False)
    """The request headers that go on record, by names as they were written, and whether their values are hashed."""

    @cached_property
    def recorded_headers(self) -> Mapping[str, bool]:
        """The audited headers by names in lower case, as requests have them."""
        return {name.lower(): is_hashed for name, is_hashed in self.audited_headers.items()}

    @cached_property
    def suspended_devices(self) -> tuple[Device, ...]:
        """The audit devices of requests whose names the settings have given to others."""
        declared = {device.name for device in self.devices if device.declared}
        return tuple(device for device in self.devices if device.name in declared and not device.declared)

    @cached_property
    def used_devices(self) -> tuple[Device, ...]:
        """The audit devices that are not suspended: no two have one name."""
        return tuple(device for device in self.devices if device not in self.suspended_devices)

    @cached_property
    def entry_devices(self) -> tuple[Device, ...]:
        """The audit devices that take entries of requests."""
        return tuple(device for device in self.used_devices if device.takes_entries)

    @cached_property
    def live(self) -> tuple[Mount, ...]:
        """The mounts that answer, built-in ones first."""
        return (*BUILT_IN, *(mount for mount in self.mounts if mount.retired_at is None))

    @cached_property
    def by_path(self) -> Mapping[str, Mount]:
        return {mount.path: mount for mount in self.live}

    @cached_property
    def _behind_longest(self) -> int:
        """Where the slash behind the longest path of a mount stands, and one more."""
        return max(map(len, self.by_path)) + 1

    @cached_property
    def by_id(self) -> Mapping[str, Mount]:
        return {mount.id: mount for mount in self.live}

    @cached_property
    def retired(self) -> Mapping[str, Mount]:
        """By id, the mounts that are being wiped."""
        return {mount.id: mount for mount in self.mounts if mount.retired_at is not None}

    def with_storage(self, mount_id: str) -> Mount | None:
        """The mount of an id, live or retired: what was made by it can still be undone."""
        return self.by_id.get(mount_id) or self.retired.get(mount_id)

    def route(self, path: str) -> tuple[Mount, str] | None:
        """The mount that a path belongs to, and what is left of the path; no mount is a prefix of another."""
        end = path.find("/", 0, self._behind_longest)  # each slash costs a copy, and a path may have very many
        while end != -1:
            mount = self.by_path.get(path[:end])
            if mount is not None:
                return mount, path[end + 1 :]
            end = path.find("/", end + 1, self._behind_longest)
        mount = self.by_path.get(path)
        return (mount, "") if mount else None

    def with_mount(self, mount: Mount) -> MountTable:
        """The table with one mount more; `MOUNT_PATH_IN_USE` when a path would contain another."""
        self._check_path(mount)
        if any(mount.accessor == other.accessor for other in self.mounts):
            raise Refused(Code.STORE_CONTENDED, "another mount has drawn the same accessor: try again")
        if len(self.mounts) >= LIMIT:
            raise Refused(Code.MALFORMED_REQUEST, "there are too many mounts")
        return evolve(self, mounts=(*self.mounts, mount))

    def without(self, mount_id: str) -> MountTable:
        return evolve(self, mounts=tuple(mount for mount in self.mounts if mount.id != mount_id))

    def with_changed(self, changed: Mount) -> MountTable:
        """The table with another version of a mount; its path is checked against all others."""
        self.without(changed.id)._check_path(changed)
        return self._with(changed)

    def with_moved(self, mount: Mount, path: str, move_id: str) -> MountTable:
        """The table with a mount at another path, and a note of the move."""
        moves = (*self.moves, Move(move_id, mount.path, path))[-MOVES_KEPT:]
        return evolve(self.with_changed(evolve(mount, path=path)), moves=moves)

    def with_retired(self, mount: Mount, now: Instant) -> MountTable:
        """The table in which a mount no longer answers."""
        return self._with(evolve(mount, retired_at=now))

    def _with(self, changed: Mount) -> MountTable:
        return evolve(self, mounts=tuple(changed if mount.id == changed.id else mount for mount in self.mounts))

    def _check_path(self, mount: Mount) -> None:
        """Paths that differ only in the case of their letters are one: policies do not tell them apart."""
        path = fold(mount.path)
        if mount.kind != AUTH and path.partition("/")[0] in RESERVED:
            raise Refused(Code.MOUNT_PATH_IN_USE, "the path is reserved")
        for other in map(fold, self.by_path):
            if path == other:
                raise Refused(Code.MOUNT_PATH_IN_USE)
            if path.startswith(f"{other}/"):
                raise Refused(Code.MOUNT_PATH_IN_USE, "it is below the path of another mount")
            if other.startswith(f"{path}/"):
                raise Refused(Code.MOUNT_PATH_IN_USE, "the path of another mount is below it")


async def mount_table(records: Records) -> Found[MountTable]:
    """The table of mounts as it stands."""
    found = await records.find(keys.MOUNTS, MountTable)
    if found is None:
        raise Refused(Code.NOT_INITIALISED)
    return found


def last_mount_table(records: Records) -> Found[MountTable] | None:
    """The table of mounts as this node read it last. It may be out of date."""
    return records.last_found(keys.MOUNTS, MountTable)


class View(msgspec.Struct):
    """The entries that a request rests on: the table of mounts, and all that its program reads after it.

    A program of a route with `rests_on_view` may use entries as this node read them last, so that it reads nothing. It
    adds to `expects` what it uses and expects all of that in its commit. An outdated view has no effect: dispatch gives
    no refusal before it has looked whether the entries are still the same, and runs the program again if not.
    """

    mounts: Found[MountTable]
    expects: Mapping[str, int]
    """The versions of the entries."""
    is_fresh: bool = True
    """All of it was read for this request, or is to be. Otherwise the program may use what is cached."""

    async def verify(self, records: Records) -> None:
        """Raise `Conflict` if the store has newer versions. This is one read, whatever the entries are."""
        if not await records.are_at(self.expects):
            raise Conflict("a view is out of date")


async def require_live(records: Records, mount: Mount) -> Found[MountTable]:
    """The table as it stands; `NO_HANDLER` when a mount was disabled since the request found it.

    Disabling also changes the mount's configuration. So a commit that expects the configuration, as it was read after
    this, fails when the mount is disabled later.
    """
    found = await mount_table(records)
    if mount.id not in found.record.by_id:
        raise Refused(Code.NO_HANDLER)
    return found


@retry_on_conflict
async def change_mounts(records: Records, change: Callable[[MountTable], MountTable]) -> None:
    """Replace the table by a pure function of itself. Does nothing if nothing changes."""
    found = await mount_table(records)
    table = change(found.record)
    if table is not found.record:
        await records.commit(changing(found, table))


def changing(found: Found[MountTable], table: MountTable) -> Changes:
    """Replaces the table, with events for the mounts that change."""
    return Changes(found.expected, {keys.MOUNTS: table}, events=tuple(_events(found.record, table)))


def _events(old: MountTable, new: MountTable) -> Iterator[Event]:
    """What happened to mounts and audit devices between two tables."""
    for device in new.devices:
        if device not in old.devices:
            yield DeviceChanged(device=device.name, state="enabled")
    for device in old.devices:
        if device not in new.devices:
            yield DeviceChanged(device=device.name, state="disabled")
    before = {mount.id: mount for mount in old.mounts}
    for mount in new.mounts:
        was = before.get(mount.id)
        if was is None:
            state = "enabled"
        elif was.retired_at != mount.retired_at:
            state = "disabled"
        elif was.path != mount.path:
            state = "moved"
        elif was != mount:
            state = "tuned"
        else:
            continue
        yield MountChanged(mount_accessor=mount.accessor, path=mount.path, state=state)


def new_mount(kind: str, path: str, type_name: str, random: bytes) -> Mount:
    """A mount with an id and an accessor of its own, made of `ID_BYTES` random bytes. The type may be an alias."""
    canonical = TYPE_ALIASES.get(type_name, type_name)
    return Mount(
        id=random[:8].hex(),
        path=path,
        kind=kind,
        type=canonical,
        type_alias=type_name if type_name != canonical else "",
        accessor=f"{'auth_' if kind == AUTH else ''}{type_name}_{random[8:ID_BYTES].hex()}",
    )


def default_mounts(random: bytes) -> MountTable:
    """What an installation starts with: both components at their usual paths. Takes `MOUNT_BYTES` random bytes."""
    return (
        MountTable(audited_headers={CORRELATION_ID: False})
        .with_mount(new_mount(AUTH, "auth/cloud", "cloud", random[:ID_BYTES]))
        .with_mount(new_mount(SECRET, "cloud", "cloud", random[ID_BYTES:]))
    )
