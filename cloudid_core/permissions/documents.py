"""The page about permissions, printed from the table.

`python -m cloudid_core.permissions.documents` prints what is kept as `docs/permissions.md`.
"""

from __future__ import annotations

from ..mounts import AUTH, SECRET
from .table import Api, Feature, features_of


def page() -> str:
    """The whole page, in Markdown."""
    parts = [
        "# Provider permissions",
        "Printed by `python -m cloudid_core.permissions.documents` from the table that the service checks by; a test"
        " compares.",
        "Give each mount a credential of its own, with the permissions of the features that it uses and no others."
        " *Directory* permissions are application permissions that an administrator consents to. *Resource manager*"
        " permissions are actions that a role assignment grants at a scope: the bound subscriptions of an"
        " authentication method, the scopes of an engine's roles. Where several names are given, any one is enough;"
        " the first has the least rights. *Source* is the page of the provider that names them.",
        "`GET <mount>/permissions` checks what the configured credential has and names what is missing.",
    ]
    for kind, title in ((AUTH, "Authentication method"), (SECRET, "Secrets engine")):
        rows = [_row(feature) for feature in features_of(kind)]
        heads = ("| feature | directory | resource manager | what for | source |", "| --- | --- | --- | --- | --- |")
        parts += [f"## {title}", "\n".join((*heads, *rows))]
    return "\n\n".join(parts) + "\n"


def _row(feature: Feature) -> str:
    pages = dict.fromkeys(need.source for need in feature.needs)
    sources = ", ".join(f"[{source.rpartition('/')[2]}]({source})" for source in pages)
    cells = [feature.name, _names(feature, Api.DIRECTORY), _names(feature, Api.RESOURCES), feature.doc, sources]
    return f"| {' | '.join(cells)} |"


def _names(feature: Feature, api: Api) -> str:
    return "; ".join(" or ".join(f"`{name}`" for name in need.any_of) for need in feature.needs if need.api is api)


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201  # that is what it is for
