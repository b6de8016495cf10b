"""Components: what can be mounted, and where to find it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import frozen

from ..context import Context, Mountable
from ..deadline import Deadline
from ..errors import Code, Refused
from ..mounts import BUILT_IN, Mount, mount_table
from ..provider import Client
from .routes import RouteTable


@frozen(kw_only=True)
class Component(Mountable):
    """A type of mount: its routes, and its hooks for other programs."""

    kind: str
    type: str
    routes: RouteTable
    doc: str


class Catalog:
    def __init__(self, components: Iterable[Component]) -> None:
        self._components = {(component.kind, component.type): component for component in components}

    def __iter__(self) -> Iterator[Component]:
        return iter(self._components.values())

    def of(self, mount: Mount) -> Component:
        return self._components[mount.kind, mount.type]

    def is_mountable(self, kind: str, type_name: str) -> bool:
        built_in = {(mount.kind, mount.type) for mount in BUILT_IN}
        return (kind, type_name) in self._components.keys() - built_in


async def mount_client(context: Context, mount_id: str, deadline: Deadline) -> Client:
    """Return the client of a mount, live or retired. Refuse with `CONFIG_MISSING` if the mount is not configured."""
    mount = (await mount_table(context.records)).record.with_storage(mount_id)
    if mount is None:
        raise Refused(Code.CONFIG_MISSING)
    return await context.components.of(mount).client(context, mount, deadline)
