"""The durable store: one SQLite file, owned by one process.

An acknowledged commit is on the disk (WAL, `synchronous=FULL`). The writer has a connection of its own, so that a read
never waits for a write. Keys sort by their UTF-8 bytes, which is the order of their code points.

A COMMIT that fails leaves a question: frames that did reach the log could come back to life when the log is recovered.
The next successful transaction overwrites them, so the answer is forced by one. Until that has worked, the outcome is
unknown and the store refuses everything, reads included: whoever reads again must not be told what may change.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import Final

from cloudid_core.effects import ABSENT, Commit, Entry
from cloudid_core.errors import Conflict, OutcomeUnknown, StoreFailed

from . import Outcome

APPLICATION_ID: Final = 0x636C6964
SCHEMA_VERSION: Final = 1
_SCHEMA: Final = f"""
BEGIN;
CREATE TABLE entry (key TEXT PRIMARY KEY, value BLOB NOT NULL, version INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE revision (latest INTEGER NOT NULL);
INSERT INTO revision VALUES (0);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""
_READ: Final = "SELECT value, version FROM entry WHERE key = ?"
_LIST_FROM: Final = "SELECT key FROM entry WHERE key >= ? ORDER BY key LIMIT ?"
_LIST_AFTER: Final = "SELECT key FROM entry WHERE key > ? ORDER BY key LIMIT ?"
_VERSION: Final = "SELECT version FROM entry WHERE key = ?"
_PUT: Final = "REPLACE INTO entry VALUES (?, ?, ?)"
_DELETE: Final = "DELETE FROM entry WHERE key = ?"
_REVISION: Final = "SELECT latest FROM revision"
_SET_REVISION: Final = "UPDATE revision SET latest = ?"


class SqliteStore:
    """Entries in the file at `path`, which is made, for its owner only, when it is not there.

    Raises `StoreFailed` when the file is not ours to use: another process has it, or it is something else.
    `read` and `list` belong to one thread; `commit_all` may be called from any, one at a time.
    """

    waits = True

    def __init__(self, path: Path) -> None:
        self._writing = threading.Lock()
        self._unsettled = False
        with _failures(f"{path} cannot be opened"), ExitStack() as opened:
            opened.callback(os.close, _own(path))
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self._writer = opened.enter_context(closing(_connect(path)))
            _prepare(self._writer, path)
            self._reader = opened.enter_context(closing(_connect(path)))
            self._revision: int = self._writer.execute(_REVISION).fetchone()[0]
            self._opened = opened.pop_all()

    def read(self, key: str) -> Entry | None:
        self._settle()
        with _failures("the store could not be read"):
            row = self._reader.execute(_READ, (key,)).fetchone()
        return Entry(*row) if row else None

    def list(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        self._settle()
        query, start = (_LIST_AFTER, after) if after >= prefix else (_LIST_FROM, prefix)
        with _failures("the store could not be read"):
            rows = self._reader.execute(query, (start, limit))
            return tuple(takewhile(lambda key: key.startswith(prefix), (key for [key] in rows)))

    def commit_all(self, commits: Sequence[Commit]) -> Sequence[Outcome]:
        """All in one transaction."""
        try:
            self._settle()
        except StoreFailed as failure:
            return [failure] * len(commits)
        with self._writing:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                outcomes = [self._apply(commit) for commit in commits]
                self._writer.execute(_SET_REVISION, (self._revision,))
            except Exception as error:  # noqa: BLE001  # whatever it is: nothing was written
                self._roll_back()
                return [StoreFailed(f"the write failed: {type(error).__name__}")] * len(commits)
            try:
                self._finish()
            except sqlite3.Error:
                self._roll_back()
                self._unsettled = True
                unknown = OutcomeUnknown("the write failed at its end")
                return [unknown if isinstance(outcome, int) else outcome for outcome in outcomes]
            return outcomes

    def close(self) -> None:
        with self._writing:
            self._opened.close()

    def _apply(self, commit: Commit) -> Outcome:
        """Inside a transaction: the whole commit, or nothing and why."""
        for key, expected in commit.expects.items():
            row = self._writer.execute(_VERSION, (key,)).fetchone()
            if (row[0] if row else ABSENT) != expected:
                return Conflict(key)
        self._revision += 1
        self._writer.executemany(_DELETE, [(key,) for key in commit.deletes])
        self._writer.executemany(_PUT, [(key, value, self._revision) for key, value in commit.puts.items()])
        return self._revision

    def _finish(self) -> None:
        self._writer.execute("COMMIT")

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    def _settle(self) -> None:
        """After a failed COMMIT: go on only when a transaction has overwritten what that one may have left."""
        if not self._unsettled:
            return
        with self._writing, _failures("the store is not writable"):
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                self._writer.execute(_SET_REVISION, (self._revision,))
                self._finish()
            except sqlite3.Error:
                self._roll_back()
                raise
            self._unsettled = False


@contextmanager
def _failures(what: str) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeError) as error:
        raise StoreFailed(f"{what}: {type(error).__name__}: {error}") from error


def _own(path: Path) -> int:
    """Lock a file beside the store for this process. The kernel gives it back however the process ends."""
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise StoreFailed(f"{path} is in use by another process") from None
    return lock


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new file; refuse a file that is not ours."""
    [application] = connection.execute("PRAGMA application_id").fetchone()
    [version] = connection.execute("PRAGMA user_version").fetchone()
    [tables] = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if not application and not tables:
        connection.executescript(_SCHEMA)
    elif application != APPLICATION_ID:
        raise StoreFailed(f"{path} is not a store of this service")
    elif version != SCHEMA_VERSION:
        raise StoreFailed(f"{path} has version {version} of the store's format, not {SCHEMA_VERSION}")
