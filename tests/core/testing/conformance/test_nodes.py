"""The checks of two hosts on one store: two that share it pass, and each notices a pair that does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import pytest

from cloudid_core.effects import ABSENT, Entry, Host
from cloudid_core.errors import Conflict
from cloudid_core.store.memory import MemoryStore
from cloudid_core.testing import NotConforming, World, shared_store_checks
from cloudid_core.testing.conformance.check import Check
from tests.hosts.test_wrong_hosts import NOTICED as NOTICED_ELSEWHERE


class Second(World):
    """A second node in the world of the first: its own way to the store, the other's turns and time."""

    def __init__(self, first: World) -> None:
        super().__init__(store=first.store)
        self.first = first

    async def read_entry(self, key: str) -> Entry | None:
        return await self.first.read_entry(key)

    async def read_entries(self, keys: tuple[str, ...]) -> Mapping[str, Entry]:
        return await self.first.read_entries(keys)

    async def list_keys(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        return await self.first.list_keys(prefix, after, limit)

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        return await self.first.commit(expects, puts, deletes)

    async def random_bytes(self, count: int) -> bytes:
        return await self.first.random_bytes(count)

    async def sleep(self, seconds: float) -> None:
        await self.first.sleep(seconds)


Make: TypeAlias = Callable[[World], Host]


def check_named(name: str, other: Host) -> Check:
    (check,) = (check for check in shared_store_checks(other) if check.name == name)
    return check


def held_to(name: str, make: Make) -> None:
    for seed in range(10):
        first = World(seed)
        first.perform(check_named(name, make(first))())


NAMES = [check.name for check in shared_store_checks(World())]


@pytest.mark.parametrize("name", NAMES)
def test_two_hosts_on_one_store_pass(name: str) -> None:
    held_to(name, Second)


class OwnStore(Second):
    """Has a store for itself."""

    def __init__(self, first: World) -> None:
        super().__init__(first)
        self.own = MemoryStore()

    async def read_entry(self, key: str) -> Entry | None:
        return self.own.read(key)

    async def read_entries(self, keys: tuple[str, ...]) -> Mapping[str, Entry]:
        return self.own.read_all(keys)

    async def list_keys(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        return self.own.list(prefix, after, limit)

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        return self.own.commit(expects, puts, deletes)


class Remembering(Second):
    """Reads an entry once, and never again."""

    def __init__(self, first: World) -> None:
        super().__init__(first)
        self.known: dict[str, Entry | None] = {}

    async def read_entry(self, key: str) -> Entry | None:
        if key not in self.known:
            self.known[key] = await super().read_entry(key)
        return self.known[key]


class OwnVersions(Second):
    """Counts versions for itself."""

    count = 0

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        await super().commit(expects, puts, deletes)
        self.count += 1
        return self.count


class Unlocked(Second):
    """Compares first and writes then, with time for others in between."""

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        await super().commit(expects, {}, ())
        return await super().commit({}, puts, deletes)


class LocksWhatItWrites(Second):
    """Compares what it does not write too early."""

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        await super().commit(expects, {}, ())
        return await super().commit({key: expects[key] for key in expects if key in puts}, puts, deletes)


class LocksWhatIsThere(Second):
    """Compares absences too early: there is no row to lock."""

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        await super().commit(expects, {}, ())
        return await super().commit({key: expects[key] for key in expects if expects[key] != ABSENT}, puts, deletes)


class Torn(Second):
    """Shows a commit one entry after the other."""

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        version = await super().commit(expects, {}, deletes)
        for key, value in puts.items():
            version = await super().commit({}, {key: value}, ())
        return version


NOTICED = [
    (OwnStore, "what_one_host_commits_the_other_reads"),
    (Remembering, "what_one_host_commits_the_other_reads"),
    (OwnVersions, "versions_grow_over_both_hosts"),
    (Unlocked, "of_two_commits_that_cross_one_is_written"),
    (LocksWhatItWrites, "of_two_commits_that_cross_one_is_written"),
    (LocksWhatItWrites, "of_two_crossing_absences_one_is_written"),
    (LocksWhatIsThere, "of_two_crossing_absences_one_is_written"),
    (LocksWhatIsThere, "an_entry_is_made_by_one_host"),
    (Unlocked, "no_update_is_lost_between_hosts"),
    (Torn, "the_other_hosts_commits_are_seen_whole"),
]


@pytest.mark.parametrize("wrong, name", NOTICED, ids=lambda value: getattr(value, "__name__", value))
def test_a_wrong_pair_is_noticed(wrong: Make, name: str) -> None:
    with pytest.raises((NotConforming, Conflict)):
        held_to(name, wrong)


def test_every_check_notices_something() -> None:
    assert {name for _, name in NOTICED} | (NOTICED_ELSEWHERE & set(NAMES)) == set(NAMES)


def test_what_runs_on_the_other_host_is_closed_when_the_first_is_killed() -> None:
    """As all programs are."""
    first = World()
    task = first.spawn(check_named("no_update_is_lost_between_hosts", Second(first))())
    first.crash()
    assert task.is_done
