"""What is public: what embedders need, and nothing else, is what the pages for them import and list."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

import cloudid_core

from .pages.blocks import python_of

ROOT: Final = Path(__file__).parent.parent
LIST: Final = (ROOT / "docs" / "reference" / "public-modules.md").read_text()
LISTED: Final = dict(re.findall(r"^\| `(cloudid_core[a-z_.]*)` \| (.*) \|$", LIST, re.MULTILINE))
"""The public modules, as the page lists them, and what it says of each."""
PAGES: Final = (
    "docs/how-to/write-a-host.md",
    "docs/how-to/serve-with-a-host.md",
    "docs/how-to/verify-only.md",
    "docs/how-to/recipes.md",
    "docs/how-to/write-a-store.md",
)


def imports(text: str) -> Iterator[tuple[str, str]]:
    """What code imports from the core: module and name."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            found = [(node.module or "", alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found = [(alias.name, "") for alias in node.names]
        else:
            continue
        yield from (each for each in found if each[0].split(".")[0] == "cloudid_core")


def public_names(module: str) -> set[str]:
    names = vars(import_module(module))
    return set(names.get("__all__", [name for name in names if not name.startswith("_")]))


def not_public(text: str) -> list[str]:
    return [
        f"{module}.{name}" for module, name in imports(text) if module not in LISTED or name not in public_names(module)
    ]


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_import_what_is_public(page: str) -> None:
    blocks = python_of(page)
    assert any(list(imports(block)) for block in blocks)
    assert [each for block in blocks for each in not_public(block)] == []


def test_an_import_of_what_is_internal_is_noticed() -> None:
    assert not_public("from cloudid_core import Host, run\nfrom cloudid_core.errors import Code") == []
    assert not_public("from cloudid_core.store.memory import MemoryStore") == ["cloudid_core.store.memory.MemoryStore"]
    assert not_public("from cloudid_core.verify import LONGEST_TOKEN") == ["cloudid_core.verify.LONGEST_TOKEN"]
    assert not_public("import cloudid_core.store") == ["cloudid_core.store."]


def test_the_page_lists_all_that_the_package_exports() -> None:
    assert sorted(re.findall(r"`(\w+)`", LISTED["cloudid_core"])) == sorted(cloudid_core.__all__)


def test_the_package_says_what_is_public() -> None:
    said = set(re.findall(r"`(\w+)`", (cloudid_core.__doc__ or "").partition("The public API")[2]))
    assert {f"cloudid_core.{name}" for name in said} | {"cloudid_core"} == set(LISTED)


def test_names_that_the_page_mentions_are_there() -> None:
    missing = [
        f"{module}.{name}"
        for module, said in LISTED.items()
        for name in re.findall(r"`([A-Z]\w+)`", said)
        if name not in public_names(module)
    ]
    assert missing == []


def test_what_is_public_is_typed_for_every_checker() -> None:
    """Pyright's strict mode is run on the public modules, and on those that define what the package exports."""
    defining = {getattr(cloudid_core, name).__module__ for name in cloudid_core.__all__}
    packages = ("testing", "verify")
    paths = (Path(import_module(module).__file__ or "") for module in defining | set(LISTED))
    files = {str(path.relative_to(ROOT)) for path in paths} - {f"cloudid_core/{name}/__init__.py" for name in packages}
    included = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["basedpyright"]["include"]
    assert sorted(included) == sorted(files | {f"cloudid_core/{name}" for name in packages})
