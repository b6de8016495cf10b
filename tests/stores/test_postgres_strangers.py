"""A role of the database server that has no right on the store: it may connect, and can do nothing to the service."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from cloudid_core.effects import Commit
from cloudid_core.errors import StoreFailed
from cloudid_servers.host.host import Host
from cloudid_servers.stores.postgres import Address, PostgresStore, schema, session, statements
from cloudid_servers.stores.store import FORMAT
from tests.hosts.opened import on
from tests.servers.running import Running, finished
from tests.waiting import PATIENT

from .cluster import Databases
from .test_postgres import at, nothing, on_both, opens, with_store

STRANGER, OWNER, PASSWORD = f"stranger_{os.getpid()}", f"owner_{os.getpid()}", "known-to-the-test"
KEY_LOCK: Final = "SELECT pg_advisory_lock(hashtextextended('a', 0))"
USE_LOCK: Final = f"SELECT pg_advisory_lock({statements.USE}, 0)"
FORMER: Final = """
DO $do$ DECLARE text text := pg_get_functiondef('cloudid.commit'::regproc); BEGIN
    EXECUTE replace(replace(text, 'PERFORM FROM cloudid.slot s WHERE s.number = slot.number FOR UPDATE',
                                  'PERFORM pg_advisory_xact_lock(slot.number)'),
                    'PERFORM FROM cloudid.slot s WHERE s.number = slot.number FOR KEY SHARE',
                    'PERFORM pg_advisory_xact_lock_shared(slot.number)');
END $do$;
DROP TABLE cloudid.slot
"""
"""Takes the rows back that batches lock, as in stores of earlier releases."""


@pytest.fixture
def roles(databases: Databases, database: str) -> Iterator[tuple[str, str]]:
    """The addresses of the store's owner, who is no superuser, and of the stranger."""
    name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
    for role in (STRANGER, OWNER):
        databases.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
    databases.execute(f"ALTER DATABASE {name} OWNER TO {OWNER}")
    head, _, tail = database.partition("@")
    scheme = head.partition("//")[0]
    try:
        yield tuple(f"{scheme}//{role}:{PASSWORD}@{tail}" for role in (OWNER, STRANGER))  # type: ignore[misc]
    finally:
        databases.execute(f"ALTER DATABASE {name} OWNER TO CURRENT_USER")
        for role in (STRANGER, OWNER):
            databases.execute(f"DROP OWNED BY {role}", database=database)
            databases.execute(f"DROP ROLE {role}")


def let_in(databases: Databases, owner: str) -> None:
    """Let every role connect again, as in stores that earlier releases made."""
    name = psycopg.conninfo.conninfo_to_dict(owner)["dbname"]
    databases.execute(f"GRANT CONNECT ON DATABASE {name} TO PUBLIC")


@contextmanager
def connected(address: str, *statements: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(make_conninfo(address), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())
        yield connection


@on_both
def test_a_lock_of_a_role_without_rights_stops_no_commit(
    runtime: str, roles: tuple[str, str], databases: Databases
) -> None:
    owner, stranger = roles

    async def scenario(host: Host, store: PostgresStore) -> None:
        let_in(databases, owner)
        with connected(stranger, KEY_LOCK):
            version = await store.commit(Commit({}, {"a": b"1"}))
            await store.commit(Commit({"a": version}, {"a": b"2"}))

    with_store(owner, scenario, runtime=runtime)


@on_both
def test_a_lock_of_a_role_without_rights_keeps_no_server_from_the_store(
    runtime: str, roles: tuple[str, str], databases: Databases
) -> None:
    owner, stranger = roles
    with_store(owner, nothing, runtime=runtime)
    let_in(databases, owner)

    async def scenario(host: Host, store: PostgresStore) -> None:
        await store.commit(Commit({}, {"a": b"1"}))
        assert not (await store._connector.session()).holds_lock
        blocker.execute("SELECT pg_advisory_unlock_all()")
        await store.commit(Commit({}, {"a": b"2"}))
        assert (await store._connector.session()).holds_lock

    with connected(stranger, USE_LOCK) as blocker:
        with_store(owner, scenario, makes=None, runtime=runtime)


def test_a_server_without_the_lock_writes_nothing_once_a_copy_has_begun(
    roles: tuple[str, str], databases: Databases
) -> None:
    owner, stranger = roles
    with_store(owner, nothing)
    let_in(databases, owner)

    async def scenario(host: Host, store: PostgresStore) -> None:
        blocker.execute("SELECT pg_advisory_unlock_all()")
        with closing(PostgresStore(store._address, is_exclusive=True)) as copying:
            await copying.open(host)
            with pytest.raises(StoreFailed, match="is being copied"):
                await store.commit(Commit({}, {"a": b"1"}))

    with connected(stranger, USE_LOCK) as blocker:
        with_store(owner, scenario, makes=None)


def test_a_copy_says_that_a_role_without_rights_holds_the_lock(roles: tuple[str, str], databases: Databases) -> None:
    owner, stranger = roles
    with_store(owner, nothing)
    let_in(databases, owner)

    async def copy(host: Host) -> None:
        with pytest.raises(StoreFailed, match="revoke CONNECT"):
            await copying.open(host)

    copying = PostgresStore(Address.parse(owner), is_exclusive=True)
    with connected(stranger, f"SELECT pg_advisory_lock_shared({statements.USE}, 0)"), closing(copying):
        on("trio", copy)


def test_a_new_store_lets_no_other_role_connect(roles: tuple[str, str]) -> None:
    owner, stranger = roles

    async def scenario(host: Host, store: PostgresStore) -> None:
        assert not store.public_database

    with_store(owner, scenario)
    with pytest.raises(psycopg.OperationalError, match="permission denied"), connected(stranger):
        pass
    assert opens(owner, "trio")


def test_a_new_store_beside_tables_of_others_leaves_their_rights_alone(
    roles: tuple[str, str], databases: Databases
) -> None:
    owner, stranger = roles
    databases.execute("CREATE TABLE public.theirs (number int)", database=databases.address(owner.rpartition("/")[2]))

    async def scenario(host: Host, store: PostgresStore) -> None:
        assert store.public_database

    with_store(owner, scenario)
    with connected(stranger):
        pass


@on_both
def test_a_store_of_an_earlier_release_gets_its_row_locks_while_it_is_used(
    runtime: str, roles: tuple[str, str]
) -> None:
    owner, _ = roles

    async def scenario(host: Host, store: PostgresStore) -> None:
        await store.commit(Commit({}, {"a": b"1"}))
        with connected(owner, FORMER):
            pass
        version = await store.commit(Commit({}, {"a": b"2"}))
        with closing(at(owner, None)) as newer:
            await newer.open(host)
            version = await newer.commit(Commit({"a": version}, {"a": b"3"}))
        await store.commit(Commit({"a": version}, {"a": b"4"}))

    with_store(owner, scenario, runtime=runtime)
    with connected(owner) as connection:
        assert connection.execute("SELECT count(*) FROM cloudid.slot").fetchall() == [(schema.SLOTS,)]
        [[text]] = connection.execute("SELECT pg_get_functiondef('cloudid.commit'::regproc)").fetchall()
        assert "advisory_xact" not in text


@on_both
@pytest.mark.parametrize("table", ["writer", "entry"])
def test_commits_continue_when_a_node_opens_a_former_store_during_a_dump(
    runtime: str, table: str, roles: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node keeps the former locks, and adds the row locks once the dump has ended."""
    owner, _ = roles
    monkeypatch.setattr(session, "ROW_LOCKS_RETRY_SECONDS", 0.0)

    async def scenario(host: Host, store: PostgresStore) -> None:
        version = await store.commit(Commit({}, {"a": b"1"}))
        with connected(owner, FORMER):
            pass
        with closing(at(owner, None)) as newer:
            with connected(owner, "BEGIN", f"LOCK TABLE cloudid.{table} IN ACCESS SHARE MODE"):
                await newer.open(host)
                version = await store.commit(Commit({"a": version}, {"a": b"2"}))
                version = await newer.commit(Commit({"a": version}, {"a": b"3"}))
                assert (await newer._connector.session()).row_locks_retry_at is not None
            version = await newer.commit(Commit({"a": version}, {"a": b"4"}))
            assert (await newer._connector.session()).row_locks_retry_at is None
        await store.commit(Commit({"a": version}, {"a": b"5"}))

    with_store(owner, scenario, runtime=runtime)
    with connected(owner) as connection:
        assert connection.execute("SELECT count(*) FROM cloudid.slot").fetchall() == [(schema.SLOTS,)]


def test_a_node_that_cannot_upgrade_a_store_during_a_dump_names_the_lock(roles: tuple[str, str]) -> None:
    owner, _ = roles
    with_store(owner, nothing)

    async def scenario(host: Host) -> None:
        with closing(at(owner, None)) as newer:
            with (
                connected(owner, "BEGIN", "LOCK TABLE cloudid.format IN ACCESS SHARE MODE"),
                pytest.raises(StoreFailed, match=r"has locked the table cloudid\.format"),
            ):
                await newer.open(host)
            await newer.open(host)

    with connected(owner, f"UPDATE cloudid.format SET version = {FORMAT - 1}"):
        on("trio", scenario)


def test_a_server_whose_role_does_not_own_the_store_goes_on_with_the_former_locks(
    roles: tuple[str, str], databases: Databases
) -> None:
    owner, user = roles
    with_store(owner, nothing)
    let_in(databases, owner)
    grants = (
        f"GRANT USAGE ON SCHEMA cloudid TO {STRANGER}",
        f"GRANT ALL ON ALL TABLES IN SCHEMA cloudid TO {STRANGER}",
        f"GRANT ALL ON ALL SEQUENCES IN SCHEMA cloudid TO {STRANGER}",
    )
    with connected(owner, FORMER, *grants):
        pass

    async def scenario(host: Host, store: PostgresStore) -> None:
        await store.commit(Commit({}, {"a": b"1"}))

    with_store(user, scenario, makes=None)
    with_store(owner, scenario, makes=None)
    with_store(user, scenario, makes=None)


def test_init_check_and_health_name_a_database_that_every_role_may_connect_to(
    roles: tuple[str, str], databases: Databases, tmp_path: Path
) -> None:
    owner, _ = roles
    file = tmp_path / "cloudid.toml"
    file.write_text(f"[server]\nlisten = '127.0.0.1:0'\nstore = '{owner}'\n")
    databases.execute("CREATE TABLE public.theirs (number int)", database=databases.address(owner.rpartition("/")[2]))
    statement = f"REVOKE CONNECT ON DATABASE {owner.rpartition('/')[2]} FROM PUBLIC"
    made = finished("cloudid_servers.trio_server", "init", "--settings", str(file))
    assert made.returncode == 0, made.stderr
    assert statement in made.stderr
    checked = finished("cloudid_servers.trio_server", "check", "--settings", str(file))
    assert checked.returncode == 1
    assert statement in checked.stdout
    with Running("cloudid_servers.trio_server", "serve", "--settings", str(file)) as server:
        assert "database_public" in httpx.get(f"{server.url}/v1/sys/health", **PATIENT).json()["problems"]
    databases.execute(statement)
    assert finished("cloudid_servers.trio_server", "check", "--settings", str(file)).returncode == 0
