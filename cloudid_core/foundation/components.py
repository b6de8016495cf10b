"""Components: what can be mounted, as far as the rest of the service has to know it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from attrs import frozen

from ..api.routing import RouteTable
from ..background.queue import Job
from ..effects import Program
from ..errors import Code, Refused
from ..mounts.table import Mount, mount_table
from ..provider.client import Client
from ..rotation.root_credential import RootCredential
from ..store.records import Found
from .context import Context
from .deadline import Deadline
from .lifetime import Terms

ConfigForm: TypeAlias = type[RootCredential]


async def _no_terms(context: Context, mount: Mount, role: str) -> Found[Terms] | None:
    return None


async def _no_client(context: Context, mount: Mount, deadline: Deadline) -> Client:
    raise Refused(Code.CONFIG_MISSING)


async def _nothing_to_release(job: Job, mount: Mount) -> None:
    pass


async def _nothing_against(context: Context, mount: Mount, client_id: str) -> None:
    pass


@frozen(kw_only=True)
class Component:
    """A kind of mount: its routes, and what others ask of it.

    `token_terms` and `lease_terms` answer what now limits the tokens or leases of a role, with the place of that role
    in the store, or `None` when it is gone;
    `client` is how the mount talks to the provider, for work in the background. `release` gives up, through the journal
    and once more if need be, what the records of a retired mount hold at the provider. `check_root` refuses to work
    with a root application (by its client id) that the mount must not touch.
    """

    kind: str
    type: str
    routes: RouteTable
    doc: str
    token_terms: Callable[[Context, Mount, str], Program[Found[Terms] | None]] = _no_terms
    lease_terms: Callable[[Context, Mount, str], Program[Found[Terms] | None]] = _no_terms
    client: Callable[[Context, Mount, Deadline], Program[Client]] = _no_client
    release: Callable[[Job, Mount], Program[None]] = _nothing_to_release
    check_root: Callable[[Context, Mount, str], Program[None]] = _nothing_against
    config: ConfigForm | None = None
    """The record of the mount's configuration, where it holds a root credential."""


async def mount_client(context: Context, mount_id: str, deadline: Deadline) -> Client:
    """How a mount, live or retired, talks to the provider; `CONFIG_MISSING` while it is not configured."""
    mount = (await mount_table(context)).record.with_storage(mount_id)
    if mount is None:
        raise Refused(Code.CONFIG_MISSING)
    return await context.components[mount.kind, mount.type].client(context, mount, deadline)
