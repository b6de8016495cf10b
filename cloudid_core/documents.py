"""Print the OpenAPI document of the HTTP API: `python -m cloudid_core.documents`."""

from __future__ import annotations

from .catalog import CATALOG
from .mounts import BUILT_IN
from .openapi import document_of, generic_place, paths_of


def openapi() -> str:
    """Return the OpenAPI document of the HTTP API, with parameters for the paths of mounts."""
    built_in = {(mount.kind, mount.type): mount.path for mount in BUILT_IN}
    return document_of(
        paths_of(each, built_in.get((each.kind, each.type)) or generic_place(each.kind, each.type)) for each in CATALOG
    )


if __name__ == "__main__":
    print(openapi(), end="")  # noqa: T201  # that is what it is for
