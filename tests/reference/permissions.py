"""The page about the permissions that each feature needs, printed from the table that the service checks by."""

from __future__ import annotations

from collections.abc import Iterator

from cloudid_core.mounts import AUTH, SECRET
from cloudid_core.permissions.table import Api, Feature, features_of

from .tables import table


def page() -> Iterator[str]:
    """What stands below the title."""
    yield (
        "Give each mount a credential of its own, with the permissions of the features that it uses and no others."
        " *Directory* permissions are application permissions that an administrator consents to. *Resource manager*"
        " permissions are actions that a role assignment grants at a scope: the bound subscriptions of an"
        " authentication method, the scopes of an engine's roles. Where several names are given, any one is enough;"
        " the first has the least rights. *Source* is the page of the provider that names them."
    )
    yield "`GET <mount>/permissions` checks what the configured credential has and names what is missing."
    for kind, title in ((AUTH, "Authentication method"), (SECRET, "Secrets engine")):
        yield f"## {title}"
        yield table(("feature", "directory", "resource manager", "what for", "source"), map(_row, features_of(kind)))


def _row(feature: Feature) -> tuple[str, ...]:
    pages = dict.fromkeys(need.source for need in feature.needs)
    sources = ", ".join(f"[{source.rpartition('/')[2]}]({source})" for source in pages)
    return feature.name, _names(feature, Api.DIRECTORY), _names(feature, Api.RESOURCES), feature.doc, sources


def _names(feature: Feature, api: Api) -> str:
    return "; ".join(" or ".join(f"`{name}`" for name in need.any_of) for need in feature.needs if need.api is api)
