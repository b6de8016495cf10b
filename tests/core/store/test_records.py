"""Records: typed and sealed, decoded once, and sure of what was written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property

import msgspec
import pytest
from attrs import evolve, frozen

from cloudid_core.caches import Weighed
from cloudid_core.effects import ABSENT, MOST_ENTRIES, Commit, Entry, ListKeys, Program, ReadEntries, ReadEntry
from cloudid_core.errors import CloudidError, Code, Conflict, EntryDamaged, Refused
from cloudid_core.store.changes import Changes
from cloudid_core.store.records import PAGE, Found, Records, decode, encode, expected
from cloudid_core.store.sealing import DataKey, Keyring, Sealer, TokenKeys
from cloudid_core.testing import Crashed, Fault, FaultKind, World, every_fault
from cloudid_core.values.secret import Secret


@frozen
class Note:
    """A record."""

    text: str
    number: int = 0
    secret: Secret = Secret()


@frozen
class Remembering:
    """A record that computes something of its field."""

    text: str

    @cached_property
    def letters(self) -> tuple[str, ...]:
        return tuple(self.text)


RING = Keyring(
    installation="00" * 8,
    data_keys=(DataKey(1, Secret("11" * 32), 0.0),),
    token_keys=(TokenKeys(term=1, hash_key=Secret(), accessor_key=Secret(), batch_key=Secret()),),
)


def fresh_records() -> Records:
    return Records(Sealer(RING), Weighed(16, 2**16))


@pytest.fixture
def records() -> Records:
    return fresh_records()


@pytest.fixture
def world() -> World:
    return World()


def committing(world: World, kind: FaultKind) -> None:
    """Let the next commit with puts go wrong: the draw of nonces comes first."""
    world.inject(Fault(len(world.trace) + 1, kind))


class Meddled(World):
    """A world in which somebody else writes `a` before the first read."""

    async def read_entries(self, keys: tuple[str, ...]) -> Mapping[str, Entry]:
        if not any(isinstance(effect, ReadEntries) for _, effect in self.trace):
            self.store.commit({}, {"a": b"other"}, ())
        return await super().read_entries(keys)


def put(world: World, records: Records, key: str, note: Note) -> int:
    return world.perform(records.commit(Changes({}, {key: note})))


# Finding


def test_what_was_committed_is_found(world: World, records: Records) -> None:
    version = put(world, records, "a", Note("x", 7, Secret("s")))
    found = world.perform(records.find("a", Note))
    assert found == Found("a", Note("x", 7, Secret("s")), version, size=68)
    assert world.perform(records.find_fresh("a", Note)) == Found("a", Note("x", 7, Secret("s")), version)
    assert world.perform(fresh_records().find("a", Note)) == found


def test_what_is_not_there_is_none(world: World, records: Records) -> None:
    assert world.perform(records.find("a", Note)) is None
    assert world.perform(records.find_fresh("a", Note)) is None


def test_many_records_are_found_by_one_effect(world: World, records: Records) -> None:
    """In the order of their keys as given; the damaged ones are told apart, those that are not there are left out."""
    names = [f"{number}" for number in range(20)]
    for name in names[::-1]:
        put(world, records, name, Note(name))
    world.store.commit({}, {"7": b"damaged"}, ())
    before = len(world.trace)
    found, damaged = world.perform(records.find_all_fresh(["absent", *names], Note))
    assert [type(effect) for _, effect in world.trace[before:]] == [ReadEntries]
    assert [each.record.text for each in found] == [name for name in names if name != "7"]
    assert [each.key for each in damaged] == ["7"]
    assert world.perform(records.find_undamaged(names, Note)) == found


def test_more_records_than_one_effect_reads_are_found_too(world: World, records: Records) -> None:
    names = [f"{number}" for number in range(MOST_ENTRIES + 1)]
    world.perform(records.commit(Changes({}, {name: Note("x") for name in names})))
    found, _ = world.perform(records.find_all_fresh(names, Note))
    assert len(found) == len(names)
    assert [len(e.keys) for _, e in world.trace if isinstance(e, ReadEntries)] == [MOST_ENTRIES, 1]


def test_the_store_sees_no_content(world: World, records: Records) -> None:
    put(world, records, "a", Note("c4n4ry", secret=Secret("c4n4ry")))
    entry = world.store.read("a")
    assert entry is not None
    assert b"c4n4ry" not in entry.value
    assert "c4n4ry" not in "".join(world.transcript())


def test_a_record_is_decoded_once_for_each_version(world: World, records: Records) -> None:
    put(world, records, "a", Note("x"))
    first = world.perform(records.find("a", Note))
    assert world.perform(records.find("a", Note)) is first
    put(world, records, "a", Note("y"))
    second = world.perform(records.find("a", Note))
    assert second is not None
    assert second.record == Note("y")


def test_large_records_are_forgotten_before_there_are_many(world: World) -> None:
    """Their writers choose how large they are, and how many of them a node reads."""
    cache: Weighed[str, object] = Weighed(16, 5000)
    records = Records(Sealer(RING), cache)
    for key in "abcdef":
        put(world, records, key, Note("x" * 2000))
        world.perform(records.find(key, Note))
    assert list(cache) == ["e", "f"]
    put(world, records, "g", Note("x" * 10_000))
    world.perform(records.find("g", Note))
    assert list(cache) == ["g"]


def test_a_fresh_record_is_not_remembered(world: World) -> None:
    cache: Weighed[str, object] = Weighed(16, 2**16)
    records = Records(Sealer(RING), cache)
    put(world, records, "a", Note("x"))
    world.perform(records.find_fresh("a", Note))
    assert len(cache) == 0


def test_a_record_that_was_deleted_is_not_found_in_memory(world: World, records: Records) -> None:
    put(world, records, "a", Note("x"))
    world.perform(records.find("a", Note))
    world.perform(records.commit(Changes({}, deletes=("a",))))
    assert world.perform(records.find("a", Note)) is None


def test_a_value_that_was_moved_to_another_name_is_refused(world: World, records: Records) -> None:
    put(world, records, "a", Note("x"))
    moved = world.store.read("a")
    assert moved is not None
    world.store.commit({}, {"b": moved.value}, ())
    with pytest.raises(EntryDamaged):
        world.perform(records.find("b", Note))


def test_every_value_has_a_nonce_of_its_own(world: World, records: Records) -> None:
    """Within a commit and between commits, even of the same record."""
    for _ in range(5):
        world.perform(records.commit(Changes({}, {key: Note("x") for key in "abc"})))
    commits = [effect for _, effect in world.trace if isinstance(effect, Commit)]
    nonces = {value[4:16] for commit in commits for value in commit.puts.values()}
    assert len(nonces) == 15


def test_a_commit_that_only_deletes_needs_no_nonce(world: World, records: Records) -> None:
    world.perform(records.commit(Changes({}, deletes=("a",))))
    assert [type(effect) for _, effect in world.trace] == [Commit]


def test_all_names_are_listed_however_many(world: World, records: Records) -> None:
    names = [f"{number:05}" for number in range(PAGE + 5)]
    world.store.commit({}, dict.fromkeys((f"n/{name}" for name in names), b""), ())
    assert world.perform(records.names("n/")) == names
    assert world.perform(records.names("other/")) == []
    assert sum(isinstance(effect, ListKeys) for _, effect in world.trace) <= 5


def test_secrets_are_converted_to_text_and_back() -> None:
    note = Note("x", 1, Secret("s"))
    dumped = encode(note)
    assert msgspec.json.decode(dumped) == {"text": "x", "number": 1, "secret": "s"}
    assert decode(dumped, Note) == note


def test_what_a_record_has_computed_is_not_stored() -> None:
    """A record that was looked at took twice the room. Such records are still there."""
    record = Remembering("ab")
    assert record.letters == ("a", "b")
    assert encode(record) == b'{"text":"ab"}'
    assert decode(b'{"text":"ab","letters":["z"]}', Remembering).letters == ("a", "b")


def test_what_a_decision_rests_on_can_be_expected(world: World, records: Records) -> None:
    version = put(world, records, "a", Note("x"))
    found = world.perform(records.find("a", Note))
    assert found is not None
    assert found.expected == expected(found, "a") == {"a": version}
    assert expected(None, "b") == {"b": ABSENT}


# Commits whose outcome is unknown


def test_a_commit_that_was_written_after_all_answers_its_version(world: World, records: Records) -> None:
    committing(world, FaultKind.LOST_ANSWER)
    version = world.perform(records.commit(Changes({"a": ABSENT}, {"a": Note("x"), "b": Note("y")})))
    entry = world.store.read("a")
    assert entry is not None
    assert entry.version == version == 1


def test_one_that_is_found_by_any_of_its_values_was_written(records: Records) -> None:
    """Somebody else has replaced the first one since."""
    world = Meddled()
    committing(world, FaultKind.LOST_ANSWER)
    assert world.perform(records.commit(Changes({}, {"a": Note("x"), "b": Note("y")}))) == 1


def test_a_commit_that_was_not_written_is_a_conflict(world: World, records: Records) -> None:
    """Whoever wanted it reads again and tries again."""
    version = put(world, records, "guard", Note("x"))
    committing(world, FaultKind.UNKNOWN_NOT_WRITTEN)
    with pytest.raises(Conflict):
        world.perform(records.commit(Changes({"guard": version, "a": ABSENT}, {"a": Note("x")})))
    assert world.store.read("a") is None


def test_a_commit_without_trace_whose_grounds_have_changed_stays_unresolved(records: Records) -> None:
    """It may have been written and replaced since."""
    world = Meddled()
    committing(world, FaultKind.UNKNOWN_NOT_WRITTEN)
    assert_unresolved(lambda: world.perform(records.commit(Changes({"a": ABSENT}, {"a": Note("x")}))))


def test_a_commit_that_rested_on_nothing_and_left_no_trace_stays_unresolved(world: World, records: Records) -> None:
    committing(world, FaultKind.UNKNOWN_NOT_WRITTEN)
    assert_unresolved(lambda: world.perform(records.commit(Changes({}, {"a": Note("x")}))))


@pytest.mark.parametrize("kind", [FaultKind.LOST_ANSWER, FaultKind.UNKNOWN_NOT_WRITTEN])
def test_a_commit_whose_outcome_cannot_be_read_either_stays_unresolved(
    world: World, records: Records, kind: FaultKind
) -> None:
    """`StoreFailed` would say that it was certainly not written."""
    committing(world, kind)
    world.inject(Fault(len(world.trace) + 2, FaultKind.FAIL))
    assert_unresolved(lambda: world.perform(records.commit(Changes({"a": ABSENT}, {"a": Note("x")}))))


@pytest.mark.parametrize("kind", [FaultKind.LOST_ANSWER, FaultKind.UNKNOWN_NOT_WRITTEN])
@pytest.mark.parametrize("guarded_by", ["itself", "another", "nothing"])
def test_a_delete_is_done_when_nothing_is_there(
    world: World, records: Records, kind: FaultKind, guarded_by: str
) -> None:
    """And a conflict, or unresolved, when the entry is still there."""
    version = world.perform(records.commit(Changes({}, {"a": Note("x"), "guard": Note("y")})))
    expects = {"itself": {"a": version}, "another": {"guard": version}, "nothing": {}}[guarded_by]
    world.inject(Fault(len(world.trace), kind))
    delete = records.commit(Changes(expects, deletes=("a",)))
    if kind is FaultKind.LOST_ANSWER:
        world.perform(delete)
        assert world.store.read("a") is None
    elif expects:
        with pytest.raises(Conflict):
            world.perform(delete)
        assert world.store.read("a") is not None
    else:
        assert_unresolved(lambda: world.perform(delete))


@pytest.mark.parametrize("kind", [FaultKind.LOST_ANSWER, FaultKind.UNKNOWN_NOT_WRITTEN])
def test_a_commit_that_only_expects_holds_as_long_as_that_is_true(
    world: World, records: Records, kind: FaultKind
) -> None:
    version = put(world, records, "a", Note("x"))
    world.inject(Fault(len(world.trace), kind))
    world.perform(records.commit(Changes({"a": version})))
    world.inject(Fault(len(world.trace), FaultKind.UNKNOWN_NOT_WRITTEN))
    assert_unresolved(lambda: world.perform(records.commit(Changes({"a": version + 1}))))


def assert_unresolved(ask: Callable[[], object]) -> None:
    with pytest.raises(Refused) as refusal:
        ask()
    assert refusal.value.code is Code.COMMIT_UNRESOLVED


# Updating


def count_up(note: Note | None) -> Note:
    return evolve(note, number=note.number + 1) if note else Note("count", 1)


def counted(world: World) -> int:
    found = world.perform(fresh_records().find("count", Note))
    return found.record.number if found else 0


def test_an_update_makes_changes_and_deletes(world: World, records: Records) -> None:
    assert world.perform(records.update("count", Note, count_up)) == Note("count", 1)
    assert world.perform(records.update("count", Note, count_up)) == Note("count", 2)
    assert world.perform(records.update("count", Note, lambda note: None)) is None
    assert world.store.read("count") is None
    assert world.perform(records.update("count", Note, lambda note: None)) is None


async def count_carelessly() -> None:
    """Read, change and write without expecting anything."""
    entry = await ReadEntry("count")
    await Commit({}, {"count": b"%d" % (int(entry.value if entry else 0) + 1)})


def test_without_expectations_updates_are_lost() -> None:
    """The world finds it, so the next test means something."""

    def total(seed: int) -> int:
        world = World(seed)
        for _ in range(3):
            world.spawn(count_carelessly())
        world.settle()
        entry = world.store.read("count")
        return int(entry.value) if entry else 0

    totals = [total(seed) for seed in range(50)]
    assert {1, 2} <= set(totals) <= {1, 2, 3}


def test_no_update_is_lost_however_many_try_at_once() -> None:
    for seed in range(100):
        world = World(seed)
        shared = fresh_records()
        programs: list[Program[Note | None]] = [
            records.update("count", Note, count_up) for records in (shared, shared, fresh_records())
        ]
        tasks = [world.spawn(program) for program in programs]
        world.settle()
        numbers = sorted(note.number for task in tasks if (note := task.result()))
        assert (numbers, counted(world)) == ([1, 2, 3], 3)


def test_an_update_counts_at_most_once_whatever_goes_wrong() -> None:
    """And exactly once where it answers."""

    def make() -> World:
        world = World()
        world.perform(fresh_records().update("count", Note, count_up))
        return world

    def update(world: World) -> Note | None:
        return world.perform(fresh_records().update("count", Note, count_up))

    outcomes: set[tuple[bool, int]] = set()
    for world in every_fault(update, make, depth=2):
        answer = None
        with suppress(Crashed, CloudidError):
            answer = update(world)
        outcomes.add((answer is not None, counted(world)))
    assert outcomes == {(True, 2), (False, 1), (False, 2)}
