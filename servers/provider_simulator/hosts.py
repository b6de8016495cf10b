"""Hosts whose routes come from several modules: the resource manager and the directory."""

from __future__ import annotations

from typing import Final

from . import applications, arm, authorization, deleted_items, graph, groups, principals, resources
from .routing import Family

ARM: Final = Family(
    name="arm",
    prefix="/arm/",
    admit=arm.admit,
    word=arm.word_error,
    routes=(*authorization.ROUTES, *resources.ROUTES),
)

GRAPH: Final = Family(
    name="graph",
    prefix="/graph/",
    admit=graph.admit,
    word=graph.word_error,
    routes=(*applications.ROUTES, *principals.ROUTES, *groups.ROUTES, *deleted_items.ROUTES),
)
