"""Patches of `tests/patches` apply, and do what their own tests say: each shows how little a change takes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PATCHES = sorted((TESTS / "patches").glob("*.patch"))


def added_tests(patch: Path) -> list[str]:
    """The test modules that a patch adds."""
    files = (line.removeprefix("+++ b/") for line in patch.read_text().splitlines() if line.startswith("+++ b/"))
    return [file for file in files if Path(file).name.startswith("test_")]


@pytest.mark.tools
@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_patch_applies_and_holds_what_it_says(patch: Path, tmp_path: Path) -> None:
    for folder in ("cloudid_core", "tests"):
        shutil.copytree(TESTS.parent / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(TESTS.parent / "pyproject.toml", tmp_path)
    subprocess.run(["git", "apply", patch], cwd=tmp_path, check=True)
    assert added_tests(patch)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *added_tests(patch)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
