"""Builds from a copy of this checkout: as it is, with what is not committed yet."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.waiting import PATIENCE

ROOT: Final = Path(__file__).parent.parent.parent
COMMITTED_AT: Final = "2026-01-31T12:00:00Z"


def checkout(folder: Path) -> Path:
    """A repository with the files of this one in a single commit."""
    listed = run(ROOT, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    for name in (name for name in listed if name and os.path.lexists(ROOT / name)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    told = {"GIT_COMMITTER_DATE": COMMITTED_AT, "GIT_AUTHOR_DATE": COMMITTED_AT}
    who = ("-c", "user.name=Tests", "-c", "user.email=tests@invalid", "-c", "commit.gpgsign=false")
    for words in (("init", "--quiet"), ("add", "--all"), (*who, "commit", "--quiet", "--message", "All of it")):
        run(folder, "git", *words, environment=told)
    return folder


def make(folder: Path, target: str, **environment: str) -> None:
    """`make` in a checkout, with the packages of this environment: nothing is set up anew."""
    venv = Path(sys.prefix)
    ready = [word for name in ("release", "vendor-sdks") for word in ("-o", f"{venv}/.ready-{name}")]
    run(folder, "make", f"VENV={venv}", *ready, target, environment=environment)


def run(folder: Path, *command: str, environment: Mapping[str, str] | None = None) -> str:
    """What a command prints that succeeds."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
