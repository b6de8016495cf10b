"""What the simulator may import from the core: effect types, values, the table of clouds and the keys of tests."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent.parent
SIMULATOR: Final = ROOT / "servers" / "provider_simulator"

ALLOWED_MODULES: Final = ("cloudid_core.values", "cloudid_core.clouds", "cloudid_core.testing.rsa_keys")
ALLOWED_NAMES: Final = {"cloudid_core.effects": {"HttpRequest", "HttpResponse"}}


def foreign_imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Imports from the core that are not allowed, also those for types only."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name.startswith("cloudid_core"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cloudid_core"):
            module = node.module or ""
            for alias in node.names:
                allowed = f"{module}.{alias.name}.".startswith(tuple(f"{name}." for name in ALLOWED_MODULES))
                if not allowed and alias.name not in ALLOWED_NAMES.get(module, ()):
                    yield node.lineno, f"{module}.{alias.name}"


def test_the_simulator_uses_only_the_request_types_the_values_and_the_clouds_of_the_core() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted(SIMULATOR.rglob("*.py"))
        for line, name in foreign_imports(ast.parse(path.read_text()))
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "import cloudid_core.effects",
        "from cloudid_core import Request",
        "from cloudid_core import values_of_another_kind",
        "from cloudid_core.effects import Now",
        "from cloudid_core.effects import HttpRequest, Now",
        "from cloudid_core.provider.client import Client",
        "def f():\n    from cloudid_core.errors import Code",
    ],
)
def test_a_forbidden_import_is_noticed(source: str) -> None:
    assert list(foreign_imports(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        "from cloudid_core.effects import HttpRequest, HttpResponse",
        "from cloudid_core.values.secret import Secret",
        "from cloudid_core import clouds",
        "from cloudid_core.clouds import CLOUDS",
    ],
)
def test_an_allowed_import_passes(source: str) -> None:
    assert list(foreign_imports(ast.parse(source))) == []


def test_no_module_shadows_the_standard_library() -> None:
    assert [path.stem for path in SIMULATOR.rglob("*.py") if path.stem in sys.stdlib_module_names] == []
