"""Certificates of applications: the public halves of keys that sign their assertions.

The directory has one list of them for each application, which is replaced as a whole: what is there is read, and
written back with one more or without one. What is written back names its key by id alone. The directory refuses an id
that it does not know, so a certificate that somebody removed meanwhile does not come back; the list is read anew then.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Final

import msgspec

from ..effects import Instant
from ..errors import ProviderAmbiguous, ProviderProblem
from ..forms import Json
from ..values import rfc3339
from .client import Client, get_json
from .objects import address, directory_call
from .propagation import pause
from .responses import is_absent, unless

OVERTAKEN: Final = (400, "Request_BadRequest")
"""What the directory says of an id that it does not know, and of other mistakes."""
TRIES: Final = 3
"""How often a list is read anew that others change at the same time."""


class _Listed(msgspec.Struct, rename="camel"):
    key_credentials: list[dict[str, Json]]

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
    try:
        await _rewrite(client, object_id, name, [added])
    except ProviderAmbiguous:
        known = await _listed(client, object_id)
        if known.without(name) == known.key_credentials:
            raise


async def remove_certificate(client: Client, object_id: str, name: str) -> bool:
    """Remove the certificate of that name; `False` if none shows, or no such application."""
    return await unless(is_absent, _rewrite(client, object_id, name, []), False)


async def _rewrite(client: Client, object_id: str, name: str, added: list[dict[str, Json]]) -> bool:
    """Replace what is listed under a name; `False` if nothing differs."""
    for tries_left in reversed(range(TRIES)):
        known = await _listed(client, object_id)
        wanted = known.without(name) + added
        if wanted == known.key_credentials:
            return False
        target = address(client, "applications", object_id)
        try:
            await client.call(directory_call(client, "PATCH", target, {"keyCredentials": wanted}, idempotent=False))
            return True
        except ProviderProblem as problem:
            is_overtaken = (problem.status, problem.code) == OVERTAKEN
            if not (is_overtaken and tries_left and await pause(client)):
                raise
    raise AssertionError  # the last try returns or raises


async def _listed(client: Client, object_id: str) -> _Listed:
    """What is registered, without the keys."""
    target = address(client, "applications", object_id)
    found = await get_json(client, target, client.cloud.directory_scope, _Listed)
    return _Listed([{**one, "key": None} for one in found.key_credentials])
