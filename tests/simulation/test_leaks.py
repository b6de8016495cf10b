"""The proof finds the leaks of this folder: each patch is applied to a copy of the core, and a promise is broken there.

The head of a patch names what finds it: an operation, which is tried with faults at its effects, or tests beside this.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from .operations import OPERATIONS

ROOT: Final = Path(__file__).parent.parent.parent
SIMULATION: Final = "tests/simulation/"
LEAKS: Final = sorted((ROOT / SIMULATION / "leaks").glob("*.patch"))
FOUND_BY: Final = re.compile(r"^Found by: (.+)$", re.MULTILINE)
QUICK: Final = ("dead_token_keeps_its_leases", "lease_rests_on_nothing")
"""What the short target tries."""


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.stem)
def test_a_kept_leak_applies_to_the_present_core(leak: Path) -> None:
    command = ["git", "apply", "--check", str(leak)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    hint = f"The core has changed where {leak.name} changes it: adapt the patch."
    assert not ended.returncode, f"{hint}\n{ended.stderr}"


@pytest.mark.tools
@pytest.mark.parametrize(
    "leak",
    [pytest.param(leak, id=leak.stem, marks=[] if leak.stem in QUICK else [pytest.mark.long]) for leak in LEAKS],
)
def test_the_proof_finds_a_leak(leak: Path, tmp_path: Path) -> None:
    for folder in ("cloudid_core", "servers", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "cloudid_servers").symlink_to("servers")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    subprocess.run(["git", "apply", leak], cwd=tmp_path, check=True)
    (found_by,) = FOUND_BY.findall(leak.read_text())
    with_faults = [f"{SIMULATION}test_exhaustive.py::test_one_fault_anywhere[{found_by}]"]
    proof = with_faults if found_by in OPERATIONS else f"{SIMULATION}{found_by}".split()
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", "--thorough", *proof]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED, ended.stdout + ended.stderr
    assert "tests/simulation/invariants.py" in ended.stdout, "it fails, but breaks no promise\n" + ended.stdout
