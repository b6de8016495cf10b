"""Paths and their fields, as the tables know them that the service runs on and the reference is printed from.

The tables know no mounts but those that are always there. Below `auth/` another mount is taken for a login method,
anywhere else for a secrets engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cloudid_core.audit import SECRETS
from cloudid_core.catalog import CATALOG
from cloudid_core.forms import SECRET as SECRET_FIELD
from cloudid_core.forms import Field, spellings_of
from cloudid_core.messages import Operation
from cloudid_core.mounts import AUTH, BUILT_IN, SECRET
from cloudid_core.routing import Component, Route

MOUNTABLE: Final[Mapping[str, Component]] = {
    component.kind: component for component in CATALOG if CATALOG.is_mountable(component.kind, component.type)
}


def route_at(path: str, operation: Operation) -> Route | None:
    """What answers an operation at a path below `/v1/`; `None` if the tables have nothing there."""
    return next((route for route in _routes_at(path) if route.operation is operation), None)


def mount_of(path: str) -> str:
    """The path of the mount that a path is below, but for the built-in ones; the path's first part if it has none."""
    return _place_of(path)[0]


def _routes_at(path: str) -> tuple[Route, ...]:
    for mount in BUILT_IN:
        if path.startswith(f"{mount.path}/"):
            return CATALOG.of(mount).routes.at(path.removeprefix(f"{mount.path}/"))
    return _place_of(path)[1]


def _place_of(path: str) -> tuple[str, tuple[Route, ...]]:
    """The shortest path of a mount below which a path has routes, and these."""
    kind = AUTH if path.startswith("auth/") else SECRET
    segments = path.split("/")
    for end in range(1, len(segments)):
        if routes := MOUNTABLE[kind].routes.at("/".join(segments[end:])):
            return "/".join(segments[:end]), routes
    return "/".join(segments[: 2 if kind == AUTH else 1]), ()


def fields_at(path: str, operation: Operation) -> Mapping[str, Field]:
    """The fields that an operation takes at a path, by each name that a request may use."""
    route = route_at(path, operation)
    return spellings_of(route.form) if route else {}


def is_secret(field: Field) -> bool:
    """Return whether the values of a field are secret."""
    return field.kind is SECRET_FIELD or field.name in SECRETS
