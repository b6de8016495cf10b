"""Api-versions: the version of the resource manager's interface to ask for a type of resource."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from ..effects import Now
from ..values import SCALE_SET, SCALE_SET_INSTANCE, USER_ASSIGNED_IDENTITY, VIRTUAL_MACHINE, ResourceId, fold
from .client import Client, get_json
from .urls import url

KNOWN: Final[Mapping[str, str]] = {
    fold(VIRTUAL_MACHINE): "2026-04-01",
    fold(SCALE_SET): "2026-04-01",
    fold(SCALE_SET_INSTANCE): "2026-04-01",
    fold(USER_ASSIGNED_IDENTITY): "2024-11-30",
}
"""The versions of Azure's own SDK, by folded type. Tests compare them with the installed SDK."""

PROVIDERS: Final = "2025-04-01"
"""The version of the list of types itself."""

DEFAULT: Final = "2022-03-01"
"""For a type that the list lacks."""

MAX_AGE: Final = 6 * 3600.0
_VERSION: Final = re.compile(r"(20[0-9]{2}-[0-9]{2}-[0-9]{2})(-[a-z]{1,32})?")


class _Type(msgspec.Struct, rename="camel"):
    resource_type: str = ""
    api_versions: list[str] | None = None


class _Provider(msgspec.Struct, rename="camel"):
    resource_types: list[_Type]


async def api_version(client: Client, resource_id: ResourceId) -> str:
    """The version to ask for a resource with. Of a type that we do not know the newest, previews last.

    What the provider says is remembered for hours, for everybody who uses this cloud.
    """
    folded = fold(resource_id.type)
    if folded in KNOWN:
        return KNOWN[folded]
    key = ("api-version", client.cloud, folded)
    now = await Now()
    known: tuple[str, float] | None = client.caches.facts.get(key)
    if known is None or not 0 <= now - known[1] < MAX_AGE:
        client.caches.facts.put(key, known := (await _newest(client, resource_id), now))
    return known[0]


async def _newest(client: Client, resource_id: ResourceId) -> str:
    path = ("subscriptions", resource_id.subscription, "providers", resource_id.namespace)
    address = url(client.cloud.resource_manager, *path, **{"api-version": PROVIDERS})
    provider = await get_json(client, address, client.cloud.resource_scope, _Provider)
    wanted = fold("/".join(resource_id.types))
    versions = [
        version
        for listed in provider.resource_types
        if fold(listed.resource_type) == wanted
        for version in listed.api_versions or ()
        if _VERSION.fullmatch(version)
    ]
    return max(versions, key=lambda version: (len(version) == len(DEFAULT), version), default=DEFAULT)  # previews last
