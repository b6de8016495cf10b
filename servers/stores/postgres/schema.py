"""Schema: the tables of the store, in a schema `cloudid` of its own. Only `init` makes them.

Versions are handed out by a sequence, one step of it for each batch of commits. The upper bits of a version count the
database's timeline, which grows with each fail-over: a standby that lost the last commits gives no version twice.
"""

from __future__ import annotations

from contextlib import suppress
from enum import Enum
from typing import Final

from attrs import frozen

from cloudid_core.errors import StoreFailed
from cloudid_core.version import VERSION

from ..store import FORMAT, check
from .connection import Connection, StatementFailed

BATCH_VERSIONS: Final = 256
"""How many versions one step of the sequence is worth: the most commits in one batch."""

TIMELINE_BIT: Final = 48
OLDEST_SERVER: Final = 140_000
SECONDS: Final = 30.0


class Mode(Enum):
    """How commits of several nodes are kept apart. All nodes of one store use the same one: it is kept in the store."""

    KEYS = "keys"
    """Row locks for the keys that a batch expects or writes. For PostgreSQL itself."""

    PORTABLE = "portable"
    """One SERIALIZABLE statement, tried again on conflict. For engines that speak PostgreSQL's protocol."""


@frozen
class Store:
    """The store that a database holds."""

    id: str
    mode: Mode
    format: int = FORMAT


_TABLES: Final = f"""
CREATE SCHEMA cloudid;
CREATE TABLE cloudid.format (version int NOT NULL, mode text NOT NULL, id text NOT NULL, release text);
INSERT INTO cloudid.format VALUES ({FORMAT}, '{{mode}}', gen_random_uuid()::text, '{VERSION}');
CREATE TABLE cloudid.entry (key text COLLATE "C" PRIMARY KEY, value bytea NOT NULL, version bigint NOT NULL);
CREATE SEQUENCE cloudid.version INCREMENT {BATCH_VERSIONS} MINVALUE {BATCH_VERSIONS} MAXVALUE {2**TIMELINE_BIT - 1};
CREATE TABLE cloudid.writer (
    id text PRIMARY KEY,
    session text NOT NULL,
    batch bigint NOT NULL,
    base bigint NOT NULL,
    used_at timestamptz NOT NULL DEFAULT now()
);
"""

SLOTS: Final = 2**14
"""How many rows stand for all keys when batches lock them: two keys of one row wait for each other needlessly."""

_KEYS: Final = f"""
ALTER TABLE cloudid.entry ALTER value SET STORAGE EXTERNAL;
CREATE TABLE cloudid.slot (number int PRIMARY KEY);
INSERT INTO cloudid.slot SELECT generate_series(0, {SLOTS - 1});

CREATE OR REPLACE FUNCTION cloudid.commit(
    p_writer text, p_session text, p_batch bigint, p_timeline bigint,
    p_expected text[], p_versions bigint[], p_put text[], p_values bytea[], p_places int[], p_deleted text[]
) RETURNS TABLE (mismatch text, found bigint, clock float8) LANGUAGE plpgsql AS $$
DECLARE first bigint; slot record;
BEGIN
    PERFORM FROM cloudid.writer w WHERE w.id = p_writer AND w.session = p_session FOR UPDATE;
    IF NOT FOUND THEN RETURN; END IF;

    -- In the order of their slots, so that no two batches wait for each other. These are rows, because any role that
    -- may connect to the database can take advisory locks.
    FOR slot IN
        SELECT hashtextextended(k.key, 0) & {SLOTS - 1} AS number, bool_or(k.writes) AS writes FROM (
            SELECT unnest(p_expected) AS key, false AS writes UNION ALL SELECT unnest(p_put || p_deleted), true
        ) k GROUP BY 1 ORDER BY 1
    LOOP
        IF slot.writes THEN
            PERFORM FROM cloudid.slot s WHERE s.number = slot.number FOR UPDATE;
        ELSE
            PERFORM FROM cloudid.slot s WHERE s.number = slot.number FOR KEY SHARE;
        END IF;
    END LOOP;

    -- Under READ COMMITTED, what follows sees all that was committed before the locks were granted.
    RETURN QUERY SELECT e.key, coalesce(t.version, 0), NULL::float8
        FROM unnest(p_expected, p_versions) AS e (key, version) LEFT JOIN cloudid.entry t ON t.key = e.key
        WHERE coalesce(t.version, 0) <> e.version;
    IF FOUND THEN RETURN; END IF;

    first := p_timeline + nextval('cloudid.version');
    UPDATE cloudid.writer w SET batch = p_batch, base = first, used_at = now() WHERE w.id = p_writer;
    DELETE FROM cloudid.entry t WHERE t.key = ANY (p_deleted);
    INSERT INTO cloudid.entry AS t (key, value, version)
        SELECT p.key, p.value, first + p.place FROM unnest(p_put, p_values, p_places) AS p (key, value, place)
        ON CONFLICT (key) DO UPDATE SET value = excluded.value, version = excluded.version;
    RETURN QUERY SELECT NULL::text, first, extract(epoch FROM clock_timestamp())::float8;
END $$;
"""

_SCRIPTS: Final = {Mode.KEYS: _TABLES.format(mode="keys") + _KEYS, Mode.PORTABLE: _TABLES.format(mode="portable")}
_BESIDE_NODES: Final = "SET LOCAL lock_timeout = '1s'; SET LOCAL statement_timeout = '20s';"
"""Precedes every change of tables that running nodes may use.

While such a change waits for a table, as during `pg_dump`, all later statements on the table wait behind it.
"""

_ADVISORY: Final = "SELECT to_regclass('cloudid.slot') IS NULL"
_REPLACE_ADVISORY: Final = f"""
{_BESIDE_NODES}
LOCK TABLE cloudid.writer IN ACCESS EXCLUSIVE MODE;
{_KEYS}
UPDATE cloudid.writer SET session = '';
DO $$ DECLARE role text; BEGIN
    FOR role IN
        SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
        FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'cloudid.writer'::regclass AND a.grantee <> c.relowner
    LOOP
        EXECUTE 'GRANT SELECT, UPDATE ON cloudid.slot TO ' || role;
    END LOOP;
END $$;
"""
"""Batches that wait for the table would continue in the former function: without their session they are sent again."""

REVOKE: Final = "REVOKE CONNECT ON DATABASE {} FROM PUBLIC"
_KEEP_OTHERS_OUT: Final = f"""
DO $$ DECLARE others bigint; BEGIN
    SELECT count(*) INTO others FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname NOT IN ('cloudid', 'pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%';
    IF others = 0 THEN EXECUTE format('{REVOKE.format("%I")}', current_database()); END IF;
END $$
"""
"""Not in a database that others use besides. To a role that may not do it, PostgreSQL says so in a warning."""

_EXISTS: Final = "SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = 'cloudid'"
_FORMAT: Final = "SELECT version, mode, id, to_jsonb(f) ->> 'release' FROM cloudid.format f"
"""The name of the release is missing in the first format."""

_TAKE_OVER: Final = f"""
{_BESIDE_NODES}
ALTER TABLE cloudid.format ADD COLUMN IF NOT EXISTS release text;
UPDATE cloudid.format SET version = {FORMAT}, release = '{VERSION}';
"""
NOT_ALLOWED: Final = "42501"
_ALREADY_THERE: Final = frozenset({"42P06", "42P07", "23505", "40001"})
_LOCKED: Final = frozenset({"55P03", "57014", "40P01"})
"""Another session kept a table locked: the limits of `_BESIDE_NODES` were reached, or the two waited for each other."""


async def prepare(connection: Connection, mode: Mode) -> None:
    """Make the store, unless it exists: another process may be creating it at the same time. Raises `StoreFailed`."""
    _check_server(connection, mode)
    if await _exists(connection):
        return
    try:
        await connection.run(_SCRIPTS[mode], SECONDS)
    except StatementFailed as failure:
        if failure.state not in _ALREADY_THERE:
            raise StoreFailed(f"the store could not be created: {failure}") from None
    if mode is Mode.KEYS:
        with suppress(StatementFailed):  # the store is usable; health and `check` name the statement
            await connection.run(_KEEP_OTHERS_OUT, SECONDS)


async def find(connection: Connection) -> Store:
    """The store of this database. Raises `StoreFailed` when there is none, or one that this program cannot use."""
    if not await _exists(connection):
        raise StoreFailed("the database has no store: run init first")
    try:
        result = await connection.run(_FORMAT, SECONDS)
        [[version, mode, identity, release]] = [
            [(result.get_value(row, column) or b"").decode() for column in range(4)] for row in range(result.ntuples)
        ]
        number = int(version)
    except (StatementFailed, ValueError) as failure:
        if isinstance(failure, StatementFailed) and failure.state == NOT_ALLOWED:
            raise StoreFailed(f"the store cannot be read: {failure}") from None
        raise StoreFailed("the schema cloudid in the database is not a store of cloudid") from None
    check("the store in the database", number, release)
    if mode not in {known.value for known in Mode}:
        raise StoreFailed("the mode of the store in the database is not supported by this version")
    store = Store(identity, Mode(mode), number)
    _check_server(connection, store.mode)
    return store


async def replace_advisory_locks(connection: Connection) -> bool:
    """Give a store of an earlier release its row locks; nodes that use it need not stop.

    Return whether to try again later, because another session keeps the tables locked. Does nothing where that was
    done, or where this role does not own the tables.
    """
    if (await connection.run(_ADVISORY, SECONDS)).get_value(0, 0) == b"t":
        try:
            await connection.run(_REPLACE_ADVISORY, SECONDS)
        except StatementFailed as failure:
            if failure.state in _LOCKED:
                return True
            if failure.state not in _ALREADY_THERE | {NOT_ALLOWED}:
                raise
    return False


async def take_over(connection: Connection) -> None:
    """Give the store the format of this release. No other node may have it open. Raises `StoreFailed`."""
    try:
        await connection.run(_TAKE_OVER, SECONDS)
    except StatementFailed as failure:
        if failure.state in _LOCKED:
            raise StoreFailed(
                "another session, such as pg_dump, has locked the table cloudid.format, so the store "
                "cannot be upgraded: wait until that session has ended, then start again"
            ) from None
        raise


def _check_server(connection: Connection, mode: Mode) -> None:
    if connection.parameter("server_encoding") != "UTF8":
        raise StoreFailed("the database must have the encoding UTF8, in which keys sort by their code points")
    if mode is Mode.KEYS and connection.server_version < OLDEST_SERVER:
        raise StoreFailed("PostgreSQL 14 or newer is needed")


async def _exists(connection: Connection) -> bool:
    return (await connection.run(_EXISTS, SECONDS)).get_value(0, 0) != b"0"
