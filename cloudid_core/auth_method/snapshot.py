"""The snapshot that a login works on: mount, configuration and role as last read, and what follows from them alone.

It is cached, so that a login reads nothing from the store. An outdated snapshot has no effect: a token is committed
only if all entries still have the versions that the snapshot `expects`; a refusal is given, and the provider is asked,
only after the entries were read again and had the same versions.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property

from attrs import field, frozen
from msgspec.structs import replace

from ..audit import Decision
from ..context import Context
from ..credentials import client_of, effective_config
from ..deadline import Deadline
from ..errors import Code, Conflict, Refused
from ..mounts import Mount, MountTable, mount_table
from ..provider import Client
from ..store import Found, expected, keys, version_of
from ..tokens import Template, template
from .config import Config, find_config
from .roles import Role, find_role


@frozen(kw_only=True, slots=False)  # slots and cached properties take a `__getattr__`, which slows all down
class Snapshot:
    """What the logins of one role at one mount rest on."""

    context: Context
    mount: Mount
    role_name: str
    expects: dict[str, int]
    """Versions of the entries that it was made of."""
    mounts_version: int
    """The version of the table of mounts, which is one of them."""
    _config: Found[Config] | None = field(repr=False)
    _role: Found[Role] | None

    @cached_property
    def config(self) -> Config:
        """The configuration that counts; `CONFIG_MISSING` if there is not enough."""
        return effective_config(self.context.settings, Config, self._config)

    @cached_property
    def role(self) -> Role:
        """The role; `ROLE_NOT_FOUND` if there is none."""
        if self._role is None:
            raise Refused(Code.ROLE_NOT_FOUND)
        return self._role.record

    @cached_property
    def template(self) -> Template:
        """What the tokens of the role have in common."""
        return template(self.context, self.mount, self.role, self.role_name, path=f"{self.mount.path}/login")

    @cached_property
    def display_prefix(self) -> str:
        """How the display names of the tokens start."""
        return f"{self.mount.path.removeprefix('auth/').replace('/', '-')}-"

    @cached_property
    def admitted(self) -> dict[Hashable, Decision]:
        """Decisions that go on record, of logins that were admitted, by their `explanation.record_key`."""
        return {}

    async def confirm(self) -> None:
        """Raise `Conflict` if the store has newer versions."""
        mounts = await mount_table(self.context.records)
        if mounts.version == self.mounts_version:
            current = await read_snapshot(self.context, mounts, self.mount.id, self.role_name)
            if current.expects == self.expects:
                return
        raise Conflict("a login's snapshot is out of date")

    @cached_property
    def identity(self) -> Client:
        """A client for looking into the caches; its deadline has passed, so that it cannot call the provider."""
        return client_of(self.context, self.mount, self.config, version_of(self._config), Deadline(0.0))

    def client(self, deadline: Deadline) -> Client:
        """How the provider is talked to."""
        return replace(self.identity, deadline=deadline)


def cached_snapshot(context: Context, mount_id: str, role_name: str) -> Snapshot | None:
    """The snapshot as it was last read, if it is cached."""
    snapshot: Snapshot | None = context.caches.snapshots.peek((mount_id, role_name))
    return snapshot


async def read_snapshot(context: Context, mounts: Found[MountTable], mount_id: str, role_name: str) -> Snapshot:
    """The snapshot under a table of mounts, read anew; `NO_HANDLER` when the mount is not in it."""
    mount = mounts.record.by_id.get(mount_id)
    if mount is None:
        raise Refused(Code.NO_HANDLER)
    config = await find_config(context, mount)
    role = await find_role(context, mount, role_name)
    expects = {
        **mounts.expected,
        **expected(config, keys.config(mount_id)),
        **expected(role, keys.role(mount_id, role_name)),
    }
    known: Snapshot | None = context.caches.snapshots.get((mount_id, role_name))
    if known is not None and known.expects == expects:
        return known  # with all that was made of it
    snapshot = Snapshot(
        context=context,
        mount=mount,
        role_name=role_name,
        expects=expects,
        mounts_version=mounts.version,
        config=config,
        role=role,
    )
    if role is None:  # callers can invent such names without end
        context.caches.snapshots.drop((mount_id, role_name))
    else:
        context.caches.snapshots.put((mount_id, role_name), snapshot)
    return snapshot
