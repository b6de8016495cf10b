"""What goes wrong with a database: lost connections, restarts, fail-over, read-only, full; what a caller is told."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Any, Final

import psycopg
import pytest

from cloudid_core.effects import ABSENT, Commit, Entry
from cloudid_core.errors import Conflict, HostFailure, OutcomeUnknown, StoreFailed
from cloudid_servers.host.host import Host
from cloudid_servers.stores.postgres import Mode, PostgresStore, connector, session, store
from cloudid_servers.stores.postgres.connection import ConnectionLost
from tests.waiting import PATIENCE

from .cluster import PASSWORD, Cluster, Databases, synchronous_standby
from .test_postgres import LOCK, at, everywhere, nothing, on_both, side_by_side, together, with_store

BACKENDS: Final = """SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE application_name = 'cloudid' AND datname = %s"""
WAITING: Final = """SELECT count(*) FROM pg_stat_activity
    WHERE application_name = 'cloudid' AND wait_event_type = %s AND datname = current_database()"""
FULL: Final = 2**24 + 4096
"""Bytes that a file may have on a disk that is full: a whole segment of the journal, and half a page more."""


async def writer_of(store: PostgresStore) -> session.Session:
    return await store._connector.session()


def end_backends(databases: Databases, database: str) -> None:
    """End the processes that serve our connections, and wait until they are gone."""
    databases.execute(BACKENDS, database.rpartition("/")[2])


async def started(host: Host, database: str, waiting: str = "Lock") -> None:
    """Wait until a commit of ours waits in the database."""
    with psycopg.connect(database, autocommit=True) as connection:
        while connection.execute(WAITING, (waiting,)).fetchone() == (0,):
            await host.sleep(0.01)


async def commit_behind(
    other: psycopg.Connection[Any], host: Host, store: PostgresStore, database: str
) -> list[object]:
    """Start a commit that waits for another transaction, which locks its key; where its outcome appears."""
    other.execute(LOCK)
    outcomes: list[object] = []

    async def commit() -> None:
        outcomes.extend(await together(host, store, Commit({"a": ABSENT}, {"a": b"1"})))

    host.start(commit)
    await started(host, database)
    return outcomes


async def refusal(store: PostgresStore, match: str) -> None:
    """Wait until reading is refused for this reason: at first it is that the connection was lost."""
    while True:
        with pytest.raises(StoreFailed) as failure:
            await store.read("a")
        if match in str(failure.value):
            return


async def read_in_the_end(store: PostgresStore, key: str) -> Entry | None:
    """What is there, as soon as the store can be read again."""
    while True:
        with suppress(StoreFailed):
            return await store.read(key)


def cut(lost: session.Session) -> None:
    """The network is gone: nothing more comes or goes, and the backend does not know."""
    with socket.socket(fileno=os.dup(lost.writer._raw.socket)) as twin:
        twin.shutdown(socket.SHUT_RDWR)


@on_both
def test_a_commit_whose_connection_is_lost_does_not_come_true_later(database: str, runtime: str) -> None:
    """It waits for another node when the network goes. What is read meanwhile stays true."""

    async def scenario(host: Host, store: PostgresStore) -> None:
        await store.commit(Commit({}, {"before": b""}))
        with psycopg.connect(database) as other:
            outcomes = await commit_behind(other, host, store, database)
            cut(await writer_of(store))
            await started(host, database)  # sent again by the next session
            assert await store.read("a") is None
            assert outcomes == []
            other.rollback()
        while not outcomes:
            await host.sleep(0.01)
        [version] = outcomes
        assert isinstance(version, int)
        assert await store.read("a") == Entry(b"1", version)
        assert len(await store.list("", "", 10)) == 2

    with_store(database, scenario, runtime=runtime)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new connection is waited for, however long that takes here."""
    monkeypatch.setattr(connector, "PATIENCE", PATIENCE)


@pytest.fixture
def impatient(patient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long for a connection."""
    monkeypatch.setattr(connector, "PATIENCE", 0.2)


@pytest.mark.usefixtures("impatient")
@on_both
def test_until_the_old_session_has_ended_everything_is_refused(
    database: str, runtime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old backend cannot be ended for a while, and waits for another node. Then it writes after all."""

    async def cannot(*given: object) -> None:
        """As in engines that have no way to end a backend."""

    monkeypatch.setattr(session.Session, "end", cannot)

    async def scenario(host: Host, store: PostgresStore) -> None:
        await store.commit(Commit({}, {"before": b""}))
        with psycopg.connect(database) as other:
            outcomes = await commit_behind(other, host, store, database)
            cut(await writer_of(store))
            while not outcomes:
                await host.sleep(0.01)
            assert [type(outcome) for outcome in outcomes] == [OutcomeUnknown]
            for refused in (store.read("a"), store.list("", "", 10), store.commit(Commit({}, {"b": b""}))):
                with pytest.raises(StoreFailed):
                    await refused
            other.rollback()
        entry = await read_in_the_end(store, "a")
        assert entry is not None, "it was read too early"
        assert await together(host, store, Commit({"a": ABSENT}, {"a": b"2"})) != [entry.version]
        assert await store.read("a") == entry

    with_store(database, scenario, runtime=runtime)


@everywhere
@on_both
def test_commits_survive_the_loss_of_their_backends(
    database: str, mode: Mode, runtime: str, databases: Databases
) -> None:
    """What was answered is there once, at its version; what was refused is not."""

    async def scenario(host: Host, store: PostgresStore) -> None:
        outcomes: dict[str, int | Exception] = {}

        async def write(number: int) -> None:
            for step in range(40):
                key = f"{number}/{step}"
                [outcomes[key]] = await together(host, store, Commit({key: ABSENT}, {key: key.encode()}))

        async def kill() -> None:
            for _ in range(8):
                await host.sleep(0.05)
                end_backends(databases, database)

        await side_by_side(host, kill, *(partial(write, number) for number in range(8)))
        assert {type(outcome) for outcome in outcomes.values()} <= {int, StoreFailed, OutcomeUnknown}
        assert sum(isinstance(outcome, int) for outcome in outcomes.values()) > 200
        for key, outcome in outcomes.items():
            entry = await store.read(key)
            if isinstance(outcome, int):
                assert entry == Entry(key.encode(), outcome)
            elif isinstance(outcome, StoreFailed):
                assert entry is None

    with_store(database, scenario, mode, runtime)


def test_a_batch_that_was_written_though_its_connection_was_lost_is_acknowledged(database: str) -> None:
    """The answer is lost on its way. The version comes from the writer's row."""

    async def scenario(host: Host, store: PostgresStore) -> None:
        await store.commit(Commit({}, {"before": b""}))
        lost = await writer_of(store)
        receive = lost.writer._receive

        async def deaf(deadline: float) -> object:
            await receive(deadline)
            raise ConnectionLost("the answer is lost")

        lost.writer._receive = deaf  # type: ignore[method-assign, assignment]
        versions = await together(host, store, *(Commit({key: ABSENT}, {key: b""}) for key in "abc"))
        assert [await store.read(key) for key in "abc"] == [Entry(b"", version) for version in versions]  # type: ignore[arg-type]

    with_store(database, scenario)


@on_both
def test_a_restart_of_the_server_is_survived(cluster: Cluster, runtime: str) -> None:
    """Killed at once, as by a loss of power, amid commits and reads."""

    async def scenario(host: Host, store: PostgresStore) -> None:
        outcomes: dict[str, int | Exception] = {}
        done = False

        async def write(number: int) -> None:
            step = 0
            while not done:
                key = f"{number}/{step}"
                step += 1
                [outcomes[key]] = await together(host, store, Commit({key: ABSENT}, {key: b""}))

        async def read() -> None:
            while not done:
                with suppress(StoreFailed):
                    await store.read("0/0")
                await host.sleep(0.001)

        async def restart() -> None:
            nonlocal done
            for how in ("immediate", "fast"):
                await host.sleep(0.2)
                await host.in_thread(cluster.restart, how)
            await host.sleep(0.5)
            done = True

        answers = await side_by_side(host, restart, read, *(partial(write, number) for number in range(4)))
        assert answers == [None] * 6
        for key, outcome in outcomes.items():
            entry = await store.read(key)
            if isinstance(outcome, int):
                assert entry == Entry(b"", outcome)
            else:
                assert isinstance(outcome, StoreFailed | OutcomeUnknown)
                assert entry is None or isinstance(outcome, OutcomeUnknown)
        last = await store.commit(Commit({}, {"after": b""}))
        assert last > max(outcome for outcome in outcomes.values() if isinstance(outcome, int))

    with cluster.database() as database:
        with_store(database, scenario, runtime=runtime)


@pytest.mark.usefixtures("impatient")
def test_a_server_that_is_down_is_named_without_secrets(cluster: Cluster) -> None:
    with cluster.database() as database:

        async def scenario(host: Host, store: PostgresStore) -> None:
            await host.in_thread(cluster.stop, "immediate")
            with pytest.raises(StoreFailed) as failure:
                await store.read("a")
            assert PASSWORD not in str(failure.value)
            with pytest.raises(StoreFailed, match="refused"), closing(at(database, None)) as other:
                await other.open(host)
            await host.in_thread(lambda _: cluster.start(), None)
            await read_in_the_end(store, "a")

        with_store(database, scenario)


def test_a_fail_over_is_noticed_and_uses_no_version_twice(cluster: Cluster) -> None:
    """The standby lacks the last commits, as an asynchronous one may. What rests on those is refused."""
    with cluster.database() as database, standby_of(cluster, database) as standby:

        async def scenario(host: Host, store: PostgresStore) -> None:
            kept = await store.commit(Commit({}, {"a": b"kept"}))
            await replicated(host, standby, standby_database, "a")
            standby.execute("SELECT pg_wal_replay_pause()")
            await host.in_thread(standby.stop, "fast")
            lost = await store.commit(Commit({"a": kept}, {"a": b"lost"}))
            assert store._connector.timeline == 1
            await host.in_thread(cluster.stop, "immediate")
            await host.in_thread(lambda _: standby.start(), None)
            await host.in_thread(lambda _: standby.promote(), None)
            assert await read_in_the_end(store, "a") == Entry(b"kept", kept)
            with pytest.raises(Conflict):
                await store.commit(Commit({"a": lost}, {"a": b"resting on what is lost"}))
            new = await store.commit(Commit({"a": kept}, {"a": b"new"}))
            assert store._connector.timeline == 2
            assert new > lost

        standby_database = standby.address(database.rpartition("/")[2])
        try:
            with_store(cluster.with_standby(database, standby), scenario, None)
        finally:
            cluster.start()


@contextmanager
def standby_of(cluster: Cluster, database: str) -> Iterator[Cluster]:
    """A standby that has the store's tables from the beginning, since what is made later comes when it likes."""
    with_store(database, nothing)
    with cluster.standby() as standby:
        yield standby


async def replicated(host: Host, standby: Cluster, database: str, key: str) -> None:
    while not standby.execute("SELECT 1 FROM cloudid.entry WHERE key = %s", key, database=database):
        await host.sleep(0.02)


def test_a_synchronous_standby_loses_nothing_that_was_acknowledged(cluster: Cluster) -> None:
    with cluster.database() as database:
        with_store(database, nothing)
        with synchronous_standby(cluster) as standby:

            async def scenario(host: Host, store: PostgresStore) -> None:
                versions = {f"{n}": await store.commit(Commit({}, {f"{n}": b""})) for n in range(50)}
                await host.in_thread(cluster.fail_over_to, standby)
                for key, version in versions.items():
                    assert await read_in_the_end(store, key) == Entry(b"", version)

            with_store(cluster.with_standby(database, standby), scenario)


@pytest.mark.parametrize("scope", ["SYSTEM", "DATABASE"])
def test_a_read_only_database_serves_reads_and_refuses_commits(cluster: Cluster, scope: str) -> None:
    """Until it takes writes again."""
    with cluster.database() as database:
        target = "SYSTEM" if scope == "SYSTEM" else f"DATABASE {database.rpartition('/')[2]}"

        async def scenario(host: Host, store: PostgresStore) -> None:
            version = await store.commit(Commit({}, {"a": b"1"}))
            cluster.execute(f"ALTER {target} SET default_transaction_read_only = on")
            cluster.execute("SELECT pg_reload_conf()")
            end_backends(cluster, database)
            for _ in range(3):
                with pytest.raises(StoreFailed, match="read-only"):
                    await store.commit(Commit({}, {"a": b"2"}))
                assert await store.read("a") == Entry(b"1", version)
            for statement in (f"ALTER {target} RESET default_transaction_read_only", "SELECT pg_reload_conf()"):
                with psycopg.connect(cluster.admin, autocommit=True) as connection:
                    connection.execute("SET default_transaction_read_only = off")
                    connection.execute(statement.encode())
            again = None
            while again is None:
                with suppress(StoreFailed):
                    again = await store.commit(Commit({"a": version}, {"a": b"3"}))
                await host.sleep(0.05)
            assert await store.read("a") == Entry(b"3", again)

        with_store(database, scenario)


def test_a_standby_serves_reads_and_refuses_commits(cluster: Cluster) -> None:
    with cluster.database() as database, standby_of(cluster, database) as standby:

        async def write(host: Host, store: PostgresStore) -> int:
            return await store.commit(Commit({}, {"a": b"1"}))

        version = with_store(database, write)
        there = standby.address(database.rpartition("/")[2])

        async def scenario(host: Host, store: PostgresStore) -> None:
            await replicated(host, standby, there, "a")
            assert await store.read("a") == Entry(b"1", version)
            with pytest.raises(StoreFailed, match="read-only"):
                await store.commit(Commit({}, {"a": b"2"}))

        with_store(there, scenario, None)


REFUSALS: Final = {
    "out of lock slots": ("53200", "out of shared memory"),
    "an internal error": ("XX000", "no idea"),
}


@pytest.mark.parametrize("state, message", REFUSALS.values(), ids=REFUSALS)
def test_what_the_database_refuses_is_certainly_not_written(
    database: str, databases: Databases, state: str, message: str
) -> None:
    """The whole batch fails, in the middle of its writes; the next one does not."""
    broken = f"""
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION '{message}' USING ERRCODE = '{state}'; END $$;
    CREATE TRIGGER refuse AFTER INSERT ON cloudid.entry FOR EACH STATEMENT EXECUTE FUNCTION public.refuse()"""

    async def scenario(host: Host, store: PostgresStore) -> None:
        version = await store.commit(Commit({}, {"a": b"1"}))
        databases.execute(broken, database=database)
        outcomes = await together(host, store, *(Commit({}, {key: b"2"}) for key in ("a", "b", "c")))
        assert [(type(outcome), state in str(outcome)) for outcome in outcomes] == [(StoreFailed, True)] * 3
        databases.execute("DROP TRIGGER refuse ON cloudid.entry", database=database)
        assert await store.read("a") == Entry(b"1", version)
        assert await store.list("", "", 9) == ("a",)
        assert await store.commit(Commit({"a": version}, {"a": b"3"})) > version

    with_store(database, scenario)


def test_a_database_that_is_full_refuses_commits_and_serves_reads(cluster: Cluster) -> None:
    """The process of the database can really not write on: no file may grow any more, but those of its journal.

    A batch that fails in the middle of its writes leaves nothing behind. When there is room again, commits go on.
    """
    half = bytes(2**19)

    def limit_files(used: session.Session, most: str) -> None:
        cluster.run("/usr/bin/prlimit", "--pid", f"{used.writer.pid}", f"--fsize={most}:")

    async def scenario(host: Host, store: PostgresStore) -> None:
        used = await writer_of(store)
        limit_files(used, f"{FULL}")
        versions: dict[str, int] = {}

        async def fill() -> None:
            for number in range(64):
                versions[f"{number}"] = await store.commit(Commit({}, {f"{number}": half}))

        with pytest.raises(StoreFailed, match="53100"):
            await fill()
        outcomes = await together(host, store, *(Commit({}, {key: half}) for key in ("0", "new")))
        assert [type(outcome) for outcome in outcomes] == [StoreFailed] * 2
        assert {key: entry.version for key, entry in (await store.read_all([*versions, "new"])).items()} == versions
        limit_files(used, "unlimited")
        assert await store.commit(Commit({"0": versions["0"]}, {"0": half})) > versions["0"]
        assert await writer_of(store) is used

    with cluster.database() as database:
        with_store(database, scenario)


def test_a_commit_that_waits_too_long_is_certainly_not_written(database: str) -> None:
    """The database ends the statement; the connection stays."""

    async def scenario(host: Host, store: PostgresStore) -> None:
        await store.commit(Commit({}, {"before": b""}))
        session = await writer_of(store)
        await session.writer.run("SET statement_timeout = '200ms'", 5.0)
        with psycopg.connect(database) as other:
            other.execute(LOCK)
            with pytest.raises(StoreFailed, match="57014"):
                await store.commit(Commit({}, {"a": b"1"}))
            other.rollback()
        assert await store.read("a") is None
        assert await writer_of(store) is session

    with_store(database, scenario)


def test_a_database_that_does_not_answer_is_given_up(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than it takes its own limit: the connection counts as lost, and the commit is settled."""

    async def scenario(host: Host, opened: PostgresStore) -> None:
        await opened.commit(Commit({}, {"before": b""}))
        first = await writer_of(opened)
        with psycopg.connect(database) as other, monkeypatch.context() as impatient:
            impatient.setattr(store, "ANSWER_SECONDS", 0.3)
            other.execute(LOCK)
            [outcome] = await together(host, opened, Commit({"a": ABSENT}, {"a": b"1"}))
            assert isinstance(outcome, HostFailure)
            other.rollback()
        assert await read_in_the_end(opened, "a") is None or isinstance(outcome, OutcomeUnknown)
        assert await writer_of(opened) is not first

    with_store(database, scenario)


@pytest.mark.usefixtures("impatient")
def test_a_database_that_holds_another_store_is_not_used(database: str, databases: Databases) -> None:
    """Dropped and made again, or restored from elsewhere, behind the back of a node."""

    async def scenario(host: Host, store: PostgresStore) -> None:
        await store.commit(Commit({}, {"a": b"1"}))
        databases.execute("UPDATE cloudid.format SET id = 'another'", database=database)
        end_backends(databases, database)
        await refusal(store, "a different store than before")

    with_store(database, scenario)


@pytest.mark.usefixtures("impatient")
def test_a_server_that_is_back_from_before_a_fail_over_is_not_used(database: str, databases: Databases) -> None:
    """It lacks what the other has acknowledged since."""

    async def scenario(host: Host, store: PostgresStore) -> None:
        await store.commit(Commit({}, {"a": b"1"}))
        store._connector.timeline += 1
        end_backends(databases, database)
        for _ in range(3):
            await refusal(store, "back on timeline 1, after 2")
        store._connector.timeline -= 1
        assert await read_in_the_end(store, "a") is not None

    with_store(database, scenario)


def test_a_reader_that_notices_a_loss_first_leaves_no_commit_open(database: str) -> None:
    """Its new session settles the commit that is on its way on the old one."""

    async def scenario(host: Host, store: PostgresStore) -> None:
        await store.commit(Commit({}, {"before": b""}))
        with psycopg.connect(database) as other:
            outcomes = await commit_behind(other, host, store, database)
            lost = await writer_of(store)
            with socket.socket(fileno=os.dup(lost.reader._raw.socket)) as twin:
                twin.shutdown(socket.SHUT_RDWR)
            assert await store.read("a") is None
            assert await writer_of(store) is not lost
            assert outcomes == []
            other.rollback()
        while not outcomes:
            await host.sleep(0.01)
        [version] = outcomes
        assert await store.read("a") == Entry(b"1", version)  # type: ignore[arg-type]

    with_store(database, scenario)


def test_prepared_statements_that_are_gone_are_prepared_again(database: str) -> None:
    async def scenario(host: Host, store: PostgresStore) -> None:
        await store.commit(Commit({}, {"a": b"1"}))
        await store.read("a")
        session = await writer_of(store)
        await session.writer.run("DEALLOCATE ALL", 5.0)
        await session.reader.run("DEALLOCATE ALL", 5.0)
        version = await store.commit(Commit({}, {"a": b"2"}))
        assert await store.read("a") == Entry(b"2", version)

    with_store(database, scenario)
