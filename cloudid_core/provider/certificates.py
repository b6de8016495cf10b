"""Certificates of app registrations: the public keys that verify their assertions.

Microsoft Entra ID has one list of them for each app registration, which can only be replaced as a whole: the list is
read, changed and written back, with only the ids of existing keys. Entra ID refuses an unknown id, so a removed
certificate cannot return. After such a refusal, the list is read again until it no longer shows the removed
certificate.

A certificate that the list does not show yet would be lost. So only one change of a list is made at a time, across all
nodes, mounts and roles, and no change before the list shows everything that was added within the settle time.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from typing import Final, TypeAlias

import msgspec
from attrs import evolve, field, frozen

from ..effects import Instant, Now, Program
from ..errors import CloudidError, Code, Conflict, ProviderAmbiguous, ProviderProblem, Refused
from ..forms import Json
from ..store import Changes, Found, keys
from ..values import rfc3339
from .client import Client, get_json
from .objects import address, directory_call
from .propagation import pause
from .responses import is_absent, unless

OVERTAKEN: Final = (400, "Request_BadRequest")
"""Entra ID's answers to an unknown id, and to other mistakes."""

MOST_OVERTAKEN: Final = 3
"""How often Entra ID may refuse an unchanged list before another change is ruled out as the reason."""

UNDER_WAY: Final = "another change of the app registration's certificates is in progress"
LAGGING: Final = "Microsoft Entra ID does not show all certificates of the app registration yet"

_Change: TypeAlias = Callable[[Set[str]], Program[bool]]
"""Changes a list once it shows certificates with these names. Returns `False` if nothing changes."""


@frozen
class CertificateList:
    """What a change of an app registration's certificates must know."""

    busy_until: Instant = 0.0
    """Until when another change may be in progress."""
    added: Mapping[str, Instant] = field(factory=dict[str, Instant])
    """When the latest certificates were added, by their names."""

    def since(self, instant: Instant) -> dict[str, Instant]:
        """Return those that were added after an instant."""
        return {name: at for name, at in self.added.items() if at > instant}


class _Listed(msgspec.Struct, rename="camel"):
    key_credentials: list[dict[str, Json]]

    @property
    def names(self) -> set[Json]:
        return {one.get("displayName") for one in self.key_credentials}

    def without(self, name: str) -> list[dict[str, Json]]:
        return [one for one in self.key_credentials if one.get("displayName") != name]


async def add_certificate(
    client: Client, object_id: str, *, name: str, key_id: str, der: bytes, starts_at: Instant, ends_at: Instant
) -> None:
    """Add a certificate under a chosen name and id.

    `ProviderAmbiguous`: it may exist.
    """
    added: dict[str, Json] = {
        "keyId": key_id,
        "displayName": name,
        "type": "AsymmetricX509Cert",
        "usage": "Verify",
        "key": b64encode(der).decode(),
        "startDateTime": rfc3339.show(starts_at),
        "endDateTime": rfc3339.show(ends_at),
    }

    async def add(shown: Set[str]) -> bool:
        try:
            return await _rewrite(client, object_id, name, [added], shown)
        except ProviderAmbiguous:
            with suppress(CloudidError):  # a failed look-up proves nothing
                if name in (await _listed(client, object_id)).names:
                    return True
            raise

    await _in_turn(client, object_id, name, add, adds=True)


async def remove_certificate(client: Client, object_id: str, name: str) -> bool:
    """Remove the certificate with this name. Return `False` if it, or the app registration, does not exist."""

    async def remove(shown: Set[str]) -> bool:
        return await unless(is_absent, _rewrite(client, object_id, name, [], shown), False)

    return await _in_turn(client, object_id, name, remove, adds=False)


async def _in_turn(client: Client, object_id: str, name: str, change: _Change, *, adds: bool) -> bool:
    """Make a change while no other change is in progress. Refuse with `DEADLINE_PASSED` if its turn does not come.

    A change with an unknown outcome may be in progress for a while, and may have added its certificate.
    """
    claim = await _claim(client, object_id, name, adds=adds)
    added = dict(claim.record.added)
    try:
        is_changed = await change(added.keys() - {name})
    except ProviderAmbiguous:
        raise
    except CloudidError:
        added.pop(name, None)
        await _release(client, claim, added)
        raise
    await _release(client, claim, added)
    return is_changed


async def _claim(client: Client, object_id: str, name: str, *, adds: bool) -> Found[CertificateList]:
    key, settings, retries = keys.certificates(object_id), client.settings, 0
    while True:
        found, expects = await client.records.find_for_writing(key, CertificateList)
        before, now = found.record if found else CertificateList(), await Now()
        if now >= before.busy_until:
            added = before.since(now - settings.settle_time)
            added.pop(name, None)  # a certificate that is removed need not become visible
            if adds:
                added[name] = now
            claim = CertificateList(client.deadline.at + settings.request_grace, added)
            with suppress(Conflict):
                return Found(key, claim, await client.records.commit(Changes(expects, {key: claim})))
        retries += 1
        if not await pause(client, retries):
            raise Refused(Code.DEADLINE_PASSED, UNDER_WAY)


async def _release(client: Client, claim: Found[CertificateList], added: Mapping[str, Instant]) -> None:
    after = Changes(claim.expected, {claim.key: evolve(claim.record, busy_until=0.0, added=added)})
    with suppress(CloudidError):  # the claim ends by itself
        await client.records.commit(after if added else Changes(claim.expected, deletes=(claim.key,)))


async def _rewrite(client: Client, object_id: str, name: str, added: list[dict[str, Json]], shown: Set[str]) -> bool:
    """Replace what is listed under a name, once the list is up to date. Return `False` if nothing changes.

    After a refusal the list is read again, because another change may have been faster. If the list is unchanged and
    shows no certificate that this node has just removed, the refusal is final.
    """
    retries, refused = 0, list[_Listed]()
    while True:
        known = await _listed(client, object_id)
        retries += 1
        if shown - known.names:
            if not await pause(client, retries):
                raise Refused(Code.DEADLINE_PASSED, LAGGING)
            continue
        wanted = known.without(name) + added
        if wanted == known.key_credentials:
            return False
        target = address(client, "applications", object_id)
        try:
            await client.call(directory_call(client, "PATCH", target, {"keyCredentials": wanted}, idempotent=False))
            if not added:
                client.caches.removed_certificates.put((object_id, name), await Now())
            return True
        except ProviderProblem as problem:
            refused.append(known)
            is_overtaken = (problem.status, problem.code) == OVERTAKEN and wanted != added
            is_final = refused.count(known) >= MOST_OVERTAKEN and not await _is_outdated(client, object_id, known)
            if is_final or not (is_overtaken and await pause(client, retries)):
                raise


async def _is_outdated(client: Client, object_id: str, listed: _Listed) -> bool:
    """Return whether a list still shows a certificate that this node removed within the settle time."""
    removed, settled = client.caches.removed_certificates, await Now() - client.settings.settle_time
    return any((removed.get((object_id, str(name))) or 0.0) > settled for name in listed.names)


async def _listed(client: Client, object_id: str) -> _Listed:
    """Return the registered certificates, without their keys."""
    target = address(client, "applications", object_id)
    found = await get_json(client, target, client.cloud.directory_scope, _Listed)
    return _Listed([{**one, "key": None} for one in found.key_credentials])
