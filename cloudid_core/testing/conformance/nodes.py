"""Checks of two hosts that share one store: what one commits holds for the other.

A check runs on the first host, and what the second one has to do is run on that, in the same event loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Final, TypeVar

from ...effects import (
    ABSENT,
    Commit,
    Effect,
    Host,
    ListKeys,
    Program,
    RandomBytes,
    ReadEntries,
    ReadEntry,
    Sleep,
    together,
)
from ...run import run
from .check import Check, NotConforming, checks_with, expect, fresh_prefix
from .store import count_up, is_refused, value_at

T = TypeVar("T")
ROUNDS: Final = 30
STEPS: Final = 20


class OnHost(Effect[Any], frozen=True):
    """Run a program on another host than the one that is asked."""

    host: Host
    program: Program[Any]

    def perform_on(self, host: Host) -> Awaitable[Any]:
        return run(self.program, self.host)


async def on_host(host: Host, program: Program[T]) -> T:
    """The answer of a program that runs on this host."""
    try:
        answer: T = await OnHost(host, program)
    finally:
        program.close()
    return answer


async def commit_of(puts: Mapping[str, bytes]) -> int:
    return await Commit({}, puts)


async def keys_at(prefix: str) -> tuple[str, ...]:
    return await ListKeys(prefix)


async def written(other: Host, mine: Program[bool], theirs: Program[bool]) -> int:
    """How many of two commits at the same time are written, one on each host. Both programs say whether not."""
    return (await together(mine, on_host(other, theirs))).count(False)


async def what_one_host_commits_the_other_reads(other: Host) -> None:
    """At once, in both directions: new entries, new values, and that an entry is gone."""
    prefix = await fresh_prefix()
    a, b = prefix + "a", prefix + "b"
    await Commit({}, {a: b"1"})
    expect("the other host's value of a new entry", await on_host(other, value_at(a)), b"1")
    await on_host(other, commit_of({a: b"2", b: b"2"}))
    expect("a value that the other host has replaced", await value_at(a), b"2")
    expect("the keys after the other host's commit", await ListKeys(prefix), (a, b))
    await Commit({}, {}, (a,))
    expect("the other host's value of a deleted entry", await on_host(other, value_at(a)), None)
    expect("the other host's keys", await on_host(other, keys_at(prefix)), (b,))


async def what_was_read_before_is_read_again(other: Host) -> None:
    """In each of the three ways, after a commit of the other host and none of this one: nothing is cached or lags."""
    prefix = await fresh_prefix()
    key = prefix + "a"
    await Commit({}, {key: b"0"})
    for number in range(1, STEPS):
        await read_in_all_ways(prefix, key, b"%d" % (number - 1))
        await on_host(other, commit_of({key: b"%d" % number}))
        await read_in_all_ways(prefix, key, b"%d" % number)
    await on_host(other, deletion_of(key))
    await read_in_all_ways(prefix, key, None)


async def read_in_all_ways(prefix: str, key: str, value: bytes | None) -> None:
    expect("an entry of the other host, by ReadEntry", await value_at(key), value)
    entries = await ReadEntries((key,))
    expect("an entry of the other host, by ReadEntries", entries[key].value if key in entries else None, value)
    expect("the other host's keys, by ListKeys", await ListKeys(prefix), () if value is None else (key,))


async def deletion_of(key: str) -> int:
    return await Commit({}, {}, (key,))


async def random_bytes_of_two_hosts_differ(other: Host) -> None:
    """As they would not from the same seed: secrets of both would be the same."""

    async def draw() -> list[bytes]:
        return [await RandomBytes(16) for _ in range(STEPS)]

    mine, theirs = await draw(), await on_host(other, draw())
    expect("how many random texts two hosts have in common", len(set(mine) & set(theirs)), 0)


async def versions_grow_over_both_hosts(other: Host) -> None:
    """And what one host has seen, the other's commits can rest on."""
    prefix = await fresh_prefix()
    versions: list[int] = []
    for number in range(5):
        versions += [await Commit({}, {prefix + "a": b"%d" % number}), await on_host(other, commit_of({prefix: b""}))]
    expect("versions from two hosts", versions, sorted(set(versions)))
    entry = await ReadEntry(prefix)
    expect("the version of the other host's entry", entry and entry.version, versions[-1])
    stale = is_refused({prefix: versions[-3]}, {})
    expect("whether the other host refuses an old version", await on_host(other, stale), True)


async def of_two_commits_that_cross_one_is_written(other: Host) -> None:
    """Each rests on the version of what the other writes."""
    prefix = await fresh_prefix()
    for number in range(ROUNDS):
        x, y = f"{prefix}{number}/x", f"{prefix}{number}/y"
        version = await Commit({}, {x: b"", y: b""})
        done = await written(other, is_refused({x: version}, {y: b"1"}), is_refused({y: version}, {x: b"2"}))
        expect("how many of two commits that cross are written", done, 1)


async def of_two_crossing_absences_one_is_written(other: Host) -> None:
    """Each rests on the absence of what the other makes."""
    prefix = await fresh_prefix()
    for number in range(ROUNDS):
        x, y = f"{prefix}{number}/x", f"{prefix}{number}/y"
        done = await written(other, is_refused({x: ABSENT}, {y: b"1"}), is_refused({y: ABSENT}, {x: b"2"}))
        expect("how many of two crossing creations are written", done, 1)


async def an_entry_is_made_by_one_host(other: Host) -> None:
    prefix = await fresh_prefix()
    for number in range(ROUNDS):
        key = f"{prefix}{number}"
        done = await written(other, is_refused({key: ABSENT}, {key: b"1"}), is_refused({key: ABSENT}, {key: b"2"}))
        expect("how many creations of one entry are written", done, 1)


async def no_update_is_lost_between_hosts(other: Host) -> None:
    key = await fresh_prefix() + "count"

    async def count() -> None:
        for _ in range(STEPS):
            await count_up(key)

    await together(count(), on_host(other, count()))
    expect("an entry that two hosts counted up", await value_at(key), b"%d" % (2 * STEPS))


async def the_other_hosts_commits_are_seen_whole(other: Host) -> None:
    """Who sees one entry of a commit sees all of them, in whatever order."""
    prefix = await fresh_prefix()
    names = (prefix + "a", prefix + "b")
    done: list[bool] = []

    async def write() -> None:
        for number in range(STEPS):
            await Commit({}, dict.fromkeys(names, b"%d" % number))
        done.append(True)

    async def read() -> None:
        while not done:
            for first, then in (names, names[::-1]):
                before, after = await value_at(first), await value_at(then)
                if int(after or b"-1") < int(before or b"-1"):
                    raise NotConforming("a part of the other host's commit was seen before the rest")
            await Sleep(0)

    await together(read(), on_host(other, write()))


def shared_store_checks(other: Host) -> tuple[Check, ...]:
    """Checks for a host that shares its store with `other`, a second node in the same event loop."""
    return checks_with(
        other,
        what_one_host_commits_the_other_reads,
        what_was_read_before_is_read_again,
        random_bytes_of_two_hosts_differ,
        versions_grow_over_both_hosts,
        of_two_commits_that_cross_one_is_written,
        of_two_crossing_absences_one_is_written,
        an_entry_is_made_by_one_host,
        no_update_is_lost_between_hosts,
        the_other_hosts_commits_are_seen_whole,
    )
