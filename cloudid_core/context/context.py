"""The context: what every program of a service may use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from attrs import field, frozen

from ..caches import Caches
from ..credentials import RootCredential, SecretHolder
from ..deadline import Deadline
from ..effects import Instant, Program
from ..errors import Code, Refused
from ..forms import Terms
from ..health import Node
from ..mounts import Mount
from ..provider import Client, Provisioned, Rights
from ..settings import Settings
from ..store import NO_CHANGES, Changes, Found, KeyedHash, Records
from ..values import Secret, uuid_text

T = TypeVar("T")


@frozen
class Recheck:
    """What a token's renewal rests on beside its terms, and the codes of what nobody could tell."""

    expects: Mapping[str, int] = field(factory=dict)
    unknown: tuple[str, ...] = ()


@frozen(kw_only=True)
class LeaseSubject:
    """The parts of a lease that its renewal is judged by."""

    role: str
    provisioned: Provisioned
    rights: Rights | None


@frozen
class LeaseTerms:
    """What limits the renewal of a lease, and the versions that a commit of it must expect."""

    terms: Terms
    expects: Mapping[str, int]


def _always(answer: T) -> Callable[..., Program[T]]:
    """A program that answers this, whatever it is asked."""

    async def program(*_: object) -> T:
        return answer

    return program


async def _no_client(context: Context, mount: Mount, deadline: Deadline) -> Client:
    raise Refused(Code.CONFIG_MISSING)


@frozen(kw_only=True)
class Mountable:
    """A kind of mount, and its answers to programs that serve all mounts. By default it has nothing to say."""

    token_terms: Callable[[Context, Mount, str], Program[Found[Terms] | None]] = _always(None)
    """What now limits the tokens of a role, at the role's place in the store. `None`: the role is gone."""
    recheck: Callable[[Context, Mount, str, Mapping[str, str], Deadline], Program[Recheck]] = _always(Recheck())
    """Refuses to renew a login's token whose principal or machine, which the metadata name, would now be refused."""
    lease_terms: Callable[[Context, Mount, LeaseSubject, Deadline], Program[LeaseTerms | None]] = _always(None)
    """What limits the renewal of a lease now. `None`: its role is gone. Refused when its credentials would no longer be
    issued."""
    client: Callable[[Context, Mount, Deadline], Program[Client]] = _no_client
    """The client for the mount's calls to the provider. Refuses with `CONFIG_MISSING` without a configuration."""
    release: Callable[[Context, Mount, Instant, Mapping[str, int]], Program[None]] = _always(None)
    """Hands what the records of a retired mount hold at the provider to the journal, by commits that expect the fence.
    Repeating it is harmless."""
    count_kept: Callable[[Context, Mount], Program[int]] = _always(0)
    """How many records of a mount, beside its leases and intents, keep objects at the provider."""
    count_stopped: Callable[[Context, Mount, Deadline], Program[int]] = _always(0)
    """How many roles of a mount give nothing under the ceiling of its stored configuration."""
    target: Callable[[Context, Mount, str], Program[str]] = _always("")
    """The client id of the application whose secrets a role lends; empty if it lends none of one."""
    config: type[RootCredential] | None = None
    """The record of the mount's configuration, where it holds a root credential."""
    static_role: type[SecretHolder] | None = None
    """The record of a static role, where the mount can have some."""
    may_rotate: Callable[[Context, Mount, str, Deadline], Program[Changes]] = _always(NO_CHANGES)
    """What a new secret of a static role rests on. Refused when the mount no longer allows it one."""


class Components(Protocol):
    """Finds the component behind a mount. The catalog does."""

    def of(self, mount: Mount) -> Mountable: ...

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

    @property
    def cluster_id(self) -> str:
        """A UUID that all nodes share, for clients without a token. It does not show the id that markers have."""
        hashed = KeyedHash(Secret(self.records.sealer.keyring.installation)).hexadecimal("cluster id")
        return uuid_text(bytes.fromhex(hashed)[:16])
