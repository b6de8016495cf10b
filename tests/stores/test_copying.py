"""Copying a store into another: all of it arrives, or no server opens the copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from cloudid_core.effects import Commit, Entry
from cloudid_core.errors import StoreFailed
from cloudid_core.store import keys
from cloudid_servers.stores import Store
from cloudid_servers.stores.copying import PAGE, copy_store
from cloudid_servers.stores.group_commit import GroupCommit
from cloudid_servers.stores.memory import InMemory
from cloudid_servers.stores.sqlite import SqliteStore
from tests.hosts.opened import RUNTIMES, on

from .test_postgres import at

pytestmark = pytest.mark.one_server

ENTRIES: Final = {
    **{f"{number:04}": b"%d" % number for number in range(4 * PAGE)},
    **{f"z/{number}\U0001f511": bytes(range(256)) for number in range(2 * PAGE)},
    "empty": b"",
    keys.RING: b"ring",
}


async def filled(store: Store) -> None:
    await store.commit(Commit({}, ENTRIES))


async def contents(store: Store) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for key in await store.list("", "", 10_000):
        entry = await store.read(key)
        assert entry is not None
        found[key] = entry.value
    return found


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_store_goes_from_sqlite_to_postgres_and_back(database: str, tmp_path: Path, runtime: str) -> None:
    first, last = GroupCommit(SqliteStore(tmp_path / "first")), GroupCommit(SqliteStore(tmp_path / "last"))
    reports: list[str] = []
    with closing(first), closing(last), closing(at(database)) as between:
        on(runtime, lambda host: filled(first), first)
        for source, target in ((first, between), (between, last)):
            copied = on(runtime, lambda host: copy_store(host, source, target, reports.append), target)  # noqa: B023
            assert copied == len(ENTRIES)
        assert on(runtime, lambda host: contents(last), last) == ENTRIES
    assert f"copied: {PAGE} entries" in reports
    assert f"compared: {len(ENTRIES) - 1} entries" in reports


def copied(source: Store, target: Store) -> dict[str, bytes]:
    async def copy(host: object) -> None:
        await copy_store(host, source, target, lambda text: None)  # type: ignore[arg-type]

    on("trio", copy, target)
    return on("trio", lambda host: contents(target), target)


def test_nothing_is_copied_over_something() -> None:
    source, target = InMemory(), InMemory()
    on("trio", lambda host: filled(source), source)
    on("trio", lambda host: target.commit(Commit({}, {"a": b""})), target)
    with pytest.raises(StoreFailed, match="not empty"):
        copied(source, target)


def test_what_was_never_initialised_is_not_copied() -> None:
    with pytest.raises(StoreFailed, match="not initialised"):
        copied(InMemory(), InMemory())


class Busy(InMemory):
    """A store that a server still uses: an entry changes while it is copied."""

    reads = 0

    async def read_all(self, keys: Sequence[str]) -> Mapping[str, Entry]:
        self.reads += len(keys)
        if self.reads >= len(ENTRIES) - 1:
            await self.commit(Commit({}, {"0000": b"changed"}))
        return await super().read_all(keys)


class Leaky(InMemory):
    """A store that loses an entry on the way."""

    async def commit(self, commit: Commit) -> int:
        puts = {key: value for key, value in commit.puts.items() if key != "0300"}
        return await super().commit(Commit(commit.expects, puts, commit.deletes))


@pytest.mark.parametrize("source, target", [(Busy(), InMemory()), (InMemory(), Leaky())], ids=["busy", "leaky"])
def test_a_copy_that_is_not_the_same_is_no_store(source: Store, target: Store) -> None:
    on("trio", lambda host: filled(source), source)
    with pytest.raises(StoreFailed, match="the copy differs"):
        copied(source, target)
    assert on("trio", lambda host: target.read(keys.RING), target) is None
