"""The page about permissions, printed from the table.

`python -m cloudid_core.permissions.documents` prints what is kept as `docs/reference/permissions.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..mounts import AUTH, SECRET
from .table import Api, Feature, Need, features_of


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


def role_definition(kind: str, name: str, description: str) -> str:
    """The command that makes a custom role of all actions that the features of a kind of mount need."""
    actions = sorted({need.any_of[0] for need in _needs(features_of(kind), Api.RESOURCES)})
    listed = ",\n".join(f'      "{action}"' for action in actions)
    return f"""```console
$ az role definition create --output none --role-definition '{{
    "Name": "{name}",
    "Description": "{description}",
    "AssignableScopes": ["/subscriptions/'$SUBSCRIPTION'"],
    "Actions": [
{listed}
    ]}}'
```
"""


def directory_permissions(kind: str, *names: str) -> str:
    """The commands that ask for the permissions in the directory that features need, the least ones."""
    wanted = [feature for feature in features_of(kind) if feature.name in names]
    permissions = sorted({need.any_of[0] for need in _needs(wanted, Api.DIRECTORY)})
    add = "$ az ad app permission add --id $ENGINE --api $GRAPH --api-permissions"
    return "\n".join(("```console", *(f"{add} $(role_id {each})=Role" for each in permissions), "```", ""))


def _needs(features: Iterable[Feature], api: Api) -> Iterator[Need]:
    return (need for feature in features for need in feature.needs if need.api is api)


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201  # that is what it is for
