"""What is released, for the tests of it: built once for all workers, from this checkout as it is."""

from __future__ import annotations

import fcntl
import importlib.util
from pathlib import Path
from typing import Final

import pytest

from .building import checkout, make

LISTS_PARTS: Final = importlib.util.find_spec("cyclonedx_py") is not None


@pytest.fixture(scope="session")
def dist(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The folder with wheel, source archive and, if it can be made, list of parts: that of `--built`, or a new one."""
    if given := request.config.getoption("--built"):
        return Path(given).absolute()
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent
    with (shared / "release.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "release").exists():
            make(checkout(shared / "release"), "dist" if LISTS_PARTS else "wheel")
    return shared / "release" / "dist"


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    [wheel] = dist.glob("*.whl")
    return wheel
