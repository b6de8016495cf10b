"""The hierarchy of scopes: tenants, management groups, subscriptions and resource groups."""

from __future__ import annotations

from typing import Final

from ..engine.requests import Call, Json, Refusal
from ..engine.routing import Route
from ..world.access import may
from ..world.scopes import MANAGEMENT_GROUP
from ..world.world import World
from .conventions import list_items, require_place
from .providers import DISPLAY_LOCATIONS

MANAGEMENT_TYPE: Final = "Microsoft.Management/managementGroups"
MANAGEMENT: Final = f"/providers/{MANAGEMENT_TYPE}"


def list_tenants(world: World, call: Call) -> Json:
    shown = {"id": f"/tenants/{world.tenant_id}", "tenantId": world.tenant_id, "defaultDomain": world.tenant_domain}
    return list_items(world, call, [shown])


def list_subscriptions(world: World, call: Call) -> Json:
    """Those that the caller may see."""
    action = "Microsoft.Resources/subscriptions/read"
    visible = [own for own in world.subscriptions if may(world, call.caller.object_id, action, f"/subscriptions/{own}")]
    return list_items(world, call, [_show_subscription(world, own_id) for own_id in visible])


def read_subscription(world: World, call: Call) -> Json:
    return _show_subscription(world, require_place(world, call.names)[0])


def _show_subscription(world: World, own_id: str) -> Json:
    return {
        "id": f"/subscriptions/{own_id}",
        "subscriptionId": own_id,
        "tenantId": world.tenant_id,
        "displayName": _subscription_name(world, own_id),
        "state": "Enabled",
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


ROUTES: Final = (
    Route("GET", "/arm/tenants", list_tenants),
    Route("GET", "/arm/subscriptions", list_subscriptions),
    Route("GET", "/arm/subscriptions/{subscription}", read_subscription),
    Route("GET", "/arm/subscriptions/{subscription}/locations", list_locations),
    Route("GET", "/arm/subscriptions/{subscription}/resourceGroups", list_resource_groups),
    Route("HEAD", "/arm/subscriptions/{subscription}/resourceGroups/{group}", check_resource_group),
    Route("GET", "/arm/subscriptions/{subscription}/resourceGroups/{group}", read_resource_group),
    Route("GET", f"/arm{MANAGEMENT}", list_management_groups),
    Route("GET", f"/arm{MANAGEMENT}/{{name}}", read_management_group),
    Route("GET", f"/arm{MANAGEMENT}/{{name}}/descendants", list_descendants),
)
