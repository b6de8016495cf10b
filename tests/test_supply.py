"""What is installed: one version of each package, by its hash, and a build backend that is one of them."""

from __future__ import annotations

import re
import tomllib
from datetime import date
from pathlib import Path
from typing import Final

import pytest

from cloudid_core.version import VERSION

ROOT: Final = Path(__file__).parent.parent
PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;\\]+)", re.MULTILINE)
REQUIREMENTS: Final = sorted(ROOT.glob("requirements/*.txt"))


def pins(text: str) -> dict[str, str]:
    """Versions by the normal form of the packages' names."""
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in PIN.findall(text)}


CONSTRAINTS: Final = pins((ROOT / "constraints.txt").read_text())


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda path: path.stem)
def test_requirements_are_the_constraints_with_hashes(path: Path) -> None:
    text = path.read_text()
    found = pins(text)
    assert {name: CONSTRAINTS.get(name) for name in found} == found
    blocks = re.split(r"\n(?=\S)", text.strip())
    assert len(blocks) == len(found)
    assert not [block for block in blocks if "--hash=sha256:" not in block]


def test_what_runs_is_what_is_tested() -> None:
    """A smaller file holds nothing that a larger one lacks."""
    container, demo, site, test, fuzz, release, vendor_sdks = (
        set(pins((ROOT / f"requirements/{name}.txt").read_text()))
        for name in ("container", "demo", "site", "test", "fuzz", "release", "vendor-sdks")
    )
    assert demo < test < release < vendor_sdks
    assert test < fuzz < vendor_sdks
    assert site < vendor_sdks
    assert container < test
    assert vendor_sdks <= set(CONSTRAINTS)


def test_the_build_backend_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    [backend] = project["build-system"]["requires"]
    assert pins(backend) == {"hatchling": CONSTRAINTS["hatchling"]}
    assert backend in project["dependency-groups"]["build"]


def test_the_changelog_begins_with_what_is_not_released_and_this_version() -> None:
    first, second, *_ = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first == "Unreleased"
    version, _, day = second.partition(" - ")
    assert version == VERSION
    date.fromisoformat(day)
