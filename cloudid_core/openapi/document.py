"""The OpenAPI 3.1 document for the routes of some mounts.

The routes of a component are the same at each of its mounts, so they are rendered once, with a mark where the mount's
path belongs. Documents are assembled from these texts, which is cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import Final

import msgspec

from ..forms import Json, Schema, schemas
from ..mounts import AUTH, BUILT_IN, Mount
from ..routing import Component
from ..version import VERSION
from .operations import REFUSALS, SCHEMAS, WRAP_TTL, operation_of, parameters_in, refusal, shown_path

_encode: Final = msgspec.json.Encoder(enc_hook=dict).encode  # of read-only views
MARK: Final = "\0"
MARK_IN_JSON: Final = "\\u0000"
GENERIC_FROM: Final = 50
"""From this number of mounts on, a document has each type only once, with the mount's path as a parameter."""

DOCUMENT: Final = schemas.members(
    TEXT="openapi",
    info=schemas.each(schemas.ANY),
    servers=schemas.list_of(schemas.ANY),
    security=schemas.list_of(schemas.ANY),
    components=schemas.each(schemas.ANY),
    paths=schemas.each(schemas.ANY),
)
"""The schema of the document itself."""

ABOUT: Final = (
    "POST and PUT are equivalent, and so are LIST and GET with `list=true`. A path parameter of `sys` "
    "may have several segments. A body may have more members than are listed; the response then has a "
    "warning."
)
HEAD: Final[Json] = {
    "openapi": "3.1.0",
    "info": {
        "title": "cloudid",
        "version": VERSION,
        "description": ABOUT,
        "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    },
    "servers": [{"url": "/v1"}],
    "security": [{"token": []}, {"bearer": []}],
    "components": {
        "securitySchemes": {
            "token": {"type": "apiKey", "in": "header", "name": "X-Vault-Token"},
            "bearer": {"type": "http", "scheme": "bearer"},
        },
        "parameters": {"WrapTTL": WRAP_TTL},
        "schemas": SCHEMAS,
        "responses": {f"Refused{status}": refusal(status) for status in REFUSALS},
    },
}


def place_of(mount: Mount, *, generic: bool = False) -> str:
    """Return where a mount is in the document. `generic`: one place for all mounts of a type."""
    return generic_place(mount.kind, mount.type) if generic and mount not in BUILT_IN else mount.path


def generic_place(kind: str, type_name: str) -> str:
    return f"{AUTH}/{{{type_name}_mount_path}}" if kind == AUTH else f"{{{type_name}_mount_path}}"


def paths_of(component: Component, place: str) -> str:
    """Return the paths of a component at a place, as members of the document's JSON."""
    name = place.partition("{")[2].removesuffix("}")
    return _paths(component, name).replace(MARK_IN_JSON, place)


def document_of(paths: Iterable[str]) -> str:
    head = _encode(HEAD).decode().removesuffix("}")
    return f'{head},"paths":{{{",".join(dict.fromkeys(paths))}}}}}\n'


@lru_cache(maxsize=32)
def _paths(component: Component, parameter: str) -> str:
    """Return `paths_of` with a mark instead of the place.

    `parameter` is the parameter in the place, if there is one.
    """
    return _encode(dict(_items(component, parameter))).decode()[1:-1]


def _items(component: Component, parameter: str) -> Iterator[tuple[str, Json]]:
    routes = [(shown_path(route, component.routes), route) for route in component.routes.routes]
    for path, rows in groupby(sorted(routes, key=lambda row: row[0]), key=lambda row: row[0]):
        item: Json = {}
        of_mount = [_mount_parameter(parameter)] if parameter else []
        if parameters := [*of_mount, *parameters_in(path)]:
            item["parameters"] = parameters
        for _, route in rows:
            method, operation = operation_of(component, route, has_mount=not parameter)
            item[method] = {"operationId": f"{route.operation.name.lower()}-{MARK}/{path.strip('/')}", **operation}
        yield f"/{MARK}/{path}", item


def _mount_parameter(name: str) -> Json:
    schema: Schema = {**schemas.TEXT, "default": name.partition("_")[0]}
    return {"name": name, "in": "path", "required": True, "description": "Path of the mount.", "schema": schema}
