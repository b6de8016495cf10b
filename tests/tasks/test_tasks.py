"""The patches of this folder apply to a copy of the tree, and do what their tests say.

Each shows which files a task touches. Its head names tests that are there already and hold for it too.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.tools

ROOT = Path(__file__).parent.parent.parent
PATCHES = sorted(Path(__file__).parent.glob("*.patch"))


def modules_of(patch: str) -> list[str]:
    """The test modules that a patch adds or names."""
    lines = patch.splitlines()
    added = [line.removeprefix("+++ b/") for line in lines if line.startswith("+++ b/tests/")]
    named = [line.removeprefix("Tests: ").split() for line in lines if line.startswith("Tests: ")]
    return sorted({*added, *(module for modules in named for module in modules)})


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_task_is_what_its_patch_says(patch: Path, tmp_path: Path) -> None:
    for folder in ("cloudid_core", "servers", "tests", "docs"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "cloudid_servers").symlink_to("servers")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    subprocess.run(["git", "apply", patch], cwd=tmp_path, check=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *modules_of(patch.read_text())]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_every_task_has_tests() -> None:
    assert PATCHES
    assert all(modules_of(patch.read_text()) for patch in PATCHES)
