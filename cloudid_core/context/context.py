"""The context: what every program of a service may use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from attrs import field, frozen

from ..caches import Caches
from ..credentials import RootCredential
from ..deadline import Deadline
from ..effects import Instant
from ..forms import Terms
from ..health import Node
from ..mounts import Mount
from ..provider import Client
from ..settings import Settings
from ..store import Found, Records


class Components(Protocol):
    """What programs ask of the component behind a mount, whichever it is. `catalog` answers."""

    async def client(self, context: Context, mount: Mount, deadline: Deadline) -> Client:
        """The client for the mount's calls to the provider. Refuses with `CONFIG_MISSING` without a configuration."""
        ...

    async def token_terms(self, context: Context, mount: Mount, role: str) -> Found[Terms] | None:
        """What now limits the tokens of a role, at the role's place in the store. `None`: the role is gone."""
        ...

    async def lease_terms(self, context: Context, mount: Mount, role: str) -> Found[Terms] | None:
        """What now limits the leases of a role, at the role's place in the store. `None`: the role is gone."""
        ...

    async def target(self, context: Context, mount: Mount, role: str) -> str:
        """The client id of the application whose secrets a role lends; empty if it lends none of one."""
        ...

    async def release(self, context: Context, mount: Mount, now: Instant, fence: Mapping[str, int]) -> None:
        """Hands what the records of a retired mount hold at the provider to the journal. Repeating it is harmless."""
        ...

    async def count_kept(self, context: Context, mount: Mount) -> int:
        """How many records of a mount, beside its leases and intents, keep objects at the provider."""
        ...

    def config_form(self, mount: Mount) -> type[RootCredential] | None:
        """The record of the mount's configuration, where it holds a root credential."""
        ...

    def is_mountable(self, kind: str, type_name: str) -> bool:
        """Whether operators can mount a component of this kind and type."""
        ...


@frozen
class Context:
    """One service: its settings, its records in the store, its caches, and what can be mounted."""

    settings: Settings
    records: Records
    caches: Caches
    components: Components
    node: Node = field(factory=Node)

    @property
    def marker_prefix(self) -> str:
        """The start of the name of every object that this installation makes at the provider."""
        return f"cloudid-{self.records.sealer.keyring.installation}-"
