"""Help: the operations at a path as text, from the tables of routes and fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from ..forms import Json, fields_of
from ..messages import Operation
from .routes import Route

VERBS: Final[Mapping[Operation, str]] = MappingProxyType(
    {Operation.READ: "GET", Operation.LIST: "LIST", Operation.WRITE: "POST", Operation.DELETE: "DELETE"}
)


def help_about(routes: Iterable[Route]) -> dict[str, Json]:
    """Return the members that command lines print: each operation, and its fields."""
    return {"help": "\n".join(line for route in routes for line in _lines(route)), "see_also": []}


def help_about_mount(routes: Iterable[Route]) -> dict[str, Json]:
    """Return the help for everything below the path of a mount, without the fields."""
    return {"help": "\n".join(map(_heading, routes)), "see_also": []}


def _heading(route: Route) -> str:
    return f"{VERBS[route.operation]} {route.path}: {route.doc}"


def _lines(route: Route) -> Iterator[str]:
    yield _heading(route)
    for field in fields_of(route.form):
        yield f"    {field.name} ({field.kind.name}): {field.doc}"
