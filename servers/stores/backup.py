"""Backup: a consistent copy of a SQLite store, also while a server uses it."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

from cloudid_core.effects import Entry
from cloudid_core.errors import StoreFailed

from ..machine import sync
from .sqlite import APPLICATION_ID, READ, text_of

BETWEEN_REPORTS: Final = 10**5
"""Instructions of SQLite's virtual machine."""


def back_up(store: Path, target: Path, name: str = "", report: Callable[[str], None] = lambda text: None) -> None:
    """Write everything that was committed when the copy began to a new file, for its owner only.

    `name` is what messages call the store; its path, if there is none. `report` gets the progress, and an
    empty text at the end.

    `VACUUM INTO` reads one state of the store and holds up no writer. The target appears whole and on disk, or not at
    all. Raises `StoreFailed`, also when the target exists.
    """
    draft = target.parent / f"{target.name}.{secrets.token_hex(4)}.new"
    try:
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            _copy(store, draft, name or str(store), report)
            sync(draft)
            os.link(draft, target)
        finally:
            draft.unlink(missing_ok=True)
        sync(target.parent)
    except FileExistsError:
        raise StoreFailed(f"{target} already exists, and a backup overwrites nothing") from None
    except (sqlite3.Error, OSError) as error:
        raise StoreFailed(f"{name or store} cannot be copied to {target}: {text_of(error)}") from error


def glance(store: Path, key: str, name: str = "") -> Entry | None:
    """One entry of a store, also while a server uses it. Raises `StoreFailed`."""
    try:
        with _looking(store, name or str(store)) as connection:
            found = connection.execute(READ, (key,)).fetchone()
    except sqlite3.Error as error:
        raise StoreFailed(f"{name or store} cannot be read: {text_of(error)}") from error
    return found and Entry(*found)


@contextmanager
def _looking(store: Path, name: str) -> Iterator[sqlite3.Connection]:
    uri = f"file:{quote(str(store.absolute()))}?mode=rw"  # a new file is never made, and the log can be read
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
        [application] = connection.execute("PRAGMA application_id").fetchone()
        if application != APPLICATION_ID:
            raise StoreFailed(f"{name} is not a store of cloudid")
        yield connection


def _copy(store: Path, draft: Path, name: str, report: Callable[[str], None]) -> None:
    with _looking(store, name) as connection:
        [whole] = connection.execute(
            "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
        ).fetchone()

        def look() -> None:
            report(f"copied: {draft.stat().st_size >> 20} of {whole >> 20} MiB")

        connection.set_progress_handler(look, BETWEEN_REPORTS)
        try:
            connection.execute("VACUUM INTO ?", (str(draft),))
        finally:
            report("")
