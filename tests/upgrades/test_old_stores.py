"""What holds for every store that an earlier version has made."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cloudid_core.store import keys
from cloudid_servers.stores.sqlite import SqliteStore

from .old_stores import file_of


@pytest.mark.parametrize("name", ["store-1", "store-2", "store-3", "store-4"])
def test_its_file_is_opened_as_it_is(tmp_path: Path, name: str) -> None:
    shutil.copy(file_of(name), tmp_path / "store.sqlite")
    store = SqliteStore(tmp_path / "store.sqlite")
    assert store.read(keys.MOUNTS) is not None
    store.close()
