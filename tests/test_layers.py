"""The floors of the core: imports point down, type-only imports count, and circles are small and explained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

import grimp
import pytest

Room: TypeAlias = tuple[str, ...]
"""Modules and packages that may import each other. A module belongs to the longest name that it starts with."""

Floor: TypeAlias = tuple[Room, ...]
"""Rooms that do not know each other."""

FLOORS: Final[tuple[Floor, ...]] = (
    (("testing",),),
    (("",), ("api.documents",)),
    (("service",),),
    (("api.dispatch",), ("mounts.catalog",)),
    (("background.loop",), ("system",)),
    (("auth_method",), ("issuer.routes",), ("mounts.retirement",), ("secrets_engine",)),
    (("api.body_limit",),),
    (("api.destination",), ("permissions",), ("quotas",), ("rotation",), ("wrapping",)),
    (("initialise",),),
    (("issuer.roll_over",),),
    (
        ("background.journal", "foundation.components", "leases", "policies", "tokens"),
        ("background.nodes",),
    ),
    (("api.exchange", "audit.entry"),),
    (("api.help",), ("api.request",)),
    (("api.routing",),),
    (("tokens.record", "tokens.settings"),),
    (("policies.builtin", "policies.document", "policies.hcl", "policies.matching", "policies.parameters"),),
    (("background.leadership",), ("background.queue",), ("store.keyring",)),
    (("foundation.context",), ("foundation.request_ids",)),
    (("rotation.root_credential",),),
    (("issuer.keys", "issuer.tokens"),),
    (("foundation.environment",), ("mounts.table",), ("provider",)),
    (("foundation.caches", "settings", "store"),),
    (("api.response",), ("foundation.deadline",), ("foundation.lifetime",), ("foundation.node", "foundation.problems")),
    (("api.fields",),),
    (("run",),),
    (("effects",),),
    (("events",),),
    (("audit.chain", "audit.device", "audit.hashing"),),
    (("api.left_out",), ("clouds",), ("errors",), ("values",), ("version",)),
    (("api",), ("audit",), ("background",), ("foundation",), ("issuer",), ("mounts",)),
)
"""The core from top to bottom. The `__init__` of a folder whose modules are on several floors imports nothing."""

CIRCLES: Final[Mapping[frozenset[str], str]] = {
    frozenset({"provider.client", "provider.oauth"}): "a client needs an access token, and asks for one as a client",
    frozenset({"secrets_engine.persistent_app", "secrets_engine.roles"}): "a role holds the application that it keeps",
}
"""Pairs of modules that import each other, and why."""


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("cloudid_core", cache_dir=None)


def short(module: str) -> str:
    return module.removeprefix("cloudid_core").removeprefix(".")


def place_of(module: str) -> tuple[int, Room]:
    """The number of a module's floor, counted from the top, and its room."""
    candidates = [
        (len(name), number, room)
        for number, floor in enumerate(FLOORS)
        for room in floor
        for name in room
        if module == name or (name and module.startswith(f"{name}."))
    ]
    assert candidates, f"{module} has no floor: give it one in FLOORS"
    _, number, room = max(candidates)
    return number, room


def is_allowed(importer: str, imported: str) -> bool:
    (upper, room), (lower, other) = place_of(importer), place_of(imported)
    return upper < lower or (upper == lower and room == other)


def imports(graph: grimp.ImportGraph) -> Iterator[tuple[str, str]]:
    for importer in sorted(graph.modules):
        for imported in sorted(graph.find_modules_directly_imported_by(importer)):
            yield short(importer), short(imported)


def test_imports_point_down(graph: grimp.ImportGraph) -> None:
    wrong = [
        f"{importer} imports {imported}" for importer, imported in imports(graph) if not is_allowed(importer, imported)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "importer, imported, allowed",
    [
        ("effects", "service", False),
        ("service", "effects", True),
        ("auth_method.login", "auth_method.claims", True),
        ("auth_method.login", "secrets_engine.roles", False),
        ("provider.client", "foundation.context", False),
    ],
)
def test_the_rule_notices_its_breach(importer: str, imported: str, allowed: bool) -> None:
    assert is_allowed(importer, imported) is allowed


def test_a_module_without_a_floor_is_noticed() -> None:
    with pytest.raises(AssertionError, match="has no floor"):
        place_of("brand_new")


def circles(edges: Mapping[str, set[str]]) -> Iterator[frozenset[str]]:
    """The strongly connected components of more than one module (Tarjan, by reachability: the graph is small)."""
    reach: dict[str, set[str]] = {}
    for start in edges:
        seen: set[str] = set()
        pending = [start]
        while pending:
            for following in edges.get(pending.pop(), set()) - seen:
                seen.add(following)
                pending.append(following)
        reach[start] = seen
    yield from {
        frozenset({other for other in reach[start] if start in reach.get(other, set())} | {start})
        for start in edges
        if start in reach[start]
    }


def test_circles_are_pairs_and_explained(graph: grimp.ImportGraph) -> None:
    edges: dict[str, set[str]] = {}
    for importer, imported in imports(graph):
        edges.setdefault(importer, set()).add(imported)
    found = set(circles(edges))
    assert {circle for circle in found if len(circle) > 2} == set()
    assert found == set(CIRCLES)


def test_a_circle_is_noticed() -> None:
    assert set(circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})) == {frozenset("abc")}
