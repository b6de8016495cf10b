"""The proof finds the leaks of this folder: each patch is applied to a copy of the core, and a promise is broken there.

The head of a patch names an operation: it is tried with faults at its effects, and then some random lives are.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.tools

ROOT = Path(__file__).parent.parent.parent
LEAKS = sorted((Path(__file__).parent / "leaks").glob("*.patch"))
FOUND_BY = re.compile(r"^Found by: (.+)$", re.MULTILINE)
LIVES = "20"


@pytest.mark.parametrize(
    "leak",
    [
        pytest.param(leak, id=leak.stem, marks=[pytest.mark.long] if number > 1 else [])
        for number, leak in enumerate(LEAKS)
    ],
)
def test_the_proof_finds_a_leak(leak: Path, tmp_path: Path) -> None:
    for folder in ("cloudid_core", "servers", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "cloudid_servers").symlink_to("servers")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    subprocess.run(["git", "apply", leak], cwd=tmp_path, check=True)
    (operation,) = FOUND_BY.findall(leak.read_text())
    faults = f"tests/simulation/test_exhaustive.py::test_one_fault_anywhere[{operation}]"
    proof = (faults, "tests/simulation/test_random.py::test_lives", "--seeds", LIVES)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *proof]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED, ended.stdout + ended.stderr
    assert "tests/simulation/invariants.py" in ended.stdout, "it fails, but breaks no promise\n" + ended.stdout
