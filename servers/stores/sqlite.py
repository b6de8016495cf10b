"""The durable store: one SQLite file, owned by one process.

An acknowledged commit is on the disk (WAL, `synchronous=FULL`). The writer has a connection of its own, so that a read
never waits for a write. No other process writes, so commits are decided in memory where their entries are known. Keys
sort by their UTF-8 bytes, which is the order of their code points.

A COMMIT that fails leaves a question: frames that did reach the log could come back to life when the log is recovered.
The next successful transaction overwrites them, so the answer is forced by one. Until that has worked, the outcome is
unknown and the store refuses everything, reads included: what a read answered could change without a commit.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from cloudid_core.caches import Bounded
from cloudid_core.effects import ABSENT, Commit, Entry
from cloudid_core.errors import Conflict, OutcomeUnknown, StoreFailed
from cloudid_core.version import VERSION

from .owned_files import OwnedFiles
from .store import FORMAT, Outcome, check

APPLICATION_ID: Final = 0x636C6964
ENTRIES_KNOWN: Final = 8192
KEYS_AT_ONCE: Final = 500
"""How many keys one statement names: older versions of SQLite take no more than 999."""

FEW: Final = 16
"""So few keys are remembered when they are read together: every request reads those of its token's policies."""

LARGEST_KNOWN: Final = 4096
"""Largest entry that is kept in memory: the bytes of its value with the characters of its key, which may be what a
client made up."""

FOREIGN: Final = 1
"""The version of an entry that has none: no store is made with it, since the first commit has the key ring."""

_NOTHING: Final = Entry(b"", ABSENT)
_SCHEMA: Final = f"""
BEGIN;
CREATE TABLE entry (key TEXT PRIMARY KEY, value BLOB NOT NULL, version INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE revision (latest INTEGER NOT NULL);
INSERT INTO revision VALUES (0);
PRAGMA application_id = {APPLICATION_ID};
COMMIT;
"""
_TAKE_OVER: Final = f"""
BEGIN;
CREATE TABLE IF NOT EXISTS release (format INTEGER PRIMARY KEY, name TEXT NOT NULL);
INSERT OR IGNORE INTO release VALUES ({FORMAT}, '{VERSION}');
PRAGMA user_version = {FORMAT};
COMMIT;
"""
_RELEASE: Final = "SELECT name FROM release WHERE format = ?"
READ: Final = "SELECT value, version FROM entry WHERE key = ?"
_READ_ALL: Final = "SELECT key, value, version FROM entry WHERE key IN ({})"
_LIST_FROM: Final = "SELECT key FROM entry WHERE key >= ? ORDER BY key LIMIT ?"
_LIST_AFTER: Final = "SELECT key FROM entry WHERE key > ? ORDER BY key LIMIT ?"
_PUT: Final = "REPLACE INTO entry VALUES (?, ?, ?)"
_DELETE: Final = "DELETE FROM entry WHERE key = ?"
_REVISION: Final = "SELECT latest FROM revision"
_SET_REVISION: Final = "UPDATE revision SET latest = ?"


class SqliteStore:
    """Entries in the file at `path`, which is made, for its owner only, when it is not there.

    Raises `StoreFailed` when the file is not ours to use: another process has it, or it is something else.
    `read` and `list` belong to one thread; `commit_all` may be called from any, one at a time.
    """

    def __init__(self, path: Path, name: str = "") -> None:
        """`name` is what messages call the store; its path, if there is none."""
        shown = name or str(path)
        self._writing = threading.Lock()
        self._unsettled = False
        self.waited = 0.0
        self._known: Bounded[str, Entry] = Bounded(ENTRIES_KNOWN)
        """What is at a key; `_NOTHING` where nothing is. It is written only under `_writing`: a reader beside a commit
        could put back what has just been replaced."""

        with _failures(f"{shown} cannot be opened"), ExitStack() as opened:
            self._files = opened.enter_context(closing(OwnedFiles(path, name)))
            self._writer = opened.enter_context(closing(_connect(self._files.path)))
            _prepare(self._writer, shown)
            self._reader = opened.enter_context(closing(_connect(self._files.path)))
            self._revision: int = self._writer.execute(_REVISION).fetchone()[0]
            self._files.note_log()
            self.missing = max(0, self._files.acknowledged - self._revision)
            """How many commits were acknowledged and are not there: the files were cut short, or are an older copy."""

            self._files.note_commit(self._revision)
            self._opened = opened.pop_all()

    def read(self, key: str) -> Entry | None:
        self._check()
        entry = self._known.peek(key)
        if entry is None:
            with _failures("the store could not be read"):
                entry = self._read_first(key)
        return entry if entry.version else None

    def _read_first(self, key: str) -> Entry:
        """Read an entry, and remember it unless a commit is being written."""
        if not self._writing.acquire(blocking=False):
            return _entry(self._reader, key)
        try:
            return self._look_up(key)
        finally:
            self._writing.release()

    def read_all(self, keys: Sequence[str]) -> Mapping[str, Entry]:
        """Many that are not remembered come by one statement, and are not remembered: they would push out others."""
        self._check()
        found: dict[str, Entry] = {}
        unknown: list[str] = []
        for key in keys:
            entry = self._known.peek(key)
            if entry is None:
                unknown.append(key)
            elif entry.version:
                found[key] = entry
        if unknown:
            with _failures("the store could not be read"):
                if len(keys) <= FEW:
                    return found | {key: entry for key in unknown if (entry := self._read_first(key)).version}
                for start in range(0, len(unknown), KEYS_AT_ONCE):
                    page = unknown[start : start + KEYS_AT_ONCE]
                    rows = self._reader.execute(_READ_ALL.format(", ".join("?" * len(page))), page)
                    found |= {key: _entry_of(value, version) for key, value, version in rows}
        return found

    def list(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        self._check()
        query, start = (_LIST_AFTER, after) if after >= prefix else (_LIST_FROM, prefix)
        with _failures("the store could not be read"):
            rows = self._reader.execute(query, (start, limit))
            texts = takewhile(lambda key: isinstance(key, str), (key for [key] in rows))  # which sort before the others
            return tuple(takewhile(lambda key: key.startswith(prefix), texts))

    def commit_all(self, commits: Sequence[Commit]) -> Sequence[Outcome]:
        """All in one transaction; what becomes of each is decided before it begins."""
        try:
            self._check()
        except StoreFailed as failure:
            return [failure] * len(commits)
        with self._writing:
            changes: dict[str, Entry] = {}
            revision = self._revision
            try:
                self._files.check_log()
                outcomes = [self._decide(commit, changes) for commit in commits]
                self._write(changes)
            except Exception as error:  # noqa: BLE001  # whatever it is: nothing was written
                self._roll_back()
                self._revision = revision
                return [StoreFailed(f"the write failed: {_name_of(error)}")] * len(commits)
            for key in changes:  # from here on, a reader in another thread sees all of it or nothing in the file
                self._known.drop(key)
            started = time.perf_counter()
            try:
                self._finish()
            except Exception as error:  # noqa: BLE001  # whatever it is: the log may hold the transaction
                self._roll_back()
                self._unsettled = True
                self._known.clear()
                unknown = OutcomeUnknown(f"the write failed at its end: {_name_of(error)}")
                return [unknown if isinstance(outcome, int) else outcome for outcome in outcomes]
            self.waited = time.perf_counter() - started
            with suppress(OSError):
                self._files.note_commit(self._revision)
            for key, entry in changes.items():
                self._remember(key, entry)
            return outcomes

    def close(self) -> None:
        with self._writing:
            self._opened.close()

    def _decide(self, commit: Commit, changes: dict[str, Entry]) -> Outcome:
        """The outcome of a commit after those that made `changes`, to which it adds its own."""
        for key, expected in commit.expects.items():
            entry = changes.get(key) or self._known.peek(key) or self._look_up(key)
            if entry.version != expected:
                return Conflict(key)
        self._revision += 1
        for key in commit.deletes:
            changes[key] = _NOTHING
        for key, value in commit.puts.items():
            changes[key] = Entry(value, self._revision)
        return self._revision

    def _look_up(self, key: str) -> Entry:
        """Read what is at a key. This process owns the file, so what it has seen once, it knows. Needs `_writing`."""
        entry = _entry(self._writer, key)
        self._remember(key, entry)
        return entry

    def _remember(self, key: str, entry: Entry) -> None:
        if len(key) + len(entry.value) <= LARGEST_KNOWN:
            self._known.put(key, entry)

    def _write(self, changes: Mapping[str, Entry]) -> None:
        deletes = [(key,) for key, entry in changes.items() if not entry.version]
        puts = [(key, entry.value, entry.version) for key, entry in changes.items() if entry.version]
        self._writer.execute("BEGIN IMMEDIATE")
        if deletes:
            self._writer.executemany(_DELETE, deletes)
        if puts:
            self._writer.executemany(_PUT, puts)
        self._writer.execute(_SET_REVISION, (self._revision,))

    def _finish(self) -> None:
        self._writer.execute("COMMIT")

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    def _check(self) -> None:
        """Refuse to continue after a failed COMMIT, or when the files are not there any more. Raises `StoreFailed`."""
        self._files.check()
        if self._unsettled:
            self._settle()

    def _settle(self) -> None:
        """After a failed COMMIT, continue only when a transaction has overwritten what that one may have left."""
        with self._writing:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                self._writer.execute(_SET_REVISION, (self._revision,))
                self._finish()
            except Exception as error:
                self._roll_back()
                raise StoreFailed(f"the store is not writable: {_name_of(error)}") from error
            self._unsettled = False


def compact(path: Path, name: str = "") -> tuple[int, int]:
    """Shrink the file. Return its bytes before and after. No other process may use the store.

    Needs as much free room as the store has contents. Raises `StoreFailed`.
    """
    shown = name or str(path)
    if not path.exists():
        raise StoreFailed(f"{shown} does not exist")
    with _failures(f"{shown} cannot be compacted"), closing(OwnedFiles(path, name)) as files:
        with closing(_connect(files.path)) as connection:
            before = files.path.stat().st_size
            _prepare(connection, shown)
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return before, files.path.stat().st_size


def _entry(connection: sqlite3.Connection, key: str) -> Entry:
    row = connection.execute(READ, (key,)).fetchone()
    return _entry_of(*row) if row else _NOTHING


def _entry_of(value: Any, version: Any) -> Entry:
    """An entry of the table, whose columns hold values of any type: an unsealed value is empty."""
    has_version = isinstance(version, int) and version > 0
    return Entry(value if isinstance(value, bytes) else b"", version if has_version else FOREIGN)


@contextmanager
def _failures(what: str) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeError) as error:
        raise StoreFailed(f"{what}: {type(error).__name__}: {text_of(error)}") from error


def text_of(error: Exception) -> str:
    """What went wrong. SQLite speaks of the disk alone where the memory that it shares with readers has no room."""
    if isinstance(error, OSError) and error.strerror:  # its text repeats the path
        return error.strerror
    is_full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_IOERR_SHMSIZE
    return f"{error}: there is no space left" if is_full else str(error)


_FIXES: Final[Mapping[str, str]] = {
    "SQLITE_BUSY": "another process has locked the file: end it",
    "SQLITE_CANTOPEN": "bring the file and its folder back",
    "SQLITE_CORRUPT": "the file is damaged: restore a backup",
    "SQLITE_FULL": "the disk is full: make room",
    "SQLITE_NOTADB": "the file is damaged: restore a backup",
    "SQLITE_READONLY": "let the server's user write to the file and its folder",
}
"""What fixes a failure, by the start of SQLite's name for it."""


def _name_of(error: Exception) -> str:
    """SQLite's own name for what went wrong, such as SQLITE_FULL, where it has one, and how to fix it."""
    name: str = getattr(error, "sqlite_errorname", type(error).__name__)
    fix = next((fix for start, fix in _FIXES.items() if name.startswith(start)), "")
    return f"{name}; {fix}" if fix else name


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    with ExitStack() as failed:
        failed.callback(connection.close)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        failed.pop_all()
    return connection


def _prepare(connection: sqlite3.Connection, name: str) -> None:
    """Make the tables of a new file, take over an older format, refuse a newer one and what is not ours."""
    [application] = connection.execute("PRAGMA application_id").fetchone()
    [version] = connection.execute("PRAGMA user_version").fetchone()
    [tables] = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if not application and not tables:
        connection.executescript(_SCHEMA)
    elif application != APPLICATION_ID:
        raise StoreFailed(f"{name} is not a store of cloudid")
    if version < FORMAT:
        connection.executescript(_TAKE_OVER)
    row = None
    with suppress(sqlite3.OperationalError):  # not every format says which release has taken the store over
        row = connection.execute(_RELEASE, (version,)).fetchone()
    check(name, version, str(row[0]) if row else "")
