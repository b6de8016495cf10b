"""The rooms of the core and of the servers: imports point down the map of the architecture page, type-only ones too."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import grimp
import pytest

import cloudid_core

PAGE: Final = Path(__file__).parent.parent / "docs" / "architecture.md"
PACKAGES: Final = ("cloudid_core", "cloudid_servers")


def rooms(package: str) -> tuple[str, ...]:
    """The rooms of a package from top to bottom, as the page lists them."""
    listed = re.search(rf"<!-- {package} -->\n```\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert listed, f"the page has no map of {package}"
    return tuple(line.split()[0].rstrip("/") for line in listed[1].splitlines() if not line.startswith(" "))


def modules(package: str) -> grimp.ImportGraph:
    return grimp.build_graph(package, cache_dir=None)


def room_of(module: str) -> str:
    """The folder or module directly below the package."""
    _, _, rest = module.partition(".")
    return rest.split(".")[0]


def imports_between_rooms(graph: grimp.ImportGraph) -> Iterator[tuple[str, str]]:
    for importer in sorted(graph.modules):
        for imported in sorted(graph.find_modules_directly_imported_by(importer)):
            if room_of(importer) and room_of(imported) and room_of(importer) != room_of(imported):
                yield importer, imported


def wrong(floors: tuple[str, ...], imports: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> list[str]:
    """Imports that do not point down."""
    height = {room: len(floors) - number for number, room in enumerate(floors)}
    return [f"{a} imports {b}" for a, b in imports if height[room_of(a)] <= height[room_of(b)]]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_room_stands_once_in_the_map(package: str) -> None:
    found = {room_of(module) for module in modules(package).modules} - {""}
    assert sorted(rooms(package)) == sorted(found)


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_point_down(package: str) -> None:
    found = wrong(rooms(package), imports_between_rooms(modules(package)))
    assert not found, "\n".join(found)


def test_an_import_that_points_up_is_noticed() -> None:
    floors = ("service", "tokens", "effects")
    assert wrong(floors, [("c.service", "c.effects"), ("c.tokens.issue", "c.effects")]) == []
    assert wrong(floors, [("c.effects", "c.tokens.issue")]) == ["c.effects imports c.tokens.issue"]


def imports_past_the_door(module: str, tree: ast.Module) -> Iterator[str]:
    """Imports from within another room, though what a room gives to others, its `__init__` exports.

    A name that is also the name of its module cannot be exported.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == module.count(".") and "." in (node.module or ""):
            names = [alias.name for alias in node.names if alias.name != (node.module or "").split(".")[-1]]
            if names:
                yield f"{module} imports {', '.join(names)} from {node.module}"


def test_rooms_are_entered_by_their_door() -> None:
    core = Path(cloudid_core.__file__).parent
    found = [
        each
        for path in sorted(core.rglob("*.py"))
        if "testing" not in path.parts
        for each in imports_past_the_door(
            ".".join(("cloudid_core", *path.relative_to(core).with_suffix("").parts)), ast.parse(path.read_text())
        )
    ]
    assert not found, "\n".join(found)


def test_an_import_from_within_another_room_is_noticed() -> None:
    def found(text: str) -> list[str]:
        return list(imports_past_the_door("cloudid_core.tokens.issue", ast.parse(text)))

    assert found("from ..store.records import Found") == ["cloudid_core.tokens.issue imports Found from store.records"]
    assert found("from ..store import Found, keys\nfrom ..values.guid import guid\nfrom .record import Token") == []
