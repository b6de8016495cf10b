"""Skips, which continuous integration does not forgive."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.waiting import PATIENCE

ROOT: Final = Path(__file__).parent.parent
MODULES: Final = {
    "test_body.py": 'import pytest\n\ndef test_it():\n    pytest.skip("no such tool")\n',
    "test_module.py": 'import pytest\n\npytest.importorskip("no_such_module")\n',
    "test_expected.py": "import pytest\n\n@pytest.mark.xfail\ndef test_it():\n    raise ValueError\n",
}


@pytest.mark.parametrize(
    "ci, outcome",
    [
        ("true", "1 failed, 1 xfailed, 1 error in"),
        pytest.param("", "2 skipped, 1 xfailed in", marks=pytest.mark.long),
    ],
)
def test_a_skip_fails_in_continuous_integration(ci: str, outcome: str, tmp_path: Path) -> None:
    for name, source in MODULES.items():
        (tmp_path / name).write_text(source)
    command = [sys.executable, "-m", "pytest", "-p", "tests.skips", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [*command, "--continue-on-collection-errors", "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "CI": ci, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert outcome in ended.stdout, ended.stdout
