"""Scopes: the hierarchy of management groups, subscriptions, resource groups and resources."""

from __future__ import annotations

import re
from typing import Final

SCOPE: Final = re.compile(
    r"/"
    r"|/subscriptions/(?P<subscription>[^/]+)(?:/resourcegroups/(?P<group>[^/]+))?(?:/providers(?:/[^/]+){3,})?"
    r"|/providers/microsoft\.management/managementgroups/(?P<management>[^/]+)"
)
"""In lower case."""

MANAGEMENT_GROUP: Final = "contoso"
"""It contains all subscriptions, as does the root group, whose name is the tenant's id."""

IN_MANAGEMENT: Final = "/providers/microsoft.management/"


def covers(outer: str, inner: str) -> bool:
    """Whether the outer scope is, or contains, the inner one."""
    outer, inner = outer.lower(), inner.lower()
    return (
        outer in ("/", inner)
        or inner.startswith(f"{outer}/")
        or (outer.startswith(IN_MANAGEMENT) and inner != "/" and not inner.startswith(IN_MANAGEMENT))
    )


def subscription_of(scope: str) -> str | None:
    """The scope of the subscription that contains it, in lower case."""
    match = SCOPE.fullmatch(scope.lower())
    return f"/subscriptions/{match['subscription']}" if match and match["subscription"] else None
