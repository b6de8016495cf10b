"""Stores that earlier versions have made, and installations over copies of them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from cloudid_core import Secret
from cloudid_core.store.memory import MemoryStore
from tests.installation import Installation


def file_of(name: str) -> Path:
    return Path(__file__).parent / f"{name}.sqlite"


def made(name: str) -> dict[str, Any]:
    """What is known of a store: its master key, when it was made, and texts and ids of what is in it."""
    known: dict[str, Any] = json.loads(file_of(name).with_suffix(".json").read_text())
    return known


def installation_over(name: str) -> Installation:
    """The service over a copy of a store, a minute after that was made. Its cloud knows none of the objects."""
    with closing(sqlite3.connect(f"file:{file_of(name)}?immutable=1", uri=True)) as connection:
        entries = dict(connection.execute("SELECT key, value FROM entry"))
    store, known = MemoryStore(), made(name)
    store.commit({}, entries, ())
    master_key = Secret(known["master_key"])
    return Installation(0, store, None, known["made_at"] + 60.0, master_key=master_key, verify_credentials=False)
