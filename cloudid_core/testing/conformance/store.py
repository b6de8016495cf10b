"""Checks of the store: an ordered map of versioned entries, and one atomic, optimistic write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from ...effects import (
    ABSENT,
    MOST_COMMITTED,
    MOST_ENTRIES,
    Commit,
    ListKeys,
    ReadEntries,
    ReadEntry,
    Sleep,
    gather,
    within,
)
from ...errors import Conflict, TimeIsUp
from .check import Check, NotConforming, checks_of, expect, fresh_prefix

PEOPLE: Final = 5
"""How many change one entry at the same time."""

STEPS: Final = 20
CROWD: Final = 300
"""Commits at once: more than a transaction of any known engine takes."""

CUTS: Final = 20
CUT_STEP: Final = 0.0005
"""Seconds: commits are cut off a little later each time."""

LARGEST_VALUE: Final = 2**20
"""Bytes: of a role or policy as long as a request may be."""


async def value_at(key: str) -> bytes | None:
    entry = await ReadEntry(key)
    return entry.value if entry else None


async def is_refused(expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...] = ()) -> bool:
    """Whether a commit fails with `Conflict`."""
    try:
        await Commit(expects, puts, deletes)
    except Conflict:
        return True
    return False


async def count_up(key: str) -> None:
    """Add one to the number at a key, however many others do so."""
    while True:
        entry = await ReadEntry(key)
        expects, number = ({key: entry.version}, int(entry.value)) if entry else ({key: ABSENT}, 0)
        if not await is_refused(expects, {key: b"%d" % (number + 1)}):
            return


async def an_entry_that_was_never_put_is_absent() -> None:
    prefix = await fresh_prefix()
    expect("an entry that was never put", await ReadEntry(prefix + "a"), None)
    expect("the keys where nothing was put", await ListKeys(prefix), ())


async def what_was_put_is_read() -> None:
    """Any bytes, under any text, at the version that the commit answered."""
    prefix = await fresh_prefix()
    values = {
        prefix + "empty": b"",
        prefix + "every byte": bytes(range(256)),
        prefix + "large": b"\x00large\x00" * (LARGEST_VALUE // 7),
        prefix + "long" * 60: b"long key",
        prefix + "ключ/\U0001f511 'quoted\"": b"text of all kinds",
    }
    version = await Commit({}, values)
    for key, value in values.items():
        entry = await ReadEntry(key)
        expect("an entry that was put", entry and (entry.value, entry.version), (value, version))


async def many_entries_are_read_at_once() -> None:
    """As many as may be asked for. Those that are not there are left out."""
    prefix = await fresh_prefix()
    values = {f"{prefix}{number}": b"%d" % number for number in range(MOST_ENTRIES - 3)}
    odd = prefix + "ключ/\U0001f511 '%_?\""
    versions = dict[str, int]()
    for start in range(0, len(values), MOST_COMMITTED):
        page = tuple(values)[start : start + MOST_COMMITTED]
        versions |= dict.fromkeys(page, await Commit({}, {key: values[key] for key in page}))
    versions[odd] = await Commit({}, {odd: b""})
    first = prefix + "0"
    version = versions[first]
    changed = await Commit({first: version}, {first: b"changed"})
    await Commit({}, {}, (prefix + "1",))
    found = await ReadEntries((*values, odd, odd, prefix + "absent"))
    wanted = {key: (value, versions[key]) for key, value in values.items() if key != prefix + "1"}
    wanted |= {first: (b"changed", changed), odd: (b"", versions[odd])}
    expect("many entries", {key: (entry.value, entry.version) for key, entry in found.items()}, wanted)
    expect("no entries", dict(await ReadEntries(())), {})


async def a_put_replaces_the_value() -> None:
    key = await fresh_prefix() + "a"
    first = await Commit({}, {key: b"old"})
    second = await Commit({key: first}, {key: b"new"})
    entry = await ReadEntry(key)
    expect("an entry that was put twice", entry and (entry.value, entry.version), (b"new", second))
    again = await Commit({key: second}, {key: b"new"})
    expect("whether the version has grown", first < second < again, True)


async def names_are_exact() -> None:
    """Neither case nor space nor normal form unites two names."""
    prefix = await fresh_prefix()
    names = ("a", "A", "a ", " a", "\u00e9", "e\u0301", "a/", "a/b", "%", "_")
    await Commit({}, {prefix + name: name.encode() for name in names})
    for name in names:
        expect(f"the value of {name!r}", await value_at(prefix + name), name.encode())


async def versions_grow_over_the_whole_store() -> None:
    """An entry that was deleted and made again never looks unchanged."""
    prefix = await fresh_prefix()
    first = await Commit({}, {prefix + "a": b"1"})
    other = await Commit({}, {prefix + "b": b"1"})
    await Commit({}, {}, (prefix + "a",))
    again = await Commit({}, {prefix + "a": b"1"})
    expect("whether versions grow from commit to commit", ABSENT < first < other < again, True)
    expect("whether the version of a deleted entry is refused", await is_refused({prefix + "a": first}, {}), True)


async def no_version_comes_twice() -> None:
    """Not even when the newest entry of the store is deleted and made again, or commits follow each other at once."""
    key = await fresh_prefix() + "a"
    versions: list[int] = []
    for number in range(STEPS):
        versions.append(await Commit({}, {key: b"%d" % number}))
        await Commit({}, {}, (key,))
    expect("versions of an entry that was deleted and made again", versions, sorted(set(versions)))


async def a_commit_moves_an_entry_at_once() -> None:
    """A concurrent read finds it at one of its two places, never at both."""
    prefix = await fresh_prefix()
    places = (prefix + "a", prefix + "b")
    await Commit({}, {places[0]: b""})
    done: list[bool] = []

    async def move() -> None:
        for number in range(STEPS):
            here, there = places[number % 2], places[1 - number % 2]
            await Commit({}, {there: b""}, (here,))
        done.append(True)

    async def look() -> None:
        while not done:
            expect("how often an entry is listed that is moved", len(await ListKeys(prefix)), 1)
            await Sleep(0)

    await gather([move(), look()])


async def a_commit_that_was_cut_off_is_whole_or_nothing() -> None:
    prefix = await fresh_prefix()
    for number in range(CUTS):
        old, *new = (f"{prefix}{number}/{name}" for name in ("old", "a", "b"))
        await Commit({}, {old: b""})
        with suppress(TimeIsUp):
            await within(number * CUT_STEP, move_late(old, new))
        await Commit({}, {f"{prefix}after": b""})  # which comes after it, if it comes
        found = await ListKeys(f"{prefix}{number}/")
        if found not in ((old,), tuple(new)):
            raise NotConforming(f"{len(found)} entries of a commit that was cut off: a part of it was written")


async def move_late(old: str, new: Sequence[str]) -> None:
    await Commit({}, dict.fromkeys(new, b""), (old,))
    await Sleep(CUTS * CUT_STEP)


async def keys_are_listed_in_order_of_code_points() -> None:
    """Not by a language's alphabet, and not by UTF-16 units."""
    prefix = await fresh_prefix()
    names = ("-", "0", "00", "A", "Z", "_", "a", "a/b", "ab", "z", "\u00e9", "\uffee", "\U0001f511")
    await Commit({}, {prefix + name: b"" for name in reversed(names)})
    expect("the order of keys", await ListKeys(prefix), tuple(prefix + name for name in names))


async def a_prefix_is_literal() -> None:
    """No character of it is a wildcard, and it is as exact as a name."""
    prefix = await fresh_prefix()
    await Commit({}, {prefix + name: b"" for name in ("a%b", "a_b", "a*b", "a[b]", "axb", "Axb", "a\U0010ffff")})
    for start, found in {"a%": ("a%b",), "a_": ("a_b",), "a*": ("a*b",), "a[b]": ("a[b]",), "A": ("Axb",)}.items():
        keys = tuple(prefix + name for name in found)
        expect(f"the keys that start with {start!r}", await ListKeys(prefix + start), keys)
    expect("how many keys start with 'a'", len(await ListKeys(prefix + "a")), 6)


async def lists_come_in_pages() -> None:
    """`after` need not exist, and may lie before the prefix or behind it."""
    prefix = await fresh_prefix()
    keys = tuple(f"{prefix}k/{number}" for number in range(5))
    await Commit({}, dict.fromkeys((*keys, prefix + "j", prefix + "l"), b""))
    everything = prefix + "k/"
    expect("the first page", await ListKeys(everything, "", 2), keys[:2])
    expect("the second page", await ListKeys(everything, keys[1], 2), keys[2:4])
    expect("the last page", await ListKeys(everything, keys[3], 2), keys[4:])
    expect("the page after the last", await ListKeys(everything, keys[4], 2), ())
    expect("a page after a key that is not there", await ListKeys(everything, keys[1] + "x", 2), keys[2:4])
    expect("a page after a key before the prefix", await ListKeys(everything, prefix + "j", 9), keys)
    expect("a page after a key behind the prefix", await ListKeys(everything, prefix + "l", 9), ())


async def a_deleted_entry_is_gone() -> None:
    prefix = await fresh_prefix()
    await Commit({}, {prefix + "a": b"1", prefix + "b": b"1"})
    await Commit({}, {prefix + "c": b"1"}, (prefix + "a", prefix + "never put"))
    expect("a deleted entry", await ReadEntry(prefix + "a"), None)
    expect("the keys that are left", await ListKeys(prefix), (prefix + "b", prefix + "c"))


async def a_commit_is_all_or_nothing() -> None:
    """One expectation that does not hold, wherever it stands, and nothing is written."""
    prefix = await fresh_prefix()
    a, b, c = prefix + "a", prefix + "b", prefix + "c"
    version = await Commit({}, {a: b"1", b: b"1"})
    for expects in ({a: version, b: version + 1}, {a: version + 1, b: version}, {a: ABSENT}, {c: version}):
        expect(f"whether {expects} is refused", await is_refused(expects, {a: b"2", c: b"2"}, (b,)), True)
    expect("a value after refused commits", await value_at(a), b"1")
    expect("the keys after refused commits", await ListKeys(prefix), (a, b))


async def a_commit_can_rest_on_what_it_does_not_write() -> None:
    prefix = await fresh_prefix()
    guard = await Commit({}, {prefix + "guard": b"1"})
    await Commit({prefix + "guard": guard}, {prefix + "a": b"1"})
    changed = await Commit({}, {prefix + "guard": b"2"})
    expect("whether a changed guard is noticed", await is_refused({prefix + "guard": guard}, {prefix + "a": b""}), True)
    entry = await ReadEntry(prefix + "guard")
    expect("the version of a guard", entry and entry.version, changed)


async def a_commit_can_rest_on_absence() -> None:
    key = await fresh_prefix() + "a"
    await Commit({key: ABSENT}, {key: b"1"})
    expect("whether a second creation is refused", await is_refused({key: ABSENT}, {key: b"2"}), True)
    await Commit({}, {}, (key,))
    await Commit({key: ABSENT}, {key: b"3"})
    expect("the entry that was made again", await value_at(key), b"3")


async def a_commit_that_writes_nothing_still_expects() -> None:
    key = await fresh_prefix() + "a"
    await Commit({}, {})
    await Commit({key: ABSENT}, {})
    version = await Commit({}, {key: b"1"})
    await Commit({key: version}, {})
    expect("whether what it expects is compared", await is_refused({key: ABSENT}, {}), True)
    entry = await ReadEntry(key)
    expect("the version of an untouched entry", entry and entry.version, version)


async def no_update_is_lost() -> None:
    """Many change one entry at the same time; who is refused tries again."""
    key = await fresh_prefix() + "count"
    await gather([count_up(key) for _ in range(PEOPLE)])
    expect("an entry that was counted up in parallel", await value_at(key), b"%d" % PEOPLE)


async def commits_fail_one_by_one() -> None:
    """Of commits at the same time, only those fail whose own expectations do not hold."""
    prefix = await fresh_prefix()
    taken = await Commit({}, {prefix + "taken": b""})

    async def put(number: int) -> bool:
        expects = {prefix + "taken": ABSENT if number % 2 else taken}
        return not await is_refused(expects, {f"{prefix}{number}": b""})

    written = await gather([put(number) for number in range(PEOPLE)])
    expect("which of several commits were written", written, [number % 2 == 0 for number in range(PEOPLE)])
    wanted = (*(f"{prefix}{number}" for number in range(0, PEOPLE, 2)), prefix + "taken")
    expect("what several commits wrote", await ListKeys(prefix), wanted)


async def a_commit_is_seen_whole() -> None:
    """Who sees one of its entries sees all of them, in whatever order: none appears before the others."""
    prefix = await fresh_prefix()
    names = tuple(f"{prefix}{name}" for name in "abc")
    done: list[bool] = []

    async def write() -> None:
        for number in range(STEPS):
            await Commit({}, dict.fromkeys(names, b"%d" % number))
            await Commit({}, {}, names)
        done.append(True)

    async def list_all() -> None:
        while not done:
            found = await ListKeys(prefix)
            if found not in ((), names):
                raise NotConforming(f"{len(found)} of {len(names)} entries of one commit were seen")
            await Sleep(0)

    async def read_all() -> None:
        while not done:
            for order in (names, names[::-1]):
                seen = [await ReadEntry(name) for name in order]
                versions = [entry.version for entry in seen if entry]
                expect("the order in which commits are seen", versions, sorted(versions))
            await Sleep(0)

    await gather([write(), list_all(), read_all()])


async def of_commits_at_once_that_expect_and_put_one_key_one_is_written() -> None:
    """They come in one turn, so that a store which writes several together has them in one group; as those below do."""
    key = await fresh_prefix() + "a"
    for version in (ABSENT, await Commit({}, {key + "b": b""})):
        name = key + "b" * bool(version)
        refused = await gather([is_refused({name: version}, {name: b"%d" % number}) for number in range(PEOPLE)])
        expect("how many commits that expect and put one key are written", refused.count(False), 1)
        expect("the value of that key", await value_at(name), b"%d" % refused.index(False))


async def of_crossing_absences_at_once_one_is_written() -> None:
    """Each rests on the absence of what the other makes."""
    x, y = [await fresh_prefix() + name for name in "xy"]
    refused = await gather([is_refused({x: ABSENT}, {y: b""}), is_refused({y: ABSENT}, {x: b""})])
    expect("how many of two crossing creations are written", refused.count(False), 1)


async def one_key_is_put_twice_at_once() -> None:
    """Both are written, one after the other: the later one's version and value stay."""
    key = await fresh_prefix() + "a"

    async def put(value: bytes) -> tuple[int, bytes]:
        return await Commit({}, {key: value}), value

    versions = await gather([put(b"1"), put(b"2")])
    entry = await ReadEntry(key)
    expect("how many versions two puts of one key have", len({version for version, _ in versions}), 2)
    expect("what is left of two puts of one key", entry and (entry.version, entry.value), max(versions))


async def more_commits_come_at_once_than_one_group_holds() -> None:
    prefix = await fresh_prefix()
    names = tuple(f"{prefix}{number:03}" for number in range(CROWD))
    refused = await gather([is_refused({name: ABSENT}, {name: b""}) for name in names])
    expect("how many commits of a crowd are refused", sum(refused), 0)
    expect("what a crowd has written", await ListKeys(prefix, "", CROWD), names)


async def a_commit_that_was_cut_off_never_follows_a_later_one() -> None:
    """It is written before that, or not at all, wherever it was cut off."""
    prefix = await fresh_prefix()
    keys = [f"{prefix}{number}" for number in range(CUTS)]
    for number, key in enumerate(keys):
        with suppress(TimeIsUp):
            await within(number * CUT_STEP, put_late(key))
        await Commit({}, {}, (key,))
    await Sleep(CUTS * CUT_STEP)
    expect("what a later commit deleted", dict(await ReadEntries(tuple(keys))), {})


async def put_late(key: str) -> None:
    await Commit({}, {key: b"late"})
    await Sleep(CUTS * CUT_STEP)


STORE_CHECKS: Final[tuple[Check, ...]] = (
    *checks_of(
        an_entry_that_was_never_put_is_absent,
        what_was_put_is_read,
        many_entries_are_read_at_once,
        a_put_replaces_the_value,
        names_are_exact,
        versions_grow_over_the_whole_store,
        no_version_comes_twice,
        keys_are_listed_in_order_of_code_points,
        a_prefix_is_literal,
        lists_come_in_pages,
        a_deleted_entry_is_gone,
        a_commit_is_all_or_nothing,
        a_commit_can_rest_on_what_it_does_not_write,
        a_commit_can_rest_on_absence,
        a_commit_that_writes_nothing_still_expects,
        waits=False,
    ),
    *checks_of(
        no_update_is_lost,
        commits_fail_one_by_one,
        a_commit_is_seen_whole,
        a_commit_moves_an_entry_at_once,
        a_commit_that_was_cut_off_is_whole_or_nothing,
        of_commits_at_once_that_expect_and_put_one_key_one_is_written,
        of_crossing_absences_at_once_one_is_written,
        one_key_is_put_twice_at_once,
        more_commits_come_at_once_than_one_group_holds,
        a_commit_that_was_cut_off_never_follows_a_later_one,
        waits=True,
    ),
)
