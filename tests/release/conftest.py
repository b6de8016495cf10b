"""What is released, for the tests of it: built once for all workers, from this checkout as it is."""

from __future__ import annotations

import fcntl
import importlib.util
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from .building import checkout, make
from .walking import INSTALL, walk

LISTS_PARTS: Final = importlib.util.find_spec("cyclonedx_py") is not None


@pytest.fixture(scope="session")
def dist(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The folder with wheel, source archive and, if it can be made, list of parts: that of `--built`, or a new one."""
    if given := request.config.getoption("--built"):
        return Path(given).absolute()
    with once(tmp_path_factory, worker_id, "release") as (folder, is_there):
        if not is_there:
            make(checkout(folder), "dist" if LISTS_PARTS else "wheel")
    return folder / "dist"


@contextmanager
def once(factory: pytest.TempPathFactory, worker_id: str, name: str) -> Iterator[tuple[Path, bool]]:
    """A folder of all workers, and whether it is there already: the others wait until the first one has filled it."""
    base = factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / name
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder, folder.exists()


@pytest.fixture(scope="session")
def venv(wheel: Path, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """What the first block of the page about installation makes of the wheel, in an empty folder."""
    with once(tmp_path_factory, worker_id, "installed") as (folder, is_there):
        if not is_there:
            folder.mkdir()
            shutil.copy(wheel, folder)
            walk(INSTALL, folder)
    return folder / "venv"


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    [wheel] = dist.glob("*.whl")
    return wheel
