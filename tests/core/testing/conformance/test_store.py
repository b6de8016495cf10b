"""The checks of the store: the reference store passes, and each notices a store that is wrong."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping

import pytest

from cloudid_core.effects import ABSENT, Entry
from cloudid_core.errors import Conflict, StoreFailed
from cloudid_core.store.memory import MemoryStore
from cloudid_core.testing import NotConforming, World
from cloudid_core.testing.conformance.check import Check
from cloudid_core.testing.conformance.store import STORE_CHECKS
from tests.hosts.test_wrong_hosts import NOTICED as NOTICED_ELSEWHERE

TORN = "a_commit_is_seen_whole"


@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.name)
def test_the_reference_store_passes(check: Check) -> None:
    store = MemoryStore()
    for seed in range(5):
        World(seed, store=store).perform(check())


class Forgetful(MemoryStore):
    """Writes nothing."""

    def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: Iterable[str]) -> int:
        return super().commit(expects, {}, ())


class Haunted(MemoryStore):
    """Knows entries that nobody put."""

    def read(self, key: str) -> Entry | None:
        return super().read(key) or Entry(b"", 1)


class Textual(MemoryStore):
    """Ends values at a zero byte."""

    def read(self, key: str) -> Entry | None:
        entry = super().read(key)
        return entry and Entry(entry.value.partition(b"\0")[0], entry.version)


class Trimming(MemoryStore):
    """Zeros at the end of a value are padding to it."""

    def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: Iterable[str]) -> int:
        return super().commit(expects, {key: value.rstrip(b"\0") for key, value in puts.items()}, deletes)


class Narrow(MemoryStore):
    """A column that has half a mebibyte."""

    def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: Iterable[str]) -> int:
        return super().commit(expects, {key: value[: 2**19] for key, value in puts.items()}, deletes)


class Idle(MemoryStore):
    """Nothing is written where nothing changes."""

    def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: Iterable[str]) -> int:
        version = super().commit(expects, {}, deletes)
        old = self.read_all(puts)
        changed = {key: value for key, value in puts.items() if key not in old or old[key].value != value}
        return super().commit({}, changed, ()) if changed else max((old[key].version for key in puts), default=version)


class AtMostHundred(MemoryStore):
    """Takes up to 100 keys at once, and leaves the others out."""

    def read_all(self, keys: Iterable[str]) -> dict[str, Entry]:
        return super().read_all(list(keys)[:100])


class FirstWins(MemoryStore):
    """Never replaces a value."""

    def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: Iterable[str]) -> int:
        new = {key: value for key, value in puts.items() if self.read(key) is None}
        return super().commit(expects, new, deletes)


class Folding(MemoryStore):
    """Keys have no case."""

    def read(self, key: str) -> Entry | None:
        return super().read(key.lower())

    def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: Iterable[str]) -> int:
        return super().commit(expects, {key.lower(): value for key, value in puts.items()}, deletes)


class Normalising(MemoryStore):
    """Keys are brought into a normal form."""

    def read(self, key: str) -> Entry | None:
        return super().read(unicodedata.normalize("NFC", key))

    def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: Iterable[str]) -> int:
        normal = {unicodedata.normalize("NFC", key): value for key, value in puts.items()}
        return super().commit(expects, normal, deletes)


class CountsPerKey(MemoryStore):
    """Versions start again with a new entry."""

    def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: Iterable[str]) -> int:
        self.revision = max((entry.version for key in puts if (entry := self.read(key))), default=0)
        return super().commit(expects, puts, deletes)


class Utf16(MemoryStore):
    """Sorts by the units of UTF-16."""

    def list(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        return tuple(sorted(super().list(prefix, after, limit), key=lambda key: key.encode("utf-16-be")))


class Alphabetical(MemoryStore):
    """Sorts without regard to case."""

    def list(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        return tuple(sorted(super().list(prefix, after, limit), key=str.lower))


class Wildcards(MemoryStore):
    """Takes a prefix for a pattern, in which an underscore stands for anything."""

    def list(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        start = prefix.partition("_")[0]
        found = (key for key in super().list(start, after, 1000) if len(key) >= len(prefix))
        return tuple(found)[:limit]


class EndsEarly(MemoryStore):
    """Ends a list at a high character, as if prefix + U+FFFF came after everything."""

    def list(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        return tuple(key for key in super().list(prefix, after, limit) if key < prefix + "\uffff")


class Inclusive(MemoryStore):
    """Lists the key after which it should start."""

    def list(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        at = (after,) if after.startswith(prefix) and self.read(after) else ()
        return (*at, *super().list(prefix, after, limit))[:limit]


class Unlimited(MemoryStore):
    """Takes no notice of the limit."""

    def list(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        return super().list(prefix, after, 1000)


class Keeping(MemoryStore):
    """Deletes nothing."""

    def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: Iterable[str]) -> int:
        return super().commit(expects, puts, ())


class Strict(MemoryStore):
    """Fails to delete what is not there."""

    def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: Iterable[str]) -> int:
        for key in deletes:
            if self.read(key) is None:
                raise Conflict(key)
        return super().commit(expects, puts, deletes)


class Unguarded(MemoryStore):
    """Expects nothing."""

    def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: Iterable[str]) -> int:
        return super().commit({}, puts, deletes)


class Halfway(MemoryStore):
    """Writes first and compares then."""

    def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: Iterable[str]) -> int:
        version = super().commit({}, {}, deletes)
        super().commit(expects, {}, ())
        return super().commit({}, puts, ()) and version + 2


class OnlyWhatItWrites(MemoryStore):
    """Expects only what it writes."""

    def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: Iterable[str]) -> int:
        return super().commit({key: expects[key] for key in expects if key in puts}, puts, deletes)


class NoAbsence(MemoryStore):
    """Takes an expected absence for no expectation."""

    def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: Iterable[str]) -> int:
        return super().commit({key: version for key, version in expects.items() if version != ABSENT}, puts, deletes)


class Touching(MemoryStore):
    """Gives what was expected a new version."""

    def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: Iterable[str]) -> int:
        kept = {key: entry.value for key in expects if (entry := self.read(key)) and key not in deletes}
        return super().commit(expects, {**kept, **puts}, deletes)


class Torn(World):
    """A host that shows the entries of a commit one by one."""

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        version = await super().commit(expects, {}, deletes)
        for key, value in puts.items():
            version = await super().commit({}, {key: value}, ())
        return version


class TornAtTheEnd(World):
    """A host that writes most of a commit, and the rest at the next turn, all at one version."""

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        rest = dict(list(puts.items())[:1])
        version = await super().commit(expects, {key: puts[key] for key in puts if key not in rest}, deletes)
        self.store.revision = version - 1
        return await super().commit({}, rest, ())


@pytest.mark.parametrize("wrong", [Torn, TornAtTheEnd])
def test_a_torn_commit_is_noticed(wrong: type[World]) -> None:
    (check,) = (check for check in STORE_CHECKS if check.name == TORN)
    for seed in range(5):
        with pytest.raises(NotConforming):
            wrong(seed).perform(check())


class JudgedTogether(World):
    """A host that judges what commits at once expect before it writes any of them."""

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        await super().commit(expects, {}, ())
        return await super().commit({}, puts, deletes)


class OneVersionForAll(World):
    """A host whose commits at once get the version of the last of them."""

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        await super().commit(expects, puts, deletes)
        await super().commit({}, {}, ())
        return self.store.revision


class Small(World):
    """A host that takes no more than a hundred commits at once."""

    coming = 0

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        self.coming += 1
        try:
            if self.coming > 100:
                raise StoreFailed("too many operations")
            await super().commit({}, {}, ())
            return await super().commit(expects, puts, deletes)
        finally:
            self.coming -= 1


class LandsLate(World):
    """A host that makes a commit whose caller has left after the commits that came later."""

    left: tuple[Mapping[str, bytes], ...] = ()

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        is_awaited = False
        try:
            await self.sleep(0.1)
            version = await super().commit(expects, puts, deletes)
            is_awaited = True
        finally:
            if not is_awaited:
                self.left += (puts,)
        for late in self.left:
            version = self.store.commit({}, late, ())
        self.left = ()
        return version


GROUPS = [
    (LandsLate, "a_commit_that_was_cut_off_never_follows_a_later_one"),
    (JudgedTogether, "of_commits_at_once_that_expect_and_put_one_key_one_is_written"),
    (JudgedTogether, "of_crossing_absences_at_once_one_is_written"),
    (OneVersionForAll, "one_key_is_put_twice_at_once"),
    (Small, "more_commits_come_at_once_than_one_group_holds"),
]


@pytest.mark.parametrize("wrong, name", GROUPS, ids=lambda value: getattr(value, "__name__", value))
def test_a_group_of_commits_that_are_not_independent_is_noticed(wrong: type[World], name: str) -> None:
    (check,) = (check for check in STORE_CHECKS if check.name == name)

    def hold() -> None:
        for seed in range(10):
            wrong(seed).perform(check())

    with pytest.raises((NotConforming, StoreFailed)):
        hold()


NOTICED = [
    (Haunted, "an_entry_that_was_never_put_is_absent"),
    (Forgetful, "what_was_put_is_read"),
    (Textual, "what_was_put_is_read"),
    (Trimming, "what_was_put_is_read"),
    (Narrow, "what_was_put_is_read"),
    (AtMostHundred, "many_entries_are_read_at_once"),
    (FirstWins, "a_put_replaces_the_value"),
    (Idle, "a_put_replaces_the_value"),
    (Folding, "names_are_exact"),
    (Normalising, "names_are_exact"),
    (CountsPerKey, "versions_grow_over_the_whole_store"),
    (Utf16, "keys_are_listed_in_order_of_code_points"),
    (Alphabetical, "keys_are_listed_in_order_of_code_points"),
    (Wildcards, "a_prefix_is_literal"),
    (EndsEarly, "a_prefix_is_literal"),
    (Inclusive, "lists_come_in_pages"),
    (Unlimited, "lists_come_in_pages"),
    (Keeping, "a_deleted_entry_is_gone"),
    (Strict, "a_deleted_entry_is_gone"),
    (Unguarded, "a_commit_is_all_or_nothing"),
    (Halfway, "a_commit_is_all_or_nothing"),
    (OnlyWhatItWrites, "a_commit_can_rest_on_what_it_does_not_write"),
    (NoAbsence, "a_commit_can_rest_on_absence"),
    (Touching, "a_commit_that_writes_nothing_still_expects"),
    (Unguarded, "no_update_is_lost"),
    (Unguarded, "commits_fail_one_by_one"),
]


def held_to(check: Check, store: type[MemoryStore]) -> None:
    for seed in range(10):
        World(seed, store=store()).perform(check())


@pytest.mark.parametrize("wrong, name", NOTICED, ids=lambda value: getattr(value, "__name__", value))
def test_a_wrong_store_is_noticed(wrong: type[MemoryStore], name: str) -> None:
    (check,) = (check for check in STORE_CHECKS if check.name == name)
    with pytest.raises((NotConforming, Conflict)):
        held_to(check, wrong)


def test_every_check_notices_something() -> None:
    names = {check.name for check in STORE_CHECKS}
    noticed = {TORN, *(name for _, name in GROUPS), *(name for _, name in NOTICED)}
    assert noticed | (NOTICED_ELSEWHERE & names) == names
