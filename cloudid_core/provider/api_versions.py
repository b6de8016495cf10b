"""API versions: which version of Azure Resource Manager's API to use for a type of resource."""

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
"""The versions in Azure's own SDK, by folded type. Tests compare them with the installed SDK."""

PROVIDERS: Final = "2025-04-01"
"""The API version of the list of types itself."""

DEFAULT: Final = "2022-03-01"
"""For a type that is not in the list."""

MAX_AGE: Final = 6 * 3600.0
_VERSION: Final = re.compile(r"(20[0-9]{2}-[0-9]{2}-[0-9]{2})(-[a-z]{1,32})?")


class _Type(msgspec.Struct, rename="camel"):
    resource_type: str = ""
    api_versions: list[str] | None = None


class _Provider(msgspec.Struct, rename="camel"):
    resource_types: list[_Type]


async def api_version(client: Client, resource_id: ResourceId) -> str:
    """Return the API version for a resource.

    For an unknown type it is the newest, and a preview only if there is no other.

    Azure's list is cached for hours, for all users of the same cloud.
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
