"""The hierarchy of scopes: tenants, management groups, subscriptions and resource groups; and resource providers.

A provider has a namespace, resource types, and the API versions of each type.
"""

from __future__ import annotations

from typing import Final

from ..engine.requests import Call, Json, Refusal
from ..engine.routing import Route
from ..world.access import MANAGEMENT_GROUP, may
from ..world.machines import SCALE_SET, USER_IDENTITY, VIRTUAL_MACHINE, WEB_SITE
from ..world.world import World
from .conventions import list_items, require_place

MANAGEMENT_TYPE: Final = "Microsoft.Management/managementGroups"
MANAGEMENT: Final = f"/providers/{MANAGEMENT_TYPE}"
TYPE_VERSIONS: Final[dict[str, tuple[str, ...] | None]] = {
    VIRTUAL_MACHINE: ("2026-04-01", "2024-07-01", "2023-09-01", "2022-11-01"),
    SCALE_SET: ("2026-04-01", "2024-07-01", "2023-09-01", "2022-11-01"),
    USER_IDENTITY: ("2025-01-31-preview", "2024-11-30", "2023-01-31"),
    WEB_SITE: ("2022-11-01-preview", "2022-09-01", "2022-03-01", "2021-03-01"),
    "Microsoft.HybridCompute/operations": None,
    "Microsoft.HybridCompute/machines": ("2024-07-31-preview", "2024-07-10", "2022-12-27"),
}
"""Resource types, and the API versions that each of them lists, newest first. A type may list none."""

POLICIES: Final = {
    "locationPlacementId": "Public_2014-09-01",
    "quotaId": "PayAsYouGo_2014-09-01",
    "spendingLimit": "Off",
}
DISPLAY_LOCATIONS: Final = {
    "westus2": "West US 2",
    "westeurope": "West Europe",
    "northeurope": "North Europe",
    "eastus": "East US",
    "germanywestcentral": "Germany West Central",
}
"""How some resource types write their location."""


def list_tenants(world: World, call: Call) -> Json:
    shown = {"id": f"/tenants/{world.tenant_id}", "tenantId": world.tenant_id, "defaultDomain": world.tenant_domain}
    return list_items(world, call, [shown])


def list_subscriptions(world: World, call: Call) -> Json:
    """Those that the caller may see."""
    action = "Microsoft.Resources/subscriptions/read"
    visible = [own for own in world.subscriptions if may(world, call.caller.object_id, action, f"/subscriptions/{own}")]
    return list_items(world, call, [_show_subscription(world, own_id) for own_id in visible])


def _show_subscription(world: World, own_id: str) -> Json:
    return {
        "id": f"/subscriptions/{own_id}",
        "authorizationSource": "RoleBased",
        "managedByTenants": [],
        "tags": {},
        "subscriptionId": own_id,
        "tenantId": world.tenant_id,
        "displayName": _subscription_name(world, own_id),
        "state": "Enabled",
        "subscriptionPolicies": POLICIES,
    }


def _subscription_name(world: World, own_id: str) -> str:
    return f"Subscription {world.subscriptions.index(own_id) + 1}"


def list_locations(world: World, call: Call) -> Json:
    folder = f"/subscriptions/{require_place(world, call.names)[0]}/locations"
    items = DISPLAY_LOCATIONS.items()
    return list_items(world, call, [{"id": f"{folder}/{key}", "name": key, "displayName": name} for key, name in items])


def list_resource_groups(world: World, call: Call) -> Json:
    subscription, _ = require_place(world, call.names)
    own = [name for (of, _), name in world.resource_groups.items() if of == subscription]
    return list_items(world, call, [_show_resource_group(subscription, name) for name in own])


def read_resource_group(world: World, call: Call) -> Json:
    subscription, group = require_place(world, call.names)
    return _show_resource_group(subscription, world.resource_groups[subscription, group])


def check_resource_group(world: World, call: Call) -> None:
    """Whether the group exists: 204 or 404."""
    require_place(world, call.names)


def _show_resource_group(subscription: str, name: str) -> Json:
    return {
        "id": f"/subscriptions/{subscription}/resourceGroups/{name}",
        "name": name,
        "type": "Microsoft.Resources/resourceGroups",
        "location": "westus2",
        "tags": {},
        "properties": {"provisioningState": "Succeeded"},
    }


def list_management_groups(world: World, call: Call) -> Json:
    return list_items(world, call, [_show_management_group(world, name) for name in _management_groups(world)])


def read_management_group(world: World, call: Call) -> Json:
    """With `$expand=children` also what the group contains."""
    name, root = _require_management_group(world, call), world.tenant_id
    above = {"id": f"{MANAGEMENT}/{root}", "name": root, "displayName": _management_groups(world)[root]}
    shown = _show_management_group(world, name)
    shown["properties"]["details"] = {"version": 1, "parent": None if name == root else above}
    if call.query.get("$expand", "").lower() == "children":
        shown["properties"]["children"] = _children(world, name)
    return shown


def list_descendants(world: World, call: Call) -> Json:
    """Everything below the group, each with its parent."""
    groups = list(_management_groups(world))
    below = groups[groups.index(_require_management_group(world, call)) :]
    found = [
        {
            **{name: child[name] for name in ("id", "name", "type")},
            "properties": {"displayName": child["displayName"], "parent": {"id": f"{MANAGEMENT}/{group}"}},
        }
        for group in below
        for child in _children(world, group)
    ]
    return list_items(world, call, found)


def _management_groups(world: World) -> dict[str, str]:
    """Display names by name: the root group, and the group below it that contains all subscriptions."""
    return {world.tenant_id: "Tenant Root Group", MANAGEMENT_GROUP: MANAGEMENT_GROUP.capitalize()}


def _require_management_group(world: World, call: Call) -> str:
    name = call.names["name"].lower()
    if name not in _management_groups(world):
        raise Refusal(404, "NotFound", f"The management group '{name}' cannot be found.")
    return name


def _show_management_group(world: World, name: str) -> Json:
    properties = {"tenantId": world.tenant_id, "displayName": _management_groups(world)[name]}
    return {"id": f"{MANAGEMENT}/{name}", "name": name, "type": MANAGEMENT_TYPE, "properties": properties}


def _children(world: World, name: str) -> list[Json]:
    if name == world.tenant_id:
        shown = _show_management_group(world, MANAGEMENT_GROUP)
        return [{**shown, "displayName": shown.pop("properties")["displayName"]}]
    return [
        {
            "id": f"/subscriptions/{own_id}",
            "name": own_id,
            "type": "/subscriptions",
            "displayName": _subscription_name(world, own_id),
        }
        for own_id in world.subscriptions
    ]


def list_providers(world: World, call: Call) -> Json:
    require_place(world, call.names)
    namespaces = dict.fromkeys(name.split("/")[0] for name in TYPE_VERSIONS)
    return list_items(world, call, [_show_provider(call, namespace) for namespace in namespaces])


def read_provider(world: World, call: Call) -> Json:
    require_place(world, call.names)
    wanted = call.names["namespace"].lower()
    namespace = next((name.split("/")[0] for name in TYPE_VERSIONS if name.lower().startswith(f"{wanted}/")), None)
    if namespace is None:
        raise Refusal(404, "InvalidResourceNamespace", "The resource namespace is invalid.")
    return _show_provider(call, namespace)


def _show_provider(call: Call, namespace: str) -> Json:
    subscription = call.names.get("subscription")
    scope = f"/subscriptions/{subscription.lower()}" if subscription else ""
    locations = list(DISPLAY_LOCATIONS.values())
    types = [
        {"resourceType": kind, "locations": locations, "apiVersions": versions or (), "capabilities": "None"}
        for space, kind, versions in ((*name.split("/"), versions) for name, versions in TYPE_VERSIONS.items())
        if space == namespace
    ]
    own_id = f"{scope}/providers/{namespace}"
    return {"id": own_id, "namespace": namespace, "registrationState": "Registered", "resourceTypes": types}


ROUTES: Final = (
    Route("GET", "/arm/tenants", list_tenants),
    Route("GET", "/arm/subscriptions", list_subscriptions),
    Route(
        "GET",
        "/arm/subscriptions/{subscription}",
        lambda w, call: _show_subscription(w, require_place(w, call.names)[0]),
    ),
    Route("GET", "/arm/subscriptions/{subscription}/locations", list_locations),
    Route("GET", "/arm/subscriptions/{subscription}/resourceGroups", list_resource_groups),
    Route("HEAD", "/arm/subscriptions/{subscription}/resourceGroups/{group}", check_resource_group),
    Route("GET", "/arm/subscriptions/{subscription}/resourceGroups/{group}", read_resource_group),
    Route("GET", f"/arm{MANAGEMENT}", list_management_groups),
    Route("GET", f"/arm{MANAGEMENT}/{{name}}", read_management_group),
    Route("GET", f"/arm{MANAGEMENT}/{{name}}/descendants", list_descendants),
    Route("GET", "/arm/providers", list_providers),
    Route("GET", "/arm/providers/{namespace}", read_provider),
    Route("GET", "/arm/subscriptions/{subscription}/providers", list_providers),
    Route("GET", "/arm/subscriptions/{subscription}/providers/{namespace}", read_provider),
)
