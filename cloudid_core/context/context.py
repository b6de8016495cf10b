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
    """What a token's renewal depends on besides its terms, and the codes of checks that could not be made."""

    expects: Mapping[str, int] = field(factory=dict)
    unknown: tuple[str, ...] = ()


@frozen(kw_only=True)
class LeaseSubject:
    """The parts of a lease that decide about its renewal."""

    role: str
    provisioned: Provisioned
    rights: Rights | None


@frozen
class LeaseTerms:
    """The limits of a lease's renewal, and the versions that its commit must expect."""

    terms: Terms
    expects: Mapping[str, int]


def _always(answer: T) -> Callable[..., Program[T]]:
    """Return a program that always returns this value."""

    async def program(*_: object) -> T:
        return answer

    return program


async def _no_client(context: Context, mount: Mount, deadline: Deadline) -> Client:
    raise Refused(Code.CONFIG_MISSING)


@frozen(kw_only=True)
class Mountable:
    """A type of mount, with its hooks for programs that handle all mounts. The defaults do nothing."""

    token_terms: Callable[[Context, Mount, str], Program[Found[Terms] | None]] = _always(None)
    """Return the current limits for the tokens of a role, given the role's key in the store.

    `None`: the role was deleted.
    """
    recheck: Callable[[Context, Mount, str, Mapping[str, str], Deadline], Program[Recheck]] = _always(Recheck())
    """Refuse to renew a login's token if the service principal or machine in its metadata would now be refused."""
    lease_terms: Callable[[Context, Mount, LeaseSubject, Deadline], Program[LeaseTerms | None]] = _always(None)
    """Return the current limits for renewing a lease. `None`: its role was deleted.

    Refuse if its credentials would no longer be issued.
    """
    client: Callable[[Context, Mount, Deadline], Program[Client]] = _no_client
    """Return the client for the mount's calls to Azure. Refuse with `CONFIG_MISSING` if the mount is not configured."""
    release: Callable[[Context, Mount, Instant, Mapping[str, int]], Program[None]] = _always(None)
    """Pass the Azure objects in the records of a retired mount to the journal, by commits that expect the fence.

    Can be repeated.
    """
    count_kept: Callable[[Context, Mount], Program[int]] = _always(0)
    """Count the records of a mount, besides its leases and intents, that own objects in Azure."""
    count_stopped: Callable[[Context, Mount, Deadline], Program[int]] = _always(0)
    """Count the roles of a mount that issue nothing because of the stored ceiling."""
    target: Callable[[Context, Mount, str], Program[str]] = _always("")
    """Return the client id of the app registration whose secrets a role issues. Empty if there is none."""
    config: type[RootCredential] | None = None
    """Return the record of the mount's configuration, if it holds a root credential."""
    static_role: type[SecretHolder] | None = None
    """Return the record of a static role, if the mount supports static roles."""
    may_rotate: Callable[[Context, Mount, str, Deadline], Program[Changes]] = _always(NO_CHANGES)
    """Return what a new secret of a static role depends on. Refuse if the mount no longer allows one."""


class Components(Protocol):
    """Find the component of a mount. The catalog implements this."""

    def of(self, mount: Mount) -> Mountable: ...

    def is_mountable(self, kind: str, type_name: str) -> bool:
        """Return whether operators can mount a component of this kind and type."""
        ...


@frozen
class Context:
    """The parts of one service: its settings, its records in the store, its caches, and what can be mounted."""

    settings: Settings
    records: Records
    caches: Caches
    components: Components
    node: Node = field(factory=Node)

    @property
    def marker_prefix(self) -> str:
        """Return the prefix of the names of all objects that this installation creates in Azure."""
        return f"cloudid-{self.records.sealer.keyring.installation}-"

    @property
    def cluster_id(self) -> str:
        """Return a UUID that all nodes share, for clients without a token. It does not reveal the id in markers."""
        hashed = KeyedHash(Secret(self.records.sealer.keyring.installation)).hexadecimal("cluster id")
        return uuid_text(bytes.fromhex(hashed)[:16])
