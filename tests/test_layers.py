"""The rooms of the core and of the servers: imports point down the map of the architecture page, type-only ones too."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import grimp
import pytest

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "why" / "architecture.md"
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


OPTIONAL: Final = (
    "stores.postgres",
    "stores.postgres.temporary",
    "stores.etcd",
    "stores.etcd.temporary",
    "provider_simulator.command",
    "runtime.on_asyncio",
    "runtime.on_trio",
)
"""What needs an extra, so that no door has it."""


def late_imports(tree: ast.Module) -> set[ast.AST]:
    """What is imported only when a function runs, or where the lack of a package is told."""
    late = (ast.FunctionDef, ast.AsyncFunctionDef, ast.With)
    return {node for block in ast.walk(tree) if isinstance(block, late) for node in ast.walk(block)}


def imports_past_the_door(module: str, tree: ast.Module) -> Iterator[str]:
    """Imports from within another room, though what a room gives to others, its `__init__` exports.

    A name that is also the name of its module cannot be exported. The servers import late what may be missing.
    """
    late = late_imports(tree) if module.startswith("cloudid_servers.") else set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or node in late:
            continue
        if node.level == module.count(".") and "." in (node.module or "") and node.module not in OPTIONAL:
            names = [alias.name for alias in node.names if alias.name != (node.module or "").split(".")[-1]]
            if names:
                yield f"{module} imports {', '.join(names)} from {node.module}"


APART: Final = ("cloudid_core/testing/", "cloudid_servers/provider_simulator/")
"""What rests on other rooms from within."""


@pytest.mark.parametrize("package", PACKAGES)
def test_rooms_are_entered_by_their_door(package: str) -> None:
    paths = sorted((ROOT / package).rglob("*.py"))
    found = [
        each
        for path in paths
        if not (name := path.relative_to(ROOT).as_posix()).startswith(APART)
        for each in imports_past_the_door(name.removesuffix(".py").replace("/", "."), ast.parse(path.read_text()))
    ]
    assert not found, "\n".join(found)


def test_an_import_from_within_another_room_is_noticed() -> None:
    def found(text: str) -> list[str]:
        return list(imports_past_the_door("cloudid_core.tokens.issue", ast.parse(text)))

    assert found("from ..store.records import Found") == ["cloudid_core.tokens.issue imports Found from store.records"]
    assert found("from ..store import Found, keys\nfrom ..values.guid import guid\nfrom .record import Token") == []
    assert found("def find():\n    from ..store.records import Found")


def test_the_servers_import_late_what_may_be_missing() -> None:
    def found(text: str) -> list[str]:
        return list(imports_past_the_door("cloudid_servers.command.bootstrap", ast.parse(text)))

    assert found("from ..stores.sqlite import SqliteStore")
    assert found("if TYPE_CHECKING:\n    from ..stores.sqlite import SqliteStore")
    assert found("def find():\n    from ..stores.postgres import PostgresStore") == []


def given(door: ast.Module) -> set[str]:
    """What an `__init__` imports out of its own room."""
    imports = (node for node in ast.walk(door) if isinstance(node, ast.ImportFrom) and node.level == 1)
    return {alias.asname or alias.name for node in imports for alias in node.names}


def taken(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """By the last part of their names, modules and what is imported from them, or used of them."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                yield from ((module.rpartition(".")[2], alias.name) for alias in names)
            case ast.Attribute(value=ast.Name(module) | ast.Attribute(attr=module), attr=name):
                yield module, name


OUTWARD: Final = ("testing", "verify", "adapters", "cli")
"""Rooms that give to embedders, and to the script `cloudid`."""


def test_somebody_takes_what_a_room_gives() -> None:
    everywhere = [path for folder in (*PACKAGES, "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    uses = {path: frozenset(taken(ast.parse(path.read_text()))) for path in everywhere}
    found: list[str] = []
    for door in sorted(each for package in PACKAGES for each in (ROOT / package).glob("*/__init__.py")):
        room = door.parent
        others = [names for path, names in uses.items() if room not in path.parents]
        unused = [
            name for name in given(ast.parse(door.read_text())) if not any((room.name, name) in of for of in others)
        ]
        found += [f"nobody takes {name} from {room.name}" for name in unused if room.name not in OUTWARD]
    assert not found, "\n".join(found)


def test_what_a_room_gives_and_others_take_is_noticed() -> None:
    door = ast.parse("from . import hcl\nfrom .roles import check as check_role\nfrom ..values import Secret")
    assert given(door) == {"hcl", "check_role"}
    user = ast.parse("from ..policies import load_acl as load\nfrom .. import policies\npolicies.parse('')")
    assert set(taken(user)) == {("policies", "load_acl"), ("policies", "parse")}
