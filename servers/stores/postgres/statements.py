"""Statements: what is asked of the database, and how keys, values and versions travel in PostgreSQL's binary format."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final

from cloudid_core.effects import Commit

from .connection import Statement
from .schema import TIMELINE_BIT, Mode

BOOL, BYTEA, INT8, INT4, TEXT, OID = 16, 17, 20, 23, 25, 26
BYTEAS, INT4S, TEXTS, INT8S = 1001, 1007, 1009, 1016
_INT8: Final = struct.Struct("!q")
FLOAT8: Final = struct.Struct("!d")
int4: Final = struct.Struct("!i").pack
int8: Final = _INT8.pack
boolean: Final = struct.Struct("!?").pack
_EMPTY_ARRAY: Final = struct.Struct("!iii")
_ARRAY: Final = struct.Struct("!iiiii")

USE: Final = 0x636C6964
"""The key of a lock that every session holds. It has two parts, unlike those of entries, so that none is the same."""

SHARE: Final = Statement("SELECT pg_catalog.pg_try_advisory_lock_shared($1, 0)", (INT4,))
OWN: Final = Statement("SELECT pg_catalog.pg_try_advisory_lock($1, 0)", (INT4,))
DISOWN: Final = Statement("SELECT pg_catalog.pg_advisory_unlock($1, 0)", (INT4,))
"""-> whether the lock was granted: to this session among others, or to this one alone. It ends with the connection.

Any role that may connect to the database can take it too: see `RIVALS`.
"""

RIVALS: Final = Statement(
    """SELECT count(*) FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
       WHERE l.locktype = 'advisory' AND l.classid = $1 AND l.objid = 0 AND l.objsubid = 2 AND l.granted
       AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
       AND l.pid <> pg_catalog.pg_backend_pid() AND (l.mode = 'ExclusiveLock' OR $2)
       AND pg_catalog.has_schema_privilege(a.usesysid, 'cloudid', 'USAGE')""",
    (OID, BOOL),
)
"""The same key, and whether shared locks count -> how many sessions hold it whose role may use the store.

A lock of any other role has no effect.
"""

PUBLIC_DATABASE: Final = Statement(
    """SELECT pg_catalog.quote_ident(pg_catalog.current_database())
       WHERE pg_catalog.has_database_privilege('public', pg_catalog.current_database(), 'CONNECT')"""
)
"""-> the name of the database, if every role of its server may connect to it."""

READ: Final = Statement("SELECT key, value, version FROM cloudid.entry WHERE key = ANY ($1)", (TEXTS,))
"""Keys -> rows of key, value, version."""

LIST: Final = Statement(
    "SELECT key FROM cloudid.entry WHERE key >= $1 AND key > $2 AND key < $3 ORDER BY key LIMIT $4",
    (TEXT, TEXT, TEXT, INT8),
)
"""Prefix, `after`, the first text behind the prefix, limit -> keys."""

LIST_TO_END: Final = Statement(
    "SELECT key FROM cloudid.entry WHERE key >= $1 AND key > $2 ORDER BY key LIMIT $3", (TEXT, TEXT, INT8)
)
"""The same where no text is behind the prefix."""

REGISTER: Final = Statement(
    """INSERT INTO cloudid.writer AS w (id, session, batch, base) VALUES ($1, $2, 0, 0)
       ON CONFLICT (id) DO UPDATE SET session = excluded.session, used_at = now() RETURNING w.batch, w.base""",
    (TEXT, TEXT),
)
"""Writer and session -> number and first version of the writer's last batch that was written.

Waits for a batch of an older session that is under way; one that comes later writes nothing.
"""

FORGET_WRITERS: Final = Statement("DELETE FROM cloudid.writer WHERE used_at < now() - interval '1 day'")
"""Rows of processes that ended. One that is still there registers again."""

TERMINATE: Final = Statement(
    """SELECT pg_catalog.pg_terminate_backend(pid, 5000) FROM pg_catalog.pg_stat_activity
       WHERE pid = $1 AND backend_start::text = $2""",
    (INT4, TEXT),
)
"""Process and start of a backend -> whether it has ended within 5 seconds; no row when it is not there."""

BACKEND_START: Final = Statement(
    "SELECT backend_start::text FROM pg_catalog.pg_stat_activity WHERE pid = pg_catalog.pg_backend_pid()"
)
TIMELINE: Final = Statement(
    """SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN NULL
       ELSE pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8) END"""
)
"""-> the timeline in hexadecimal digits; NULL on a standby."""

_PARAMETERS: Final = (TEXT, TEXT, INT8, INT8, TEXTS, INT8S, TEXTS, BYTEAS, INT4S, TEXTS)
COMMIT: Final = {
    Mode.KEYS: Statement("SELECT * FROM cloudid.commit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)", _PARAMETERS),
    Mode.PORTABLE: Statement(
        """WITH writer AS MATERIALIZED (SELECT id FROM cloudid.writer WHERE id = $1 AND session = $2),
            mismatch AS MATERIALIZED (
                SELECT e.key, coalesce(t.version, 0) AS found
                FROM unnest($5, $6) AS e (key, version) LEFT JOIN cloudid.entry t ON t.key = e.key
                WHERE coalesce(t.version, 0) <> e.version
            ),
            fresh AS MATERIALIZED (
                SELECT $4 + nextval('cloudid.version') AS first FROM writer WHERE NOT EXISTS (SELECT FROM mismatch)
            ),
            noted AS (
                UPDATE cloudid.writer w SET batch = $3, base = fresh.first, used_at = now() FROM fresh WHERE w.id = $1
            ),
            deleted AS (DELETE FROM cloudid.entry t USING fresh WHERE t.key = ANY ($10)),
            put AS (
                INSERT INTO cloudid.entry AS t (key, value, version)
                SELECT p.key, p.value, fresh.first + p.place
                FROM fresh, unnest($7, $8, $9) AS p (key, value, place)
                ON CONFLICT (key) DO UPDATE SET value = excluded.value, version = excluded.version
            )
            SELECT mismatch.key, mismatch.found, NULL::float8 FROM mismatch, writer
            UNION ALL SELECT NULL, first, extract(epoch FROM clock_timestamp())::float8 FROM fresh""",
        _PARAMETERS,
    ),
}
"""One batch of commits, or nothing of it.

Writer, session, number of the batch, timeline; keys and versions that are expected; keys, values and places that are
put, where a place is added to the batch's first version; keys that are deleted
-> one row (NULL, first version, the database's clock) when all was written; a row (key, version that it has, NULL) for
each mismatch; no row when the writer has a newer session.
"""


def settings_of(mode: Mode) -> str:
    """A query that sets up a session; settings that an engine does not know are left out.

    Plans never scan the whole table: under SERIALIZABLE that would collide with every other commit. So there is one
    plan for all parameters, and it is made once: to make one for each batch takes the database longer than the batch.
    """
    rows = ", ".join(f"('{name}', '{value}')" for name, value in {**_SETTINGS, **_ISOLATION[mode]}.items())
    return f"""SELECT set_config(w.name, w.value, false) FROM (VALUES {rows}) AS w (name, value)
        WHERE w.name IN (SELECT s.name FROM pg_catalog.pg_settings s);
        SELECT set_config('synchronous_commit', 'on', false)
        WHERE current_setting('synchronous_commit', true) IN ('off', 'local')"""


_SETTINGS: Final = {
    "search_path": "pg_catalog",
    "statement_timeout": "10s",
    "lock_timeout": "0",
    "idle_session_timeout": "0",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
}
_ISOLATION: Final = {
    Mode.KEYS: {"default_transaction_isolation": "read committed"},
    Mode.PORTABLE: {"default_transaction_isolation": "serializable"},
}


def number_of(data: bytes | None) -> int:
    """A bigint."""
    number: int = _INT8.unpack(data or b"")[0]
    return number


def texts(items: Iterable[bytes]) -> bytes:
    return _array(TEXT, list(items))


def _array(element: int, items: Sequence[bytes]) -> bytes:
    """An array of one dimension: dimensions, NULLs, type, size, first index; then each item with its length."""
    if not items:
        return _EMPTY_ARRAY.pack(0, 0, element)
    parts = [_ARRAY.pack(1, 0, element, len(items), 1)]
    for item in items:
        parts += (int4(len(item)), item)
    return b"".join(parts)


def batch(commits: Sequence[Commit], number: int, timeline: int) -> tuple[bytes, ...]:
    """The parameters of `COMMIT` from the number of the batch on."""
    expected = {pair for commit in commits for pair in commit.expects.items()}
    puts = [(key, value, place) for place, commit in enumerate(commits) for key, value in commit.puts.items()]
    deleted = {key for commit in commits for key in commit.deletes if key not in commit.puts}
    return (
        int8(number),
        int8(timeline << TIMELINE_BIT),
        texts(key.encode() for key, _ in expected),
        _array(INT8, [int8(version) for _, version in expected]),
        texts(key.encode() for key, _, _ in puts),
        _array(BYTEA, [value for _, value, _ in puts]),
        _array(INT4, [int4(place) for _, _, place in puts]),
        texts(key.encode() for key in deleted),
    )


def behind(prefix: str) -> str | None:
    """The first text that sorts behind all that start with the prefix; `None` when there is none."""
    shorter = prefix.rstrip("\U0010ffff")
    if not shorter:
        return None
    last = ord(shorter[-1])
    return shorter[:-1] + ("\ue000" if last == 0xD7FF else chr(last + 1))
