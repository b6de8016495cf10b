"""Mounts: which component answers below which path.

The whole table is one record, because it is small, every request needs it, and commits can expect its version. The
storage of a mount is keyed by its id, so a moved mount keeps its data, and a new mount at an old path starts empty.

A disabled mount is retired: it answers no requests, and its path is free. It stays in the table until its leases are
revoked, which needs its configuration, and its storage is wiped.
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
"""The request header that audit entries of a new installation contain."""
TYPE_ALIASES: Final[Mapping[str, str]] = {"azure": "cloud"}
"""Other names of types, as existing clients spell them."""
ID_BYTES: Final = 16
"""How many random bytes a new mount needs."""
MOUNT_BYTES: Final = 2 * ID_BYTES
"""How many random bytes the default mounts need."""


@frozen(kw_only=True)
class Mount:
    """A mounted component. `path` has no slash at either end; `kind` is `auth` or `secret`.

    `type_alias` is the name by which the type was given, if it was an alias. Lifetimes are in seconds; 0 means the
    service's.
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
    """Maximum number of leases. 0: no limit."""
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
        """The name of the type that was given when the mount was created."""
        return self.type_alias or self.type

    def default_ttl(self, settings: Settings) -> int:
        """Return the default TTL of tokens or leases of this mount, in seconds."""
        return min(self.default_lease_ttl or settings.default_lease_ttl, self.max_ttl(settings))

    def max_ttl(self, settings: Settings) -> int:
        """Return the maximum TTL of tokens or leases of this mount, in seconds."""
        return self.max_lease_ttl or settings.max_lease_ttl


SYSTEM: Final = Mount(id="sys", path="sys", kind=SECRET, type="system", accessor="system_00000000")
TOKEN: Final = Mount(id="token", path="auth/token", kind=AUTH, type="token", accessor="auth_token_00000000")
IDENTITY: Final = Mount(id="identity", path="identity", kind=SECRET, type="identity", accessor="identity_00000000")
BUILT_IN: Final = (SYSTEM, TOKEN, IDENTITY)
"""Mounts that always exist and never change."""
RESERVED: Final = frozenset({"sys", "auth", "audit", "identity", "cubbyhole"})
"""Paths below which no secrets engine can be mounted. Auth methods are below `auth`."""


@frozen
class Move:
    """A move of a mount to a different path."""

    id: str
    source: str
    target: str


@frozen(slots=False)  # slots and cached properties take a `__getattr__`, which slows all down
class MountTable:
    """All mounts that were not wiped yet, the last few moves, and the audit devices."""

    mounts: tuple[Mount, ...] = ()
    moves: tuple[Move, ...] = ()
    devices: tuple[Device, ...] = ()
    """The audit devices, including suspended ones.

    They are in this record because every request needs them, and every commit of a login expects them.
    """
    audit_key: str = field(default="", repr=False)
    """64 hexadecimal digits that all devices share, once there is a device."""
    audited_headers: dict[str, bool] = field(factory=dict[str, bool], repr=False)
    """The audited request headers by their original names, and whether their values are hashed."""

    @cached_property
    def recorded_headers(self) -> Mapping[str, bool]:
        """The audited headers by their names in lower case, as requests have them."""
        return {name.lower(): is_hashed for name, is_hashed in self.audited_headers.items()}

    @cached_property
    def suspended_devices(self) -> tuple[Device, ...]:
        """The audit devices that requests enabled and whose names are now used by the settings."""
        declared = {device.name for device in self.devices if device.declared}
        return tuple(device for device in self.devices if device.name in declared and not device.declared)

    @cached_property
    def used_devices(self) -> tuple[Device, ...]:
        """The audit devices that are not suspended. Their names are unique."""
        return tuple(device for device in self.devices if device not in self.suspended_devices)

    @cached_property
    def entry_devices(self) -> tuple[Device, ...]:
        """The audit devices that receive entries of requests."""
        return tuple(device for device in self.used_devices if device.takes_entries)

    @cached_property
    def live(self) -> tuple[Mount, ...]:
        """The mounts that answer requests, built-in ones first."""
        return (*BUILT_IN, *(mount for mount in self.mounts if mount.retired_at is None))

    @cached_property
    def by_path(self) -> Mapping[str, Mount]:
        return {mount.path: mount for mount in self.live}

    @cached_property
    def _behind_longest(self) -> int:
        """The position after the slash that follows the longest mount path, plus one."""
        return max(map(len, self.by_path)) + 1

    @cached_property
    def by_id(self) -> Mapping[str, Mount]:
        return {mount.id: mount for mount in self.live}

    @cached_property
    def retired(self) -> Mapping[str, Mount]:
        """The mounts that are being wiped, by id."""
        return {mount.id: mount for mount in self.mounts if mount.retired_at is not None}

    def with_storage(self, mount_id: str) -> Mount | None:
        """Return the mount with an id, live or retired, because objects of a retired one must still be removed."""
        return self.by_id.get(mount_id) or self.retired.get(mount_id)

    def route(self, path: str) -> tuple[Mount, str] | None:
        """Return the mount of a path and the rest of the path. No mount is a prefix of another."""
        end = path.find("/", 0, self._behind_longest)  # each slash costs a copy, and a path may have very many
        while end != -1:
            mount = self.by_path.get(path[:end])
            if mount is not None:
                return mount, path[end + 1 :]
            end = path.find("/", end + 1, self._behind_longest)
        mount = self.by_path.get(path)
        return (mount, "") if mount else None

    def with_mount(self, mount: Mount) -> MountTable:
        """Return the table with an added mount. Refuse with `MOUNT_PATH_IN_USE` if one path would contain another."""
        self._check_path(mount)
        if any(mount.accessor == other.accessor for other in self.mounts):
            raise Refused(Code.STORE_CONTENDED, "another mount has the same random accessor: try again")
        if len(self.mounts) >= LIMIT:
            raise Refused(Code.MALFORMED_REQUEST, "there are too many mounts")
        return evolve(self, mounts=(*self.mounts, mount))

    def without(self, mount_id: str) -> MountTable:
        return evolve(self, mounts=tuple(mount for mount in self.mounts if mount.id != mount_id))

    def with_changed(self, changed: Mount) -> MountTable:
        """Return the table with a changed mount, after checking its path against all others."""
        self.without(changed.id)._check_path(changed)
        return self._with(changed)

    def with_moved(self, mount: Mount, path: str, move_id: str) -> MountTable:
        """Return the table with a moved mount, and with a note of the move."""
        moves = (*self.moves, Move(move_id, mount.path, path))[-MOVES_KEPT:]
        return evolve(self.with_changed(evolve(mount, path=path)), moves=moves)

    def with_retired(self, mount: Mount, now: Instant) -> MountTable:
        """Return the table with a retired mount."""
        return self._with(evolve(mount, retired_at=now))

    def _with(self, changed: Mount) -> MountTable:
        return evolve(self, mounts=tuple(changed if mount.id == changed.id else mount for mount in self.mounts))

    def _check_path(self, mount: Mount) -> None:
        """Refuse conflicting paths.

        Paths that differ only in case are equal, because policies do not distinguish them.
        """
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
    """Read the current table of mounts."""
    found = await records.find(keys.MOUNTS, MountTable)
    if found is None:
        raise Refused(Code.NOT_INITIALISED)
    return found


def last_mount_table(records: Records) -> Found[MountTable] | None:
    """Return the table of mounts as this node last read it. It may be out of date."""
    return records.last_found(keys.MOUNTS, MountTable)


class View(msgspec.Struct):
    """The entries that a request depends on: the table of mounts, and everything that its program reads after it.

    The program of a route with `rests_on_view` may use entries as this node last read them, so that it reads nothing.
    It adds the entries that it uses to `expects`, and its commit expects all of them. An outdated view has no effect:
    before dispatch returns a refusal, it checks whether the entries are still the same, and runs the program again if
    not.
    """

    mounts: Found[MountTable]
    expects: Mapping[str, int]
    """The versions of the entries."""
    is_fresh: bool = True
    """Whether the program must read all entries for this request. Otherwise it may use cached ones."""

    async def verify(self, records: Records) -> None:
        """Raise `Conflict` if the store has newer versions. This is a single read for all entries."""
        if not await records.are_at(self.expects):
            raise Conflict("a view is out of date")


async def require_live(records: Records, mount: Mount) -> Found[MountTable]:
    """Read the current table. Refuse with `NO_HANDLER` if the mount was disabled since the request was dispatched.

    Disabling a mount also changes its configuration. So if a commit expects the configuration as it was read after this
    call, it fails when the mount is disabled later.
    """
    found = await mount_table(records)
    if mount.id not in found.record.by_id:
        raise Refused(Code.NO_HANDLER)
    return found


@retry_on_conflict
async def change_mounts(records: Records, change: Callable[[MountTable], MountTable]) -> None:
    """Replace the table with the result of a pure function of it. Write nothing if nothing changes."""
    found = await mount_table(records)
    table = change(found.record)
    if table is not found.record:
        await records.commit(changing(found, table))


def changing(found: Found[MountTable], table: MountTable) -> Changes:
    """Return the change that replaces the table, with events for the changed mounts."""
    return Changes(found.expected, {keys.MOUNTS: table}, events=tuple(_events(found.record, table)))


def _events(old: MountTable, new: MountTable) -> Iterator[Event]:
    """Yield the events for the differences between two tables."""
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
    """Return a mount with a new id and accessor, built from `ID_BYTES` random bytes. The type may be an alias."""
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
    """Return the mounts of a new installation: both components at their usual paths.

    Needs `MOUNT_BYTES` random bytes.
    """
    return (
        MountTable(audited_headers={CORRELATION_ID: False})
        .with_mount(new_mount(AUTH, "auth/cloud", "cloud", random[:ID_BYTES]))
        .with_mount(new_mount(SECRET, "cloud", "cloud", random[ID_BYTES:]))
    )
