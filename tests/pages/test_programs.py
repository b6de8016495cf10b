"""Programs on pages for embedders are clean under mypy's strict mode, as they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from .blocks import ROOT, blocks_of

PAGES: Final = ("verify-only",)


@pytest.mark.parametrize("page", PAGES)
def test_the_programs_of_the_page_are_typed(page: str, tmp_path: Path) -> None:
    blocks = blocks_of(f"docs/how-to/{page}.md", "python")
    for number, block in enumerate(blocks):
        name = block.marks.get("file", f"program_{number}.py")
        (tmp_path / name).write_text(block.text)
    command = ("-m", "mypy", "--strict", "--config-file", "", "--cache-dir", str(tmp_path / ".cache"), ".")
    ran = subprocess.run(
        [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, env={"MYPYPATH": str(ROOT)}
    )
    assert ran.returncode == 0, ran.stdout
