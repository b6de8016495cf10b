"""Programs on pages for embedders are clean under the strict modes of mypy and pyright, as they stand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from .blocks import ROOT, blocks_of

GROUPS: Final = (("verify-only",), ("write-a-host", "serve-with-a-host"), ("embed",))
"""Pages whose programs import each other."""
PYRIGHT: Final = {
    "typeCheckingMode": "strict",
    "pythonVersion": "3.11",
    "extraPaths": [str(ROOT)],
    "reportMissingModuleSource": False,
}
UNTYPED: Final = ("with_django.py",)
"""Django has no type hints of its own."""


def write_programs(pages: tuple[str, ...], folder: Path) -> None:
    """Write the programs of some pages into a folder."""
    for page in pages:
        for number, block in enumerate(blocks_of(f"docs/how-to/{page}.md", "python")):
            name = block.marks.get("file", f"{page.replace('-', '_')}_{number}.py")
            if name not in UNTYPED:
                (folder / name).write_text(block.text)


@pytest.mark.parametrize("pages", GROUPS, ids=" ".join)
def test_the_programs_of_the_page_are_typed(pages: tuple[str, ...], tmp_path: Path) -> None:
    write_programs(pages, tmp_path)
    command = ("-m", "mypy", "--strict", "--config-file", "", "--cache-dir", str(tmp_path / ".cache"), ".")
    ran = subprocess.run(
        [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, env={"MYPYPATH": str(ROOT)}
    )
    assert ran.returncode == 0, ran.stdout


def test_the_programs_of_all_pages_are_typed_for_pyright(tmp_path: Path) -> None:
    for number, pages in enumerate(GROUPS):
        folder = tmp_path / str(number)
        folder.mkdir()
        write_programs(pages, folder)
        (folder / "pyrightconfig.json").write_text(json.dumps(PYRIGHT))
        command = ("-m", "basedpyright", "--pythonpath", sys.executable)
        ran = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout
