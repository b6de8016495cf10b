"""Components: what can be mounted, and what the rest of the service asks of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from attrs import frozen

from ..context import Context
from ..credentials import RootCredential
from ..deadline import Deadline
from ..effects import Instant, Program
from ..errors import Code, Refused
from ..forms import Terms
from ..mounts import BUILT_IN, Mount, mount_table
from ..provider import Client
from ..store import Found
from .routes import RouteTable

ConfigType: TypeAlias = type[RootCredential]


async def _no_terms(context: Context, mount: Mount, role: str) -> Found[Terms] | None:
    return None


async def _no_client(context: Context, mount: Mount, deadline: Deadline) -> Client:
    raise Refused(Code.CONFIG_MISSING)


async def _nothing_to_release(context: Context, mount: Mount, now: Instant, fence: Mapping[str, int]) -> None:
    pass


async def _nothing_kept(context: Context, mount: Mount) -> int:
    return 0


async def _no_target(context: Context, mount: Mount, role: str) -> str:
    return ""


@frozen(kw_only=True)
class Component:
    """A kind of mount: its routes, and its answers to what `Components` asks."""

    kind: str
    type: str
    routes: RouteTable
    doc: str
    token_terms: Callable[[Context, Mount, str], Program[Found[Terms] | None]] = _no_terms
    lease_terms: Callable[[Context, Mount, str], Program[Found[Terms] | None]] = _no_terms
    client: Callable[[Context, Mount, Deadline], Program[Client]] = _no_client
    release: Callable[[Context, Mount, Instant, Mapping[str, int]], Program[None]] = _nothing_to_release
    count_kept: Callable[[Context, Mount], Program[int]] = _nothing_kept
    target: Callable[[Context, Mount, str], Program[str]] = _no_target
    config: ConfigType | None = None
    """The record of the mount's configuration, where it holds a root credential."""


class Catalog:
    """All components by kind and type. It answers for the component of each mount."""

    def __init__(self, components: Iterable[Component]) -> None:
        self._components = {(component.kind, component.type): component for component in components}

    def __iter__(self) -> Iterator[Component]:
        return iter(self._components.values())

    def of(self, mount: Mount) -> Component:
        return self._components[mount.kind, mount.type]

    async def client(self, context: Context, mount: Mount, deadline: Deadline) -> Client:
        return await self.of(mount).client(context, mount, deadline)

    async def token_terms(self, context: Context, mount: Mount, role: str) -> Found[Terms] | None:
        return await self.of(mount).token_terms(context, mount, role)

    async def lease_terms(self, context: Context, mount: Mount, role: str) -> Found[Terms] | None:
        return await self.of(mount).lease_terms(context, mount, role)

    async def target(self, context: Context, mount: Mount, role: str) -> str:
        return await self.of(mount).target(context, mount, role)

    async def release(self, context: Context, mount: Mount, now: Instant, fence: Mapping[str, int]) -> None:
        await self.of(mount).release(context, mount, now, fence)

    async def count_kept(self, context: Context, mount: Mount) -> int:
        return await self.of(mount).count_kept(context, mount)

    def config_form(self, mount: Mount) -> type[RootCredential] | None:
        return self.of(mount).config

    def is_mountable(self, kind: str, type_name: str) -> bool:
        built_in = {(mount.kind, mount.type) for mount in BUILT_IN}
        return (kind, type_name) in self._components.keys() - built_in


async def mount_client(context: Context, mount_id: str, deadline: Deadline) -> Client:
    """The client of a mount, live or retired. Refuses with `CONFIG_MISSING` while the mount is not configured."""
    mount = (await mount_table(context.records)).record.with_storage(mount_id)
    if mount is None:
        raise Refused(Code.CONFIG_MISSING)
    return await context.components.client(context, mount, deadline)
