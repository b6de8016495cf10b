"""The store on PostgreSQL: its tables, and its batches."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from typing import Any, Final, TypeVar

import psycopg
import pytest

from cloudid_core.effects import ABSENT, Commit, Entry
from cloudid_core.errors import Conflict, StoreFailed
from cloudid_core.version import VERSION
from cloudid_servers.host.host import Host
from cloudid_servers.stores.postgres import Address, Mode, PostgresStore, session, statements
from cloudid_servers.stores.postgres.connection import Connection, Statement, StatementFailed
from cloudid_servers.stores.postgres.schema import SLOTS
from cloudid_servers.stores.store import FORMAT
from tests.hosts.opened import RUNTIMES, on
from tests.waiting import PATIENCE, wait_until

from .cluster import Databases

LOCK: Final = f"SELECT FROM cloudid.slot WHERE number = hashtextextended('a', 0) & {SLOTS - 1} FOR UPDATE".encode()
"""Keeps commits waiting that write the key `a`."""

T = TypeVar("T")
KEYS: Final = Mode.KEYS
everywhere = pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.value)
on_both = pytest.mark.parametrize("runtime", RUNTIMES)


def at(database: str, makes: Mode | None = KEYS) -> PostgresStore:
    return PostgresStore(Address.parse(database), makes)


def with_store(
    database: str,
    scenario: Callable[[Host, PostgresStore], Awaitable[T]],
    makes: Mode | None = KEYS,
    runtime: str = "trio",
) -> T:
    """What the scenario answers on a host over the database."""
    with closing(at(database, makes)) as store:
        return on(runtime, lambda host: scenario(host, store), store)


async def nothing(host: Host, store: PostgresStore) -> None:
    """Only open the store."""


OLDER: Final = ("UPDATE cloudid.format SET version = 1", "ALTER TABLE cloudid.format DROP COLUMN release")
NODE_OF_OLD: Final = f"SELECT pg_try_advisory_lock_shared({statements.USE}, 0)"


@on_both
def test_a_store_of_an_older_format_is_taken_over_once_no_node_of_an_older_release_uses_it(
    runtime: str, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newer node refuses to open before that, and says why."""
    monkeypatch.setattr(session, "TRIALS", 2)
    with_store(database, nothing, runtime=runtime)
    with psycopg.connect(database, autocommit=True) as older:
        for statement in OLDER:
            older.execute(statement)
        older.execute(NODE_OF_OLD.encode())
        with pytest.raises(StoreFailed, match="nodes of an older release use the store, whose format is 1"):
            with_store(database, nothing, makes=None, runtime=runtime)
    wait_until(lambda: opens(database, runtime))
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT version, release FROM cloudid.format").fetchall() == [(FORMAT, VERSION)]


def opens(database: str, runtime: str) -> bool:
    """The backend of a connection that was closed keeps its lock for a moment."""
    try:
        with_store(database, nothing, makes=None, runtime=runtime)
    except StoreFailed:
        return False
    return True


@on_both
def test_a_pooler_that_lends_a_backend_to_others_is_named(runtime: str, database: str) -> None:
    """It shows itself by the statements of others."""

    async def scenario(host: Host, _: PostgresStore) -> None:
        connection = await Connection.open(host, Address.parse(database).conninfo(), PATIENCE)
        with closing(connection):
            await connection.run("PREPARE s0 AS SELECT 1", PATIENCE)
            with pytest.raises(StatementFailed, match="a connection pooler shares"):
                await connection.ask(Statement("SELECT 2"), (), PATIENCE)

    with_store(database, scenario, runtime=runtime)


async def side_by_side(host: Host, *works: Callable[[], Awaitable[T]]) -> list[T | Exception]:
    """The answers and failures of what runs at the same time."""
    outcomes: dict[int, T | Exception] = {}
    done = host.new_event()

    async def attempt(place: int, work: Callable[[], Awaitable[T]]) -> None:
        try:
            outcomes[place] = await work()
        except Exception as failure:  # noqa: BLE001  # the caller looks at it
            outcomes[place] = failure
        if len(outcomes) == len(works):
            done.set()

    for place, work in enumerate(works):
        host.start(partial(attempt, place, work))
    await done.wait()
    return [outcomes[place] for place in range(len(works))]


async def together(host: Host, store: PostgresStore, *commits: Commit) -> list[int | Exception]:
    """The outcomes of commits at the same time."""
    return await side_by_side(host, *(partial(store.commit, commit) for commit in commits))


# The schema


@everywhere
def test_what_was_written_is_there_after_a_restart(database: str, mode: Mode) -> None:
    async def write(host: Host, store: PostgresStore) -> int:
        return await store.commit(Commit({}, {"a": b"1"}))

    async def read(host: Host, store: PostgresStore) -> tuple[Entry | None, int]:
        return await store.read("a"), await store.commit(Commit({}, {"b": b"1"}))

    version = with_store(database, write, mode)
    entry, later = with_store(database, read, None)
    assert entry == Entry(b"1", version)
    assert later > version


def test_only_init_makes_the_tables(database: str) -> None:
    with pytest.raises(StoreFailed, match="run init first"):
        with_store(database, nothing, None)
    with_store(database, nothing)
    with_store(database, nothing, None)
    with_store(database, nothing)


def test_all_nodes_use_the_mode_that_the_store_was_made_with(database: str, databases: Databases) -> None:
    with_store(database, nothing, Mode.PORTABLE)
    with_store(database, nothing, Mode.KEYS)
    assert databases.execute("SELECT mode FROM cloudid.format", database=database) == [("portable",)]


@pytest.mark.parametrize(
    "statement, reason",
    [
        ("CREATE SCHEMA cloudid", "is not a store of cloudid"),
        ("CREATE SCHEMA cloudid; CREATE TABLE cloudid.format (cats text)", "is not a store of cloudid"),
        ("UPDATE cloudid.format SET version = 99", "was opened by cloudid .* and has version 99 of the store's format"),
        ("UPDATE cloudid.format SET mode = 'other'", "is not supported by this version"),
        ("DELETE FROM cloudid.format", "is not a store of cloudid"),
    ],
)
def test_a_database_that_is_not_ours_is_refused(
    database: str, databases: Databases, statement: str, reason: str
) -> None:
    """By `init` and by servers; it is not changed."""
    if "CREATE" not in statement:
        with_store(database, nothing)
    databases.execute(statement, database=database)
    for makes in (KEYS, None):
        with pytest.raises(StoreFailed, match=reason):
            with_store(database, nothing, makes)


def test_a_database_of_another_encoding_is_refused(databases: Databases) -> None:
    options = "TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'"
    with databases.database(options) as database, pytest.raises(StoreFailed, match="encoding UTF8"):
        with_store(database, nothing)


def test_commits_are_synced_and_isolated_whatever_the_database_prefers(database: str, databases: Databases) -> None:
    name = database.rpartition("/")[2]
    for setting in (
        "synchronous_commit = off",
        "default_transaction_isolation = 'repeatable read'",
        "statement_timeout = 2000",
        "search_path = 'nowhere'",
    ):
        with_store(database, nothing)
        databases.execute(f"ALTER DATABASE {name} SET {setting}")

    async def settings(host: Host, store: PostgresStore) -> list[bytes | None]:
        session = await store._connector.session()
        shown = []
        for name in ("synchronous_commit", "default_transaction_isolation", "statement_timeout", "search_path"):
            shown.append((await session.writer.run(f"SHOW {name}", 5.0)).get_value(0, 0))
        await store.commit(Commit({}, {"a": b"1"}))
        return shown

    assert with_store(database, settings, None) == [b"on", b"read committed", b"10s", b"pg_catalog"]


# Batches


@everywhere
@on_both
def test_commits_of_a_batch_stand_and_fall_alone(database: str, mode: Mode, runtime: str) -> None:
    async def scenario(host: Host, store: PostgresStore) -> None:
        version = await store.commit(Commit({}, {"old": b""}))
        *creations, wrong, right = await together(
            host,
            store,
            Commit({"a": ABSENT}, {"a": b"1"}),
            Commit({"a": ABSENT}, {"a": b"2"}),
            Commit({"old": version + 1}, {"b": b"3"}),
            Commit({"old": version}, {"c": b"4"}),
        )
        [created] = [outcome for outcome in creations if isinstance(outcome, int)]
        assert [type(outcome) for outcome in creations if outcome != created] == [Conflict]
        assert isinstance(wrong, Conflict)
        assert isinstance(right, int)
        assert await store.read("a") == Entry(b"%d" % (creations.index(created) + 1), created)
        assert await store.read("c") == Entry(b"4", right)
        assert created != right
        assert await store.list("", "", 10) == ("a", "c", "old")

    with_store(database, scenario, mode, runtime)


@everywhere
def test_a_thousand_commits_at_once_have_a_thousand_versions(database: str, mode: Mode) -> None:
    async def scenario(host: Host, store: PostgresStore) -> None:
        versions = await together(host, store, *(Commit({f"{n}": ABSENT}, {f"{n}": b"%d" % n}) for n in range(1000)))
        assert len(set(versions)) == 1000
        for number, version in enumerate(versions):
            assert await store.read(f"{number}") == Entry(b"%d" % number, version)  # type: ignore[arg-type]

    with_store(database, scenario, mode)


@everywhere
def test_a_commit_that_the_database_cannot_hold_fails_alone(database: str, mode: Mode) -> None:
    """Neither a key that it refuses nor one that cannot be sent takes others of the batch with it."""

    async def scenario(host: Host, store: PostgresStore) -> None:
        bad = ("".join(map(chr, range(0x4E00, 0x5E00))), "zero\0", "surrogate\ud800")
        outcomes = await together(host, store, *(Commit({}, {key: b""}) for key in ("a", *bad, "b")))
        assert [type(outcome) for outcome in outcomes] == [int, StoreFailed, StoreFailed, StoreFailed, int]
        assert [await store.read(key) for key in bad] == [None] * 3
        assert await store.list("", "", 10) == ("a", "b")
        assert await store.list("", "a\0", 10) == ("b",)
        assert await store.list("zero\0", "", 10) == ()

    with_store(database, scenario, mode)


@pytest.mark.parametrize("prefix", ["", "a", "a\ud7ff", "a\U0010ffff", "\U0010ffff", "\U0010ffff\U0010ffff"])
def test_lists_end_with_the_last_key_of_the_prefix(database: str, prefix: str) -> None:
    """Wherever the alphabet ends."""
    keys = sorted(
        start + end
        for start in ("a", "a\ud7ff", "a\ue000", "a\U0010ffff", "b", "\U0010ffff", "\U0010ffff\U0010ffff")
        for end in ("", "0", "\U0010ffff\U0010ffff")
    )

    async def scenario(host: Host, store: PostgresStore) -> None:
        await store.commit(Commit({}, dict.fromkeys(keys, b"")))
        wanted = tuple(key for key in dict.fromkeys(keys) if key.startswith(prefix))
        assert await store.list(prefix, "", 100) == wanted
        assert await store.list(prefix, wanted[0], 3) == wanted[1:4]

    with_store(database, scenario)


def counted(connection: Connection) -> list[object]:
    """What is asked on a connection from now on."""
    asked: list[object] = []
    ask = connection.ask

    async def ask_and_note(*given: Any) -> Any:
        asked.append(given)
        return await ask(*given)

    connection.ask = ask_and_note  # type: ignore[method-assign, assignment]
    return asked


def test_many_entries_are_one_request(database: str) -> None:
    """With those that others read at the same time, and whatever the database cannot hold."""

    async def scenario(host: Host, store: PostgresStore) -> None:
        version = await store.commit(Commit({}, {f"{n}": b"%d" % n for n in range(1000)}))
        asked = counted((await store._connector.session()).reader)
        found = await store.read_all([*(f"{n}" for n in range(1000)), "absent", "zero\0"])
        assert found == {f"{n}": Entry(b"%d" % n, version) for n in range(1000)}
        assert await store.read_all(["surrogate\ud800"]) == {}
        assert len(asked) == 1

    with_store(database, scenario)


@everywhere
def test_commits_at_the_same_time_are_few_statements(database: str, mode: Mode) -> None:
    async def scenario(host: Host, store: PostgresStore) -> None:
        await store.commit(Commit({}, {"before": b""}))
        asked = counted((await store._connector.session()).writer)
        outcomes = await together(host, store, *(Commit({}, {f"{n}": b""}) for n in range(50)))
        assert all(isinstance(outcome, int) for outcome in outcomes)
        assert len(asked) <= 2

    with_store(database, scenario, mode)


def test_commits_of_callers_that_are_about_to_ask_are_one_statement(database: str) -> None:
    """On asyncio, whose tasks run in their order."""

    async def scenario(host: Host, store: PostgresStore) -> None:
        await store.commit(Commit({}, {"before": b""}))
        asked = counted((await store._connector.session()).writer)

        async def commit_later(turns: int) -> int:
            for _ in range(turns):
                await host.next_turn()
            return await store.commit(Commit({}, {f"{turns}": b""}))

        await side_by_side(host, *(partial(commit_later, turns) for turns in range(8)))
        assert len(asked) == 1

    with_store(database, scenario, runtime="aiohttp")


@on_both
def test_no_thread_is_on_the_way(database: str, runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of hosts are looked up in one when a connection is made, and that is all."""

    async def scenario(host: Host, store: PostgresStore) -> None:
        def refuse(*given: object) -> None:
            raise AssertionError("a thread")

        monkeypatch.setattr(host, "in_thread", refuse)
        before = threading.active_count()
        version = await store.commit(Commit({}, {"a": b"1"}))
        assert await store.read("a") == Entry(b"1", version)
        assert await store.list("", "", 10) == ("a",)
        assert threading.active_count() <= before

    with_store(database, scenario, runtime=runtime)


def test_reads_at_the_same_time_are_one_request(database: str) -> None:
    async def scenario(host: Host, store: PostgresStore) -> None:
        await store.commit(Commit({}, {f"{n}": b"%d" % n for n in range(50)}))
        asked = counted((await store._connector.session()).reader)

        async def read(number: int) -> bytes:
            entry = await store.read(f"{number}")
            assert entry is not None
            return entry.value

        values = await side_by_side(host, *(partial(read, number) for number in range(50)))
        assert values == [b"%d" % number for number in range(50)]
        assert len(asked) <= 2

    with_store(database, scenario)


def test_a_read_does_not_wait_for_a_commit(database: str, databases: Databases) -> None:
    """Not even for one that waits for another node."""
    import psycopg

    async def scenario(host: Host, store: PostgresStore) -> None:
        version = await store.commit(Commit({}, {"a": b"1"}))
        with psycopg.connect(database) as other:
            other.execute(LOCK)
            blocked: list[int] = []

            async def commit() -> None:
                blocked.append(await store.commit(Commit({"a": version}, {"a": b"2"})))

            host.start(commit)
            await host.sleep(0.05)
            assert await store.read("a") == Entry(b"1", version)
            assert blocked == []
            other.rollback()
        while not blocked:
            await host.sleep(0.01)

    with_store(database, scenario)


def test_the_clock_of_the_database_comes_with_each_commit(database: str) -> None:
    async def scenario(host: Host, store: PostgresStore) -> None:
        assert store.clock is None
        await store.commit(Commit({}, {"a": b"1"}))
        assert store.clock is not None
        assert abs(store.clock.offset) <= store.clock.uncertainty + 0.01
        assert 0 <= store.clock.uncertainty < PATIENCE

    with_store(database, scenario)


def test_rows_of_writers_that_are_gone_are_removed(database: str, databases: Databases) -> None:
    """A writer that comes back after a long pause writes all the same."""

    async def scenario(host: Host, store: PostgresStore) -> None:
        await store.commit(Commit({}, {"a": b"1"}))
        databases.execute("UPDATE cloudid.writer SET used_at = now() - interval '2 days'", database=database)
        with closing(at(database, None)) as other:
            await other.open(host)
            await other.commit(Commit({}, {"b": b"1"}))
        assert databases.execute("SELECT count(*) FROM cloudid.writer", database=database) == [(1,)]
        await store.commit(Commit({}, {"c": b"1"}))
        assert databases.execute("SELECT count(*) FROM cloudid.writer", database=database) == [(2,)]

    with_store(database, scenario)
