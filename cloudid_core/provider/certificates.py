"""Certificates of applications: the public halves of keys that sign their assertions.

The directory has one list of them for each application, which is replaced as a whole: what is there is read, and
written back with one more or without one. What is written back names its key by id alone. The directory refuses an id
that it does not know, so a certificate that was removed does not come back; the list is read anew then, until it no
longer shows that.

A certificate that the list does not show yet would be lost. So one change of a list is made at a time, whichever nodes,
mounts and roles want to, and none before the list shows all that was added within the settle time.
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
"""What the directory says of an id that it does not know, and of other mistakes."""

MOST_OVERTAKEN: Final = 3
"""How often the directory may refuse a list that it showed without a change: another change is not the reason then."""

UNDER_WAY: Final = "another change of the application's certificates is under way"
LAGGING: Final = "the directory does not show all certificates of the application yet"

_Change: TypeAlias = Callable[[Set[str]], Program[bool]]
"""Changes a list once that shows certificates of these names; `False` if nothing differs."""


@frozen
class CertificateList:
    """What whoever changes the certificates of an application has to know."""

    busy_until: Instant = 0.0
    """Until then a change of somebody else may be under way."""
    added: Mapping[str, Instant] = field(factory=dict[str, Instant])
    """When the latest certificates were added, by their names."""

    def since(self, instant: Instant) -> dict[str, Instant]:
        """Those that were added after an instant."""
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
    """Register a certificate under a name and id of our choice, beside those that are there.

    `ProviderAmbiguous`: it may be there.
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
            with suppress(CloudidError):  # a look that fails tells nothing
                if name in (await _listed(client, object_id)).names:
                    return True
            raise

    await _in_turn(client, object_id, name, add, adds=True)


async def remove_certificate(client: Client, object_id: str, name: str) -> bool:
    """Remove the certificate of that name; `False` if none shows, or no such application."""

    async def remove(shown: Set[str]) -> bool:
        return await unless(is_absent, _rewrite(client, object_id, name, [], shown), False)

    return await _in_turn(client, object_id, name, remove, adds=False)


async def _in_turn(client: Client, object_id: str, name: str, change: _Change, *, adds: bool) -> bool:
    """Make a change while nobody else makes one; `DEADLINE_PASSED` if its turn does not come.

    A change without a definite end may be under way for a while, and what it was to add may be there.
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
            added.pop(name, None)  # nobody has to see what is to be removed
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
    """Replace what is listed under a name, once the list shows what it has to; `False` if nothing differs.

    A list that is refused is read again, because another change may have overtaken it. If it still is the same and
    shows nothing that this node removed a moment ago, Azure refuses it for good.
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
    """Whether a list still shows a certificate that this node removed within the settle time."""
    removed, settled = client.caches.removed_certificates, await Now() - client.settings.settle_time
    return any((removed.get((object_id, str(name))) or 0.0) > settled for name in listed.names)


async def _listed(client: Client, object_id: str) -> _Listed:
    """What is registered, without the keys."""
    target = address(client, "applications", object_id)
    found = await get_json(client, target, client.cloud.directory_scope, _Listed)
    return _Listed([{**one, "key": None} for one in found.key_credentials])
