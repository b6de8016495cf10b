"""Two nodes on one database: of commits that cross, at most one is written, and no update is lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from typing import Final

from cloudid_core.effects import ABSENT, Commit
from cloudid_core.errors import Conflict
from cloudid_servers.host.host import Host
from cloudid_servers.stores.postgres import Mode, PostgresStore

from .test_postgres import at, everywhere, on_both, side_by_side, with_store

ROUNDS: Final = 60
COUNTERS: Final = 4
STEPS: Final = 8


def with_two(
    database: str, mode: Mode, runtime: str, scenario: Callable[[Host, PostgresStore, PostgresStore], Awaitable[None]]
) -> None:
    async def opened(host: Host, store: PostgresStore) -> None:
        with closing(at(database, None)) as other:
            await other.open(host)
            await scenario(host, store, other)

    with_store(database, opened, mode, runtime)


async def is_written(store: PostgresStore, commit: Commit) -> bool:
    try:
        await store.commit(commit)
    except Conflict:
        return False
    return True


async def race(host: Host, first: tuple[PostgresStore, Commit], second: tuple[PostgresStore, Commit]) -> int:
    """How many of two commits at the same time are written."""
    return (await side_by_side(host, *(partial(is_written, *each) for each in (first, second)))).count(True)


@everywhere
@on_both
def test_of_two_commits_that_cross_one_is_written(database: str, mode: Mode, runtime: str) -> None:
    """Each expects what the other writes: versions, absences, and the same new key."""

    async def scenario(host: Host, a: PostgresStore, b: PostgresStore) -> None:
        for number in range(ROUNDS):
            x, y, new = f"{number}/x", f"{number}/y", f"{number}/new"
            absent, missing = f"{number}/absent", f"{number}/missing"
            version = await a.commit(Commit({}, {x: b"", y: b""}))
            skew = await race(
                host,
                (a, Commit({x: version}, {y: b"a"})),
                (b, Commit({y: version}, {x: b"b"})),
            )
            absence = await race(
                host,
                (a, Commit({absent: ABSENT}, {missing: b"a"})),
                (b, Commit({missing: ABSENT}, {absent: b"b"})),
            )
            creation = await race(
                host,
                (a, Commit({new: ABSENT}, {new: b"a"})),
                (b, Commit({new: ABSENT}, {new: b"b"})),
            )
            assert (skew, absence, creation) == (1, 1, 1)

    with_two(database, mode, runtime, scenario)


@everywhere
@on_both
def test_no_update_is_lost_between_nodes(database: str, mode: Mode, runtime: str) -> None:
    async def scenario(host: Host, a: PostgresStore, b: PostgresStore) -> None:
        async def count(store: PostgresStore) -> None:
            for _ in range(STEPS):
                while True:
                    entry = await store.read("count")
                    expected, number = (entry.version, int(entry.value)) if entry else (ABSENT, 0)
                    if await is_written(store, Commit({"count": expected}, {"count": b"%d" % (number + 1)})):
                        break

        await side_by_side(host, *(partial(count, store) for store in (a, b) for _ in range(COUNTERS)))
        entry = await a.read("count")
        assert entry is not None
        assert int(entry.value) == 2 * COUNTERS * STEPS

    with_two(database, mode, runtime, scenario)


@everywhere
def test_nodes_that_write_the_same_keys_in_any_order_do_not_block_each_other(database: str, mode: Mode) -> None:
    async def scenario(host: Host, a: PostgresStore, b: PostgresStore) -> None:
        keys = [f"{number}" for number in range(20)]

        async def write(store: PostgresStore, order: list[str]) -> None:
            for _ in range(20):
                await store.commit(Commit({}, dict.fromkeys(order, b"")))

        orders = ((a, keys), (b, keys[::-1]), (b, keys[10:] + keys[:10]))
        assert await side_by_side(host, *(partial(write, *order) for order in orders)) == [None] * 3

    with_two(database, mode, "trio", scenario)


@everywhere
def test_versions_grow_over_all_nodes(database: str, mode: Mode) -> None:
    async def scenario(host: Host, a: PostgresStore, b: PostgresStore) -> None:
        versions = [await store.commit(Commit({}, {"a": b""})) for _ in range(5) for store in (a, b)]
        assert versions == sorted(set(versions))

    with_two(database, mode, "trio", scenario)


def test_the_stress_notices_a_store_without_locks(database: str) -> None:
    """The same commits, with the locks taken out of the function: both of a pair are written at times."""
    unlocked = """
    DO $do$ DECLARE text text := pg_get_functiondef('cloudid.commit'::regproc); BEGIN
        EXECUTE replace(replace(replace(text, 'slot.number FOR UPDATE', 'slot.number'),
                                'slot.number FOR KEY SHARE', 'slot.number'),
                        'first := ', 'PERFORM pg_sleep(0.01); first := ');
    END $do$"""

    async def scenario(host: Host, a: PostgresStore, b: PostgresStore) -> None:
        session = await a._connector.session()
        await session.writer.run(unlocked, 5.0)
        both = 0
        for number in range(ROUNDS):
            x, y = f"{number}/x", f"{number}/y"
            version = await a.commit(Commit({}, {x: b"", y: b""}))
            both += (
                await race(
                    host,
                    (a, Commit({x: version}, {y: b"a"})),
                    (b, Commit({y: version}, {x: b"b"})),
                )
                == 2
            )
        assert both > 0

    with_two(database, Mode.KEYS, "trio", scenario)
