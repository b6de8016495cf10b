"""The command `cloudid` in an environment that has nothing but the wheel, and then what its extra brings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from cloudid_core.version import VERSION
from tests.waiting import PATIENCE

from .building import ROOT, run

MOST_BYTES: Final = 70 * 10**6


def test_the_wheel_brings_the_command(wheel: Path, tmp_path: Path) -> None:
    """Alone, it says what to install; with the extra it prepares a store and checks it, in at most 70 MB."""
    venv, program = tmp_path / "venv", str(tmp_path / "venv" / "bin" / "cloudid")
    run(tmp_path, sys.executable, "-m", "venv", str(venv))
    before = size(venv)
    pip = (str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    constraints = ("--constraint", str(ROOT / "constraints.txt"), "--only-binary", ":all:")
    run(tmp_path, *pip, *constraints, str(wheel))
    alone = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=PATIENCE, check=False)
    told = "error: the package click is missing: pip install 'cloudid[server]'\n"
    assert (alone.returncode, alone.stdout, alone.stderr) == (1, "", told)

    run(tmp_path, *pip, *constraints, f"{wheel}[server]")
    assert size(venv) - before <= MOST_BYTES
    assert run(tmp_path, program, "--version") == f"cloudid {VERSION}\n"
    (tmp_path / "cloudid.toml").write_text('[server]\nlisten = "127.0.0.1:0"\n')
    tmp_path.chmod(0o700)
    assert run(tmp_path, program, "init", "--settings", "cloudid.toml").startswith("root token: ")
    assert "UNSAFE" not in run(tmp_path, program, "check", "--settings", "cloudid.toml")


def size(folder: Path) -> int:
    """The bytes of all files, without what Python compiled: pip compiles, other installers do not."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
