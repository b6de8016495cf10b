"""Snapshots: the mount, configuration and role that a login works on, as they were last read.

There are two, because nothing may depend on a role until the mount has accepted the token: the one of the mount, which
every login at it uses, and the one of a role, which is looked up afterwards.

Both are cached, so that a login reads nothing from the store. Taking one adds the versions of its entries to the view
of the login, so an outdated snapshot has no effect: see `View`.
"""

from __future__ import annotations

from functools import cached_property

from attrs import field, frozen
from msgspec.structs import replace

from ..caches import LARGEST_CASES, Weighed, of_records
from ..context import Context
from ..credentials import client_of, effective_config
from ..deadline import Deadline
from ..errors import Code, Refused
from ..mounts import Mount, MountTable
from ..provider import Client
from ..routing import Call
from ..store import Found, expected, keys, version_of
from ..tokens import Template, template
from .config import Config, find_config
from .roles import Role, find_role


@frozen(kw_only=True, slots=False, eq=False)  # slots and cached properties take a `__getattr__`, which slows all down
class MountSnapshot:
    """The data that all logins at one mount use, whichever role they name."""

    context: Context
    mount: Mount
    expects: dict[str, int]
    """Versions of the entries from which it was built."""
    mounts_version: int
    """The version of the table of mounts, which is one of them."""
    roles: Weighed[str, Snapshot] = field(repr=False)
    """Snapshots of roles by their names. They depend on this one, and are forgotten with it."""
    _config: Found[Config] | None = field(repr=False)

    @cached_property
    def config(self) -> Config:
        """The configuration that takes effect. Refuses with `CONFIG_MISSING` if it is incomplete."""
        return effective_config(self.context.settings, Config, self._config)

    @cached_property
    def display_prefix(self) -> str:
        """The start of the display names of the tokens."""
        return f"{self.mount.path.removeprefix('auth/').replace('/', '-')}-"

    @cached_property
    def identity(self) -> Client:
        """A client for reading the caches. Its deadline has passed, so it cannot call Azure."""
        return client_of(self.context, self.mount, self.config, version_of(self._config), Deadline(0.0))

    def client(self, deadline: Deadline) -> Client:
        """Return a client for calls to Azure."""
        return replace(self.identity, deadline=deadline)


@frozen(kw_only=True, slots=False, eq=False)
class Snapshot:
    """The data that the logins of one role use, once the mount has accepted their tokens."""

    base: MountSnapshot
    role_name: str
    expects: dict[str, int]
    """Versions of the entries from which it was built, including those of `base`."""
    _role: Found[Role] | None

    @property
    def has_role(self) -> bool:
        return self._role is not None

    @cached_property
    def weight(self) -> int:
        """Its weight in a cache: bytes of the role's entry."""
        return self._role.size if self._role is not None else 1

    @property
    def stored_role(self) -> Role:
        """Return the role as far as this node knows its bounds. Refuse with `ROLE_NOT_FOUND` if there is none."""
        if self._role is None:
            raise Refused(Code.ROLE_NOT_FOUND)
        return self._role.record

    @cached_property
    def role(self) -> Role:
        """The role. Also refuses with `ROLE_NEWER_THAN_NODE` if it has a bound that this node cannot check."""
        role = self.stored_role
        if role.unknown_bounds:
            raise Refused(Code.ROLE_NEWER_THAN_NODE)
        return role

    @cached_property
    def template(self) -> Template:
        """The common part of the tokens of the role."""
        base = self.base
        return template(base.context, base.mount, self.role, self.role_name, path=f"{base.mount.path}/login")

    def client(self, deadline: Deadline) -> Client:
        """Return a client for calls to Azure."""
        return self.base.client(deadline)


def cached_mount(call: Call) -> MountSnapshot | None:
    """Return the cached snapshot of the call's mount, if its view allows that, and add it to the view."""
    view = call.view
    base: MountSnapshot | None = call.context.caches.login_mounts.peek(call.mount.id)
    if base is None or view.is_fresh or base.mounts_version != view.mounts.version:
        return None
    view.expects = base.expects
    return base


async def fresh_mount(call: Call) -> MountSnapshot:
    """Read the snapshot of the call's mount, and add it to the view."""
    base = await read_mount(call.context, call.view.mounts, call.mount.id)
    call.view.expects = base.expects
    return base


def cached_role(call: Call, base: MountSnapshot, role_name: str) -> Snapshot | None:
    """Return the cached snapshot of a role, like `cached_mount`."""
    snapshot, view = base.roles.peek(role_name), call.view
    if snapshot is None or view.is_fresh:
        return None
    view.expects = snapshot.expects
    return snapshot


async def fresh_role(call: Call, base: MountSnapshot, role_name: str) -> Snapshot:
    """Read the snapshot of a role, like `fresh_mount`."""
    call.proven.lacks_role = True  # if the store fails, the role in the form stays unproven
    snapshot = await read_role(base, role_name)
    call.proven.lacks_role = not snapshot.has_role
    call.view.expects = snapshot.expects
    return snapshot


async def read_mount(context: Context, mounts: Found[MountTable], mount_id: str) -> MountSnapshot:
    """Read the snapshot of a mount under a table of mounts. Refuse with `NO_HANDLER` if the mount is not in it."""
    mount = mounts.record.by_id.get(mount_id)
    if mount is None:
        raise Refused(Code.NO_HANDLER)
    config = await find_config(context, mount)
    expects = {**mounts.expected, **expected(config, keys.config(mount_id))}
    known: MountSnapshot | None = context.caches.login_mounts.peek(mount_id)
    if known is not None and known.expects == expects:
        return known  # with all that was cached in it
    snapshot = MountSnapshot(
        context=context,
        mount=mount,
        expects=expects,
        mounts_version=mounts.version,
        roles=of_records(context.settings),
        config=config,
    )
    context.caches.login_mounts.put(mount_id, snapshot)
    return snapshot


async def read_role(base: MountSnapshot, role_name: str) -> Snapshot:
    """Read the snapshot of a role."""
    role = await find_role(base.context, base.mount, role_name)
    expects = {**base.expects, **expected(role, keys.role(base.mount.id, role_name))}
    known = base.roles.get(role_name)
    if known is not None and known.expects == expects:
        return known  # with all that was cached in it
    snapshot = Snapshot(base=base, role_name=role_name, expects=expects, role=role)
    if role is None:  # callers can invent any number of such names
        base.roles.drop(role_name)
    else:
        base.roles.put(role_name, snapshot, snapshot.weight)
        base.context.caches.admitted_logins.make_room(snapshot.weight, LARGEST_CASES)
    return snapshot


async def read_snapshot(context: Context, mounts: Found[MountTable], mount_id: str, role_name: str) -> Snapshot:
    """Read both snapshots under a table of mounts, for programs without a token that has to be accepted."""
    return await read_role(await read_mount(context, mounts, mount_id), role_name)
