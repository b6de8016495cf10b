"""The page about the permissions that each feature needs, printed from the table that the service checks by."""

from __future__ import annotations

from collections.abc import Iterator

from cloudid_core.mounts import AUTH, SECRET
from cloudid_core.permissions.table import Api, Feature, features_of

from .tables import table


def page() -> Iterator[str]:
    """What stands below the title."""
    yield (
        "Give each mount its own credential, with only the permissions of the features that it uses. "
        "*Microsoft Graph* permissions are application permissions that an administrator consents to. *Azure "
        "Resource Manager* permissions are actions that a role assignment grants at a scope: the bound "
        "subscriptions of an auth method, or the scopes of an engine's roles. If several permissions are "
        "listed, any one of them is enough, and the first has the least privileges. *Source* is Microsoft's "
        "page about the permission."
    )
    yield "`GET <mount>/permissions` checks the permissions of the configured credential and lists the missing ones."
    for kind, title in ((AUTH, "Auth method"), (SECRET, "Secrets engine")):
        yield f"## {title}"
        yield table(("feature", "directory", "resource manager", "what for", "source"), map(_row, features_of(kind)))


def _row(feature: Feature) -> tuple[str, ...]:
    pages = dict.fromkeys(need.source for need in feature.needs)
    sources = ", ".join(f"[{source.rpartition('/')[2]}]({source})" for source in pages)
    return feature.name, _names(feature, Api.DIRECTORY), _names(feature, Api.RESOURCES), feature.doc, sources


def _names(feature: Feature, api: Api) -> str:
    return "; ".join(" or ".join(f"`{name}`" for name in need.any_of) for need in feature.needs if need.api is api)
