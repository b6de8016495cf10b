"""Stores: every one behaves like the reference store, and the durable one keeps what it acknowledged."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from cloudid_core.effects import ABSENT, Commit, Entry
from cloudid_core.errors import Conflict, OutcomeUnknown, StoreFailed
from cloudid_core.version import VERSION
from cloudid_servers.stores import BlockingStore, Outcome
from cloudid_servers.stores.owned_files import CHECK_SECONDS
from cloudid_servers.stores.sqlite import ENTRIES_KNOWN, FEW, LARGEST_KNOWN, SqliteStore, compact
from cloudid_servers.stores.store import FORMAT

from .reference import ReferenceStore

ROOT: Final = Path(__file__).parent.parent.parent


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture(params=[ReferenceStore, SqliteStore])
def store(request: pytest.FixtureRequest, path: Path) -> Iterator[BlockingStore]:
    made: BlockingStore = ReferenceStore() if request.param is ReferenceStore else SqliteStore(path)
    with closing(made):
        yield made


@pytest.fixture
def durable(path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path)) as store:
        yield store


def put(**values: bytes) -> Commit:
    return Commit({}, values)


def version_of(outcome: Outcome) -> int:
    assert isinstance(outcome, int)
    return outcome


def commit(store: BlockingStore, commit: Commit) -> int:
    [outcome] = store.commit_all([commit])
    return version_of(outcome)


def test_what_was_put_is_read(store: BlockingStore) -> None:
    version = commit(store, put(a=b"1", b=b""))
    assert (store.read("a"), store.read("b"), store.read("c")) == (Entry(b"1", version), Entry(b"", version), None)


def test_a_commit_that_expects_something_else_writes_nothing(store: BlockingStore) -> None:
    version = commit(store, put(a=b"1"))
    outcomes = store.commit_all(
        [
            Commit({"a": ABSENT}, {"b": b"1"}),
            Commit({"a": version + 1}, {"b": b"1"}),
            Commit({"a": version, "b": version}, {"b": b"1"}, ("a",)),
        ]
    )
    assert [type(outcome) for outcome in outcomes] == [Conflict] * 3
    assert store.read("b") is None
    assert store.read("a") == Entry(b"1", version)


def test_commits_of_a_batch_stand_and_fall_alone_and_in_order(store: BlockingStore) -> None:
    first, second, third = store.commit_all(
        [Commit({"a": ABSENT}, {"a": b"1"}), Commit({"a": ABSENT}, {"a": b"2"}), Commit({"b": ABSENT}, {"b": b"3"})]
    )
    assert isinstance(second, Conflict)
    assert store.read("a") == Entry(b"1", version_of(first))
    assert store.read("b") == Entry(b"3", version_of(third))
    assert version_of(first) < version_of(third)


def test_an_entry_that_is_made_again_does_not_look_unchanged(store: BlockingStore) -> None:
    before = commit(store, put(a=b"1"))
    commit(store, Commit({"a": before}, {}, ("a",)))
    assert store.read("a") is None
    assert commit(store, Commit({"a": ABSENT}, {"a": b"1"})) > before + 1


def test_nothing_at_all_can_be_committed(store: BlockingStore) -> None:
    assert commit(store, Commit({})) < commit(store, Commit({}, {}, ("not there",)))


KEYS: Final = ("", "a", "a/", "a/1", "a/10", "a/2", "a/\uffff", "a/\U00010000", "a/\U0010ffff", "a0", "b")


def test_keys_are_listed_in_the_order_of_their_code_points(store: BlockingStore) -> None:
    commit(store, Commit({}, dict.fromkeys(reversed(KEYS), b"")))
    assert store.list("a/", "", 100) == KEYS[2:9]
    assert store.list("a/", "a/1", 3) == KEYS[4:7]
    assert store.list("a/", "a/\uffff", 100) == KEYS[7:9]
    assert store.list("a/", "b", 100) == ()
    assert store.list("c", "", 100) == ()
    assert store.list("", "", 100) == KEYS[1:]
    assert store.list("", "a0", 100) == KEYS[10:]
    assert store.list("a", "", 0) == ()


class Pair(RuleBasedStateMachine):
    """The durable store beside the reference store, also across restarts."""

    folder: Path

    def __init__(self) -> None:
        super().__init__()
        self.path = self.folder / f"{len(os.listdir(self.folder))}.sqlite"
        self.reference = ReferenceStore()
        self.store = SqliteStore(self.path)

    keys = st.text("ab/\uffff\U00010000", max_size=3)

    @rule(
        data=st.data(),
        puts=st.lists(st.dictionaries(keys, st.binary(max_size=2), max_size=3), min_size=1, max_size=3),
        deletes=st.frozensets(keys, max_size=2),
        guess=st.booleans(),
    )
    def commit(self, data: st.DataObject, puts: list[dict[str, bytes]], deletes: frozenset[str], guess: bool) -> None:
        known = {key: entry.version for key in puts[0] if (entry := self.reference.read(key))}
        expects = {key: known.get(key, ABSENT) + (guess and data.draw(st.integers(0, 1))) for key in puts[0]}
        commits = [Commit(expects, each, tuple(deletes)) for each in puts]
        theirs, ours = self.reference.commit_all(commits), self.store.commit_all(commits)
        assert [str(outcome) for outcome in ours] == [str(outcome) for outcome in theirs]

    @rule(prefix=keys, after=keys, limit=st.integers(0, 4))
    def list(self, prefix: str, after: str, limit: int) -> None:
        assert self.store.list(prefix, after, limit) == self.reference.list(prefix, after, limit)

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.store = SqliteStore(self.path)

    @invariant()
    def entries_are_equal(self) -> None:
        keys = self.reference.list("", "", 1000)
        assert [self.store.read(key) for key in keys] == [self.reference.read(key) for key in keys]
        assert self.store.read_all((*keys, "absent")) == self.reference.read_all((*keys, "absent"))

    def teardown(self) -> None:
        self.store.close()


def test_the_durable_store_is_the_reference_store(tmp_path: Path) -> None:
    class Here(Pair):
        folder = tmp_path

    Here.TestCase.settings = settings(max_examples=15, stateful_step_count=15)
    Here.TestCase("runTest").debug()


def test_versions_go_on_growing_after_a_restart(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        before = commit(store, put(a=b"1"))
        last = commit(store, Commit({"a": before}, {}, ("a",)))
    with closing(SqliteStore(path)) as store:
        assert commit(store, put(a=b"1")) > last


def test_the_file_is_for_its_owner_only(durable: SqliteStore, path: Path) -> None:
    commit(durable, put(a=b"1"))
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert set(modes) >= {"store.sqlite", "store.sqlite-wal"}
    assert set(modes.values()) == {0o600}


def test_commits_are_synced(durable: SqliteStore) -> None:
    [[mode]] = durable._writer.execute("PRAGMA journal_mode").fetchall()
    [[synchronous]] = durable._writer.execute("PRAGMA synchronous").fetchall()
    assert (mode, synchronous) == ("wal", 2)


def test_a_store_has_one_owner(durable: SqliteStore, path: Path) -> None:
    with pytest.raises(StoreFailed, match="in use by another process"):
        SqliteStore(path)


def test_a_store_has_one_owner_whatever_it_is_called(durable: SqliteStore, path: Path) -> None:
    """Not even who removes every file beside it gets it twice."""
    soft, hard = path.with_name("soft"), path.with_name("hard")
    soft.symlink_to(path)
    hard.hardlink_to(path)
    for other in path.parent.iterdir():
        if other.name not in {"store.sqlite", "store.sqlite-wal", "soft", "hard"}:
            other.unlink()
    for name in (soft, hard, path):
        with pytest.raises(StoreFailed, match="in use by another process"):
            SqliteStore(name)


def test_a_linked_store_is_kept_where_it_really_is(path: Path) -> None:
    path.symlink_to(path.with_name("real"))
    with closing(SqliteStore(path)) as store:
        commit(store, put(a=b"1"))
    with closing(SqliteStore(path.with_name("real"))) as store:
        assert store.read("a") is not None


def replace_file(path: Path) -> None:
    path.with_name("copy").write_bytes(path.read_bytes())
    path.with_name("copy").rename(path)


@pytest.mark.parametrize(
    "harm", [lambda path: path.unlink(), replace_file, lambda path: path.with_name(f"{path.name}-wal").unlink()]
)
def test_a_store_whose_files_are_taken_away_stops_within_a_second(
    durable: SqliteStore, path: Path, harm: Callable[[Path], object]
) -> None:
    """Whatever it acknowledged from then on would be lost at its end."""
    commit(durable, put(a=b"1"))
    harm(path)
    assert CHECK_SECONDS < 1.0
    time.sleep(CHECK_SECONDS)
    path.write_bytes(b"")
    for refused in (lambda: durable.read("a"), lambda: durable.list("", "", 1)):
        with pytest.raises(StoreFailed, match="removed or replaced"):
            refused()
    [outcome] = durable.commit_all([put(b=b"1")])
    assert isinstance(outcome, StoreFailed)


def cut(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


@pytest.mark.parametrize("name", ["log", "file"])
def test_a_store_whose_files_are_cut_short_stops_within_a_second(durable: SqliteStore, path: Path, name: str) -> None:
    commit(durable, put(a=b"1"))
    if name == "file":
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    time.sleep(CHECK_SECONDS)
    assert durable.read("a") is not None
    cut(path if name == "file" else log_of(path))
    time.sleep(CHECK_SECONDS)
    with pytest.raises(StoreFailed, match="cut short while it was in use"):
        durable.read("a")


def test_a_commit_after_the_log_was_cut_short_is_refused_at_once(durable: SqliteStore, path: Path) -> None:
    """It would make the log as long as it was, and hide the hole."""
    commit(durable, put(a=b"1"))
    cut(log_of(path))
    [outcome] = durable.commit_all([put(b=b"1")])
    assert isinstance(outcome, StoreFailed)
    with pytest.raises(StoreFailed, match="cut short"):
        durable.read("a")


def test_what_was_acknowledged_and_is_missing_is_counted_at_the_next_start(path: Path) -> None:
    """A log that is cut short is a valid one; then the store goes on with what is there."""
    lived = path.with_name("lived")
    with closing(SqliteStore(path)) as store:
        assert store.missing == 0
        for number in range(20):
            commit(store, put(**{f"k{number}": b"1"}))
        lived.mkdir()
        for part in path.parent.glob(f"{path.name}*"):  # as a kill leaves them
            shutil.copy(part, lived / part.name)
    cut(log_of(lived / path.name))
    with closing(SqliteStore(lived / path.name)) as store:
        kept = len(store.list("k", "", 100))
        assert 0 < store.missing == 20 - kept
        commit(store, put(a=b"1"))
    with closing(SqliteStore(lived / path.name)) as store:
        assert store.missing == 0


def test_a_store_that_was_emptied_becomes_small_again_and_loses_nothing(path: Path) -> None:
    keys = [f"k{number}" for number in range(300)]
    with closing(SqliteStore(path)) as store:
        commit(store, Commit({}, dict.fromkeys(keys, bytes(4000))))
        commit(store, Commit({}, {"left": b"1"}, tuple(keys)))
        assert len(store.list("", "", 10)) == 1
        with pytest.raises(StoreFailed, match="is in use"):
            compact(path)
    before, after = compact(path)
    assert after < before / 10
    with closing(SqliteStore(path)) as store:
        assert (store.list("", "", 10), store.missing) == (("left",), 0)
    with pytest.raises(StoreFailed, match="does not exist"):
        compact(path.with_name("none"))


def make_foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE cats (name)")


def test_a_store_of_an_older_format_is_taken_over_and_names_the_release_that_did(path: Path) -> None:
    """Releases of the older format refuse it then, by its number; later ones name this one."""
    with closing(SqliteStore(path)) as store:
        commit(store, put(a=b"1"))
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("PRAGMA user_version = 1; DROP TABLE release;")
    with closing(SqliteStore(path)) as store:
        assert store.read("a") is not None
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (FORMAT,)
        assert connection.execute("SELECT * FROM release").fetchall() == [(FORMAT, VERSION)]


def make_newer(path: Path) -> None:
    SqliteStore(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize(
    "make, reason",
    [
        (make_foreign, "not a store of cloudid"),
        (
            make_newer,
            r"was opened by a newer release and has version 99 .*, but cloudid \S+ knows only 2: use that release",
        ),
        (lambda path: path.write_bytes(b"no database" * 100), "cannot be opened"),
        (lambda path: path.mkdir(), "cannot be opened"),
    ],
)
def test_a_file_that_is_not_ours_is_refused_and_let_go(path: Path, make: Callable[[Path], object], reason: str) -> None:
    make(path)
    for _ in range(2):
        with pytest.raises(StoreFailed, match=reason):
            SqliteStore(path)


class Sick(SqliteStore):
    """Its disk fails when a transaction ends, before or after the transaction is on it."""

    writes: bool = False
    sick: bool = False

    def _finish(self) -> None:
        if self.sick and not self.writes:
            raise sqlite3.OperationalError("disk I/O error")
        super()._finish()
        if self.sick:
            raise sqlite3.OperationalError("disk I/O error")


@pytest.mark.parametrize("writes", [False, True])
def test_a_commit_that_fails_at_its_end_is_unknown_until_that_can_no_longer_change(path: Path, writes: bool) -> None:
    """While the disk is sick, nobody is told anything; what is then read stays true after a restart."""
    with closing(Sick(path)) as store:
        version = commit(store, put(a=b"1"))
        store.sick, store.writes = True, writes
        unknown, conflict = store.commit_all([Commit({"a": version}, {"a": b"2"}), Commit({"a": ABSENT}, {})])
        assert isinstance(unknown, OutcomeUnknown)
        assert isinstance(conflict, Conflict)
        for refused in (lambda: store.read("a"), lambda: store.list("", "", 1)):
            with pytest.raises(StoreFailed):
                refused()
        [outcome] = store.commit_all([put(b=b"1")])
        assert isinstance(outcome, StoreFailed)
        store.sick = False
        settled = store.read("a")
        assert settled is not None
        assert settled.value == (b"2" if writes else b"1")
        assert commit(store, put(b=b"1")) > settled.version
    with closing(SqliteStore(path)) as store:
        assert store.read("a") == settled


def test_an_error_that_is_not_sqlites_leaves_no_transaction_open(path: Path) -> None:
    class Surprised(SqliteStore):
        surprise: type[Exception] | None = LookupError

        def _finish(self) -> None:
            if self.surprise:
                raise self.surprise
            super()._finish()

    with closing(Surprised(path)) as store:
        [unknown] = store.commit_all([put(a=b"1")])
        assert isinstance(unknown, OutcomeUnknown)
        assert not store._writer.in_transaction
        with pytest.raises(StoreFailed, match="not writable: LookupError"):
            store.read("a")
        assert not store._writer.in_transaction
        store.surprise = None
        assert store.read("a") is None
        assert commit(store, put(a=b"1")) > 0


def test_an_error_that_is_not_sqlites_before_the_end_writes_nothing_and_leaves_no_transaction_open(path: Path) -> None:
    class Surprised(SqliteStore):
        is_surprised = True

        def _write(self, changes: Mapping[str, Entry]) -> None:
            super()._write(changes)
            if self.is_surprised:
                raise LookupError

    with closing(Surprised(path)) as store:
        [failure] = store.commit_all([put(a=b"1")])
        assert isinstance(failure, StoreFailed)
        assert not store._writer.in_transaction
        store.is_surprised = False
        assert store.read("a") is None
        assert commit(store, put(a=b"1")) > 0


def test_a_reader_sees_all_of_a_commit_or_nothing(path: Path) -> None:
    """At every moment of the commit, also where one of its entries is known and the other is not."""

    seen: list[tuple[bytes, ...]] = []

    class Watched(SqliteStore):
        def look(self) -> None:
            seen.append(tuple(entry.value for key in ("a", "b", "c") if (entry := self.read(key))))

        def _finish(self) -> None:
            self.look()
            super()._finish()
            self.look()

    with closing(Watched(path)) as store:
        version = commit(store, put(a=b"1", b=b"1", c=bytes(LARGEST_KNOWN + 1)))
        seen.clear()
        commit(store, Commit({"a": version}, {"a": b"2", "b": b"2", "c": b"2"}))
        store.look()
        assert seen == [(b"1", b"1", bytes(LARGEST_KNOWN + 1)), *[(b"2", b"2", b"2")] * 2]


def test_what_was_read_once_is_known_until_a_commit_changes_it(path: Path) -> None:
    """Absence too: logins read policies that have no entry."""
    with closing(SqliteStore(path)) as store:
        commit(store, put(a=b"1"))
    with closing(SqliteStore(path)) as store:
        statements: list[str] = []
        store._writer.set_trace_callback(statements.append)
        for _ in range(2):
            found, nothing = store.read("a"), store.read("b")
            assert found is not None
            assert found.value == b"1"
            assert nothing is None
        assert len(statements) == 2
        commit(store, put(a=b"2", b=b"2"))
        assert [entry.value for key in ("a", "b") if (entry := store.read(key))] == [b"2", b"2"]


def test_a_few_that_are_read_together_are_known_from_then_on(path: Path) -> None:
    """Also when thousands of commits have pushed out what was known of them. Many would push out the others."""
    with closing(SqliteStore(path)) as store:
        commit(store, put(a=b"1", **{f"n{number}": b"1" for number in range(FEW)}))
    with closing(SqliteStore(path)) as store:
        statements: list[str] = []
        store._writer.set_trace_callback(statements.append)
        store._reader.set_trace_callback(statements.append)
        for _ in range(2):
            assert [entry.value for entry in store.read_all(("a", "b")).values()] == [b"1"]
        assert len(statements) == 2
        assert len(store.read_all([f"n{number}" for number in range(FEW)] + ["a"])) == FEW + 1
        assert set(store._known) == {"a", "b"}


def test_what_is_read_beside_a_commit_is_not_remembered(path: Path) -> None:
    """The commit may change it before the reader would remember it."""

    class Watched(SqliteStore):
        def _finish(self) -> None:
            for key in ("a", "b"):
                self.read(key)
                self.read_all((key,))
                assert self._known.peek(key) is None
            super()._finish()

    with closing(Watched(path)) as store:
        commit(store, put(a=b"1"))
        assert store.read("a") is not None
        assert store.read("b") is None


def test_what_is_known_of_entries_is_bounded(durable: SqliteStore) -> None:
    durable.commit_all([Commit({}, {f"{number}": b"1"}) for number in range(ENTRIES_KNOWN + 10)])
    assert len(durable._known) == ENTRIES_KNOWN
    assert durable.read("0") is not None


def test_a_long_key_that_a_client_made_up_is_not_remembered(durable: SqliteStore) -> None:
    """Any client may ask for the lease of an id; thousands of them, each as long as a body, would fill the memory."""
    long, usual = "lease/" + LARGEST_KNOWN * "x", "lease/x"
    assert [durable.read(long), durable.read(usual), durable.read_all((long, usual))] == [None, None, {}]
    [conflict] = durable.commit_all([Commit({long: 1}, {})])
    assert isinstance(conflict, Conflict)
    assert set(durable._known) == {usual}


def test_a_write_that_fails_is_certainly_not_written(durable: SqliteStore) -> None:
    broken: Any = {"a": object()}
    outcomes = durable.commit_all([put(b=b"1"), Commit({}, broken)])
    assert [type(outcome) for outcome in outcomes] == [StoreFailed] * 2
    assert durable.list("", "", 10) == ()
    assert commit(durable, put(b=b"1")) > 0


def test_a_write_that_fails_has_sqlites_name_for_the_reason(durable: SqliteStore) -> None:
    """It goes to the log, where an operator looks for it."""
    durable._writer.execute("PRAGMA max_page_count = 10")
    [outcome] = durable.commit_all([put(b=bytes(100_000))])
    assert isinstance(outcome, StoreFailed)
    assert str(outcome).endswith("SQLITE_FULL; the disk is full: make room")


WRITER: Final = """
import sys
from pathlib import Path
from cloudid_core.effects import Commit
from cloudid_servers.stores.sqlite import SqliteStore

store = SqliteStore(Path(sys.argv[1]))
number = 0
while True:
    commits = [Commit({}, {f"{number + each:09}": b"value"}) for each in range(3)]
    versions = store.commit_all(commits)
    assert all(isinstance(version, int) for version in versions)
    for each in range(3):
        print(number + each, versions[each], flush=True)
    number += 3
"""


def test_a_process_that_is_killed_loses_nothing_that_it_acknowledged(path: Path) -> None:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert writer.stdout is not None
    acknowledged = [tuple(map(int, next(writer.stdout).split())) for _ in range(200)]
    writer.send_signal(signal.SIGKILL)
    acknowledged += [tuple(map(int, line.split())) for line in writer.stdout if line.endswith("\n")]
    writer.wait()
    writer.stdout.close()
    with closing(SqliteStore(path)) as store:
        assert [store.read(f"{number:09}") for number, _ in acknowledged] == [
            Entry(b"value", version) for _, version in acknowledged
        ]
        assert len(store.list("", "", 10**6)) % 3 == 0
        assert commit(store, put(a=b"1")) > acknowledged[-1][1]


@pytest.mark.parametrize("value, version", [("text", 7), (7, 7), (1.5, 7), (None, 7), (b"value", "x"), (b"value", -1)])
def test_a_row_of_other_types_is_an_entry_that_can_be_replaced_and_removed(
    tmp_path: Path, value: object, version: object
) -> None:
    """SQLite's columns take values of any type; whoever reads one finds an entry that nobody has sealed."""
    path = tmp_path / "store.sqlite"
    with closing(SqliteStore(path)) as store:
        store.commit_all([Commit({}, {"a": b"1", "z": b"1"})])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET sql = replace(sql, ' NOT NULL', '') WHERE name = 'entry'")
        connection.commit()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO entry VALUES ('foreign', ?, ?)", (value, version))
        connection.execute("INSERT INTO entry VALUES (x'ff00', x'00', 1)")
        connection.commit()
    with closing(SqliteStore(path)) as store:
        found = store.read("foreign")
        assert found is not None
        assert isinstance(found.value, bytes)
        assert store.read_all(["foreign"] * 20) == store.read_all(["foreign"]) == {"foreign": found}
        assert store.list("", "", 10) == ("a", "foreign", "z"), "and a key that is no text is none"
        assert store.list("z", "", 10) == ("z",)
        [put] = store.commit_all([Commit({"foreign": found.version}, {"foreign": b"ours"})])
        assert isinstance(put, int)
        assert store.commit_all([Commit({"foreign": put}, {}, ("foreign",))])
        assert store.read("foreign") is None
