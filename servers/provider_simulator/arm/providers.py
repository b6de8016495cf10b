"""Resource providers: namespaces, their resource types, and the API versions of each type."""

from __future__ import annotations

from typing import Final

from ..engine.requests import Call, Json, Refusal
from ..engine.routing import Route
from ..world.machines import SCALE_SET, USER_IDENTITY, VIRTUAL_MACHINE, WEB_SITE
from ..world.world import World
from .conventions import list_items, require_place

TYPE_VERSIONS: Final[dict[str, tuple[str, ...] | None]] = {
    VIRTUAL_MACHINE: ("2024-07-01", "2023-09-01", "2022-11-01"),
    SCALE_SET: ("2024-07-01", "2023-09-01", "2022-11-01"),
    USER_IDENTITY: ("2025-01-31-preview", "2024-11-30", "2023-01-31"),
    WEB_SITE: ("2022-11-01-preview", "2022-09-01", "2022-03-01", "2021-03-01"),
    "Microsoft.HybridCompute/operations": None,
    "Microsoft.HybridCompute/machines": ("2024-07-31-preview", "2024-07-10", "2022-12-27"),
}
"""Resource types, and the API versions that each of them lists, newest first. A type may list none."""

DISPLAY_LOCATIONS: Final = {
    "westus2": "West US 2",
    "westeurope": "West Europe",
    "northeurope": "North Europe",
    "eastus": "East US",
    "germanywestcentral": "Germany West Central",
}
"""How some resource types write their location."""


def list_providers(world: World, call: Call) -> Json:
    if "subscription" in call.names:
        require_place(world, call.names)
    namespaces = dict.fromkeys(name.split("/")[0] for name in TYPE_VERSIONS)
    return list_items(world, call, [_show(call, namespace) for namespace in namespaces])


def read_provider(world: World, call: Call) -> Json:
    if "subscription" in call.names:
        require_place(world, call.names)
    wanted = call.names["namespace"].lower()
    namespace = next((name.split("/")[0] for name in TYPE_VERSIONS if name.lower().startswith(f"{wanted}/")), None)
    if namespace is None:
        raise Refusal(404, "InvalidResourceNamespace", "The resource namespace is invalid.")
    return _show(call, namespace)


def _show(call: Call, namespace: str) -> Json:
    subscription = call.names.get("subscription")
    scope = f"/subscriptions/{subscription.lower()}" if subscription else ""
    locations = list(DISPLAY_LOCATIONS.values())
    types = [
        {"resourceType": kind, "locations": locations, **({"apiVersions": versions} if versions else {})}
        for space, kind, versions in ((*name.split("/"), versions) for name, versions in TYPE_VERSIONS.items())
        if space == namespace
    ]
    own_id = f"{scope}/providers/{namespace}"
    return {"id": own_id, "namespace": namespace, "registrationState": "Registered", "resourceTypes": types}


ROUTES: Final = (
    Route("GET", "/arm/providers", list_providers),
    Route("GET", "/arm/providers/{namespace}", read_provider),
    Route("GET", "/arm/subscriptions/{subscription}/providers", list_providers),
    Route("GET", "/arm/subscriptions/{subscription}/providers/{namespace}", read_provider),
)
