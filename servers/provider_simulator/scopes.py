"""Scopes: the places in the hierarchy of management groups, subscriptions, resource groups and resources."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .routing import Refusal

if TYPE_CHECKING:
    from .world import World

SCOPE: Final = re.compile(
    r"/subscriptions/(?P<subscription>[^/]+)(?:/resourcegroups/(?P<group>[^/]+)(?:/providers(?:/[^/]+){3,})?)?"
    r"|/providers/microsoft\.management/managementgroups/(?P<management>[^/]+)"
)
"""In lower case."""

MANAGEMENT_GROUP: Final = "contoso"
"""It holds all subscriptions, as does the root group, which is called like the tenant."""

IN_MANAGEMENT: Final = "/providers/microsoft.management/"


def require_place(world: World, subscription: str, group: str | None = None) -> None:
    """The subscription and, where one is named, the resource group exist; `Refusal` 404."""
    if subscription.lower() not in world.subscriptions:
        raise Refusal(404, "SubscriptionNotFound", "The subscription could not be found.")
    if group is not None and (subscription.lower(), group.lower()) not in world.resource_groups:
        raise Refusal(404, "ResourceGroupNotFound", "The resource group could not be found.")


def require_scope(world: World, scope: str) -> str:
    """The scope exists, as far as subscription, groups and the form of a resource's id go; `Refusal` 400 or 404."""
    match = SCOPE.fullmatch(scope.lower())
    if match is None:
        raise Refusal(400, "InvalidScope", "That is not a scope.")
    if match["management"] is None:
        require_place(world, match["subscription"], match["group"])
    elif match["management"] not in (MANAGEMENT_GROUP, world.tenant_id):
        raise Refusal(404, "ManagementGroupNotFound", "The management group could not be found.")
    return scope


def covers(outer: str, inner: str) -> bool:
    """Whether what holds at the outer scope holds at the inner one."""
    outer, inner = outer.lower(), inner.lower()
    return (
        outer in ("/", inner)
        or inner.startswith(f"{outer}/")
        or (outer.startswith(IN_MANAGEMENT) and not inner.startswith(IN_MANAGEMENT))
    )


def subscription_of(scope: str) -> str | None:
    """The scope of its subscription, in lower case."""
    match = SCOPE.fullmatch(scope.lower())
    return f"/subscriptions/{match['subscription']}" if match and match["subscription"] else None
