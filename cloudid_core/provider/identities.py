"""The app registrations with which this installation authenticates: no role may issue their credentials.

One record has the client ids of all mounts. Configurations, and roles that issue secrets of an existing app
registration, are written together with it. So neither write can overtake the other, on whichever mounts and nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final

from attrs import evolve, field, frozen
from msgspec import Struct

from ..errors import Code, Refused
from ..store import Changes, Records, keys, retry_on_conflict, version_of
from ..values import Secret
from .responses import unverified_claims

MOST_PLATFORM_IDENTITIES: Final = 256
"""Maximum number of host identities that are stored for a mount, the latest ones, because machines come and go."""


@frozen(kw_only=True)
class Proofs:
    """The client ids of one mount, in lower case."""

    current: tuple[str, ...] = ()
    """From its configuration, including the environment variables of any node."""
    platform: tuple[str, ...] = ()
    """From the platform identities of the nodes, latest last."""
    former: tuple[str, ...] = ()
    """Former app registrations of the mount that may still have client secrets it created."""


@frozen(slots=False)  # slots and cached properties take a `__getattr__`, which slows all down
class Identities:
    """The client ids of all mounts, by mount id."""

    mounts: Mapping[str, Proofs] = field(factory=dict[str, Proofs])

    @cached_property
    def client_ids(self) -> frozenset[str]:
        return frozenset(each for one in self.mounts.values() for each in (*one.current, *one.platform, *one.former))

    def of(self, mount_id: str) -> Proofs:
        return self.mounts.get(mount_id, Proofs())

    def having(self, mount_id: str, proofs: Proofs) -> Identities:
        """Return the record with other client ids for one mount."""
        return Identities({**self.mounts, mount_id: proofs})

    def of_mounts(self, mount_ids: Iterable[str]) -> Identities:
        """Return the record with only these mounts."""
        return Identities({mount_id: self.mounts[mount_id] for mount_id in mount_ids if mount_id in self.mounts})

    def refuse(self, client_id: str) -> None:
        """Refuse with `SELF_TARGET` if the app registration is one of them."""
        if client_id.lower() in self.client_ids:
            raise Refused(Code.SELF_TARGET)


async def lending(records: Records, client_id: str) -> Changes:
    """Return what a commit must expect that issues credentials of an app registration.

    Refuse with `SELF_TARGET` if it must not.
    """
    found = await records.find(keys.IDENTITIES, Identities)
    if found is not None:
        found.record.refuse(client_id)
    return Changes({keys.IDENTITIES: version_of(found)})


async def identities_for_writing(records: Records) -> tuple[Identities, dict[str, int]]:
    """Return the identities, and what a commit that replaces them expects. Upkeep rebuilds a damaged record."""
    found, expects = await records.find_for_writing(keys.IDENTITIES, Identities)
    return (found.record if found else Identities()), expects


@frozen
class PlatformIdentity:
    """The identity that the platform of this host gives a mount."""

    records: Records = field(repr=False)
    mount_id: str

    async def note(self, token: Secret) -> None:
        """Record the owner of a platform access token before it is used."""
        claims = unverified_claims(token, _Claims)
        if claims is not None and (claims.appid or claims.azp):
            await _note(self.records, self.mount_id, (claims.appid or claims.azp).lower())


class _Claims(Struct):
    appid: str = ""
    azp: str = ""


@retry_on_conflict
async def _note(records: Records, mount_id: str, client_id: str) -> None:
    identities, expects = await identities_for_writing(records)
    proofs = identities.of(mount_id)
    if client_id not in proofs.platform:
        platform = (*proofs.platform, client_id)[-MOST_PLATFORM_IDENTITIES:]
        changed = identities.having(mount_id, evolve(proofs, platform=platform))
        await records.commit(Changes(expects, {keys.IDENTITIES: changed}))
