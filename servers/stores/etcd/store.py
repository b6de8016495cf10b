"""The `Store` on etcd: groups, coalesced reads, and what a lost answer means for a commit.

A group is one transaction: it is written if everything that its commits expect holds, and otherwise tells the versions
that it found; those commits fail, and the others are sent again. A version is the key's `mod_revision`.

Each store has a key of its own, the writer's. Every group expects the version that it had last, and puts it. When an
answer is lost, the store moves that key on: either the group had been written by then, as the key says, or it never
will be. Until that is settled nothing is read or written: nobody must rest on what may still change.
"""

from __future__ import annotations

import os
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from attrs import define

from cloudid_core.effects import ClockReading, Commit, Entry
from cloudid_core.errors import OutcomeUnknown, StoreFailed
from cloudid_core.version import VERSION

from ...runtime import Runtime
from ..batches import Batches
from ..format import FORMAT, check
from ..groups import CommitTicket, Limits, Mismatches, fail, independent, without_conflicts
from ..reads import Answer, KeyList, Question, Read
from .address import Address
from .client import Client, Lost, Refused

MOST_OPERATIONS: Final = 128
"""Of a transaction's comparisons, and of its changes: what a member takes unless `--max-txn-ops` says otherwise."""

LIMITS: Final = Limits(commits=MOST_OPERATIONS, keys=MOST_OPERATIONS - 1, bytes=2**20)
LOSSES: Final = 3
PATIENCE: Final = 5.0
"""Seconds that a commit waits for the end of a doubt."""

PAUSE: Final = 0.1
CLOCK_SECONDS: Final = 30.0
FORGOTTEN_SECONDS: Final = 7 * 86400.0
MOST_READS: Final = 512


_Json: TypeAlias = Mapping[str, Any]


@define(eq=False)
class _Doubt:
    """A group whose answer was lost, or, with number 0, a writer's key that is not where it was."""

    group: int
    held: int
    is_settled: bool = False
    version: int | None = None
    """Of the group, once settled; `None`: it was not written."""
    is_unknown: bool = False
    """Nobody can tell any more: the writer's key was removed."""


class EtcdStore:
    """Entries below the prefix of `address`. `is_new`: `open` makes the store if there is none.

    `open` raises `StoreFailed` when there is no store, or one that is not ours, or when the cluster is not the one in
    which the store was made, unless `accepts_restore`.
    """

    _runtime: Runtime
    _reads: Batches[Question, Answer]
    _commits: Batches[Commit, int]

    def __init__(self, address: Address, *, is_new: bool = False, accepts_restore: bool = False) -> None:
        self._address = address
        self._client = Client(address)
        self._is_new = is_new
        self._accepts_restore = accepts_restore
        self._entries = f"{address.prefix}/entry/".encode()
        self._format = f"{address.prefix}/format".encode()
        self._writers = f"{address.prefix}/writer/".encode()
        self._writer = self._writers + os.urandom(12).hex().encode()
        self._held = 0
        """The writer's key's version, as far as it is known."""
        self._group = 0
        self._doubt: _Doubt | None = None
        self._cluster = ""
        self._revision = 0
        self._clock_due = 0.0
        self.clock: ClockReading | None = None
        """The clocks of the members' machines, beside this one's; `None` before the first commit."""

    def __repr__(self) -> str:
        return f"<EtcdStore {self._address}>"

    async def open(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._reads = Batches(runtime, self._read_batch, StoreFailed)
        self._commits = Batches(runtime, self._write_batch, note=runtime.note_batch)
        self._client.open(runtime)
        try:
            await self._find()
            await self._forget_writers()
            await self._register()
        except (Refused, Lost) as failure:
            raise StoreFailed(f"etcd cannot be used: {failure}") from None

    async def read(self, key: str) -> Entry | None:
        return (await self.read_all((key,))).get(key)

    async def read_all(self, keys: Sequence[str]) -> Mapping[str, Entry]:
        wanted = tuple(key for key in keys if _can_be_stored(key))
        found = await self._reads.ask(wanted) if wanted else {}
        assert isinstance(found, Mapping)
        return found

    async def list(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        if limit < 1:
            return ()
        if not _can_be_stored(prefix + after):
            raise StoreFailed("etcd cannot compare such a key")
        found = await self._reads.ask(KeyList(prefix, after, limit))
        assert isinstance(found, tuple)
        return found

    async def commit(self, commit: Commit) -> int:
        if not _can_be_stored("".join((*commit.expects, *commit.puts, *commit.deletes))):
            raise StoreFailed("etcd cannot hold such a key")
        changes = len(commit.puts.keys() | set(commit.deletes))
        if max(len(commit.expects), changes) >= MOST_OPERATIONS:
            raise StoreFailed(
                f"a commit expects {len(commit.expects)} entries and changes {changes}: etcd takes less than "
                f"{MOST_OPERATIONS}"
            )
        return await self._commits.ask(commit)

    def close(self) -> None:
        """The runtime has closed the connections."""

    # Opening

    async def _find(self) -> None:
        if self._is_new:
            own = {"format": FORMAT, "release": VERSION}
            header = (await self._client.ask("kv/range", {"key": _b64(self._format)}))["header"]
            made = _put(self._format, msgspec.json.encode({**own, "cluster": header["cluster_id"]}))
            await self._client.ask("kv/txn", {"compare": [_is_at(self._format, 0)], "success": [made]})
        answer = await self._client.ask("kv/range", {"key": _b64(self._format)})
        if "kvs" not in answer:
            raise StoreFailed("etcd holds no store below this prefix: run init first")
        try:
            known = msgspec.json.decode(b64decode(answer["kvs"][0]["value"]), type=dict[str, Any])
            check("the store in etcd", known["format"], known["release"])
            cluster = known["cluster"]
        except (KeyError, ValueError, TypeError):
            raise StoreFailed("what etcd holds below this prefix is not a store of this service") from None
        self._cluster = answer["header"]["cluster_id"]
        if cluster != self._cluster:
            if not self._accepts_restore:
                raise StoreFailed(
                    "the store was made in another etcd cluster: if this one was restored from its snapshot and "
                    "nothing uses the other, run init --accept-restore"
                )
            moved = msgspec.json.encode({**known, "cluster": self._cluster})
            await self._client.ask("kv/txn", {"success": [_put(self._format, moved)]})

    async def _forget_writers(self) -> None:
        """Remove the keys of writers of long ago. One that lives after all makes itself a new one."""
        question = {"key": _b64(self._writers), "range_end": _b64(_behind(self._writers)), "limit": MOST_OPERATIONS}
        for found in (await self._client.ask("kv/range", question)).get("kvs", ()):
            used = float(b64decode(found["value"]).partition(b" ")[2] or 0)
            if used < time.time() - FORGOTTEN_SECONDS:
                await self._client.ask("kv/deleterange", {"key": found["key"]})

    async def _register(self) -> None:
        answer = await self._client.ask("kv/txn", {"success": [_put(self._writer, self._mark(b"-"))]})
        self._held = self._checked(answer, 0)

    def _mark(self, kind: bytes) -> bytes:
        return b"%s%d %d" % (kind, self._group, time.time())

    # Reading

    async def _read_batch(self, batch: Sequence[Read]) -> Sequence[Read]:
        now, later = batch[:MOST_READS], batch[MOST_READS:]
        try:
            await self._read_together(now)
        except (StoreFailed, Refused, Lost) as failure:
            for ticket in now:
                if not ticket.is_settled:
                    ticket.settle(StoreFailed(f"the store could not be read: {failure}"))
        return later

    async def _read_together(self, tickets: Sequence[Read]) -> None:
        wanted = [ticket.request for ticket in tickets]
        keys = tuple(dict.fromkeys(key for one in wanted if isinstance(one, tuple) for key in one))
        lists = tuple(dict.fromkeys(one for one in wanted if isinstance(one, KeyList)))
        ranges = [*({"key": self._name(key)} for key in keys), *map(self._range, lists)]
        found: list[Sequence[_Json]] = []
        for start in range(0, len(ranges), MOST_OPERATIONS):
            found += await self._read_ranges(ranges[start : start + MOST_OPERATIONS])
        entries = {
            key: Entry(b64decode(rows[0].get("value", "")), int(rows[0]["mod_revision"]))
            for key, rows in zip(keys, found, strict=False)
            if rows
        }
        listed = {
            one: tuple(b64decode(row["key"])[len(self._entries) :].decode() for row in rows)
            for one, rows in zip(lists, found[len(keys) :], strict=True)
        }
        for ticket in tickets:
            one = ticket.request
            ticket.settle(
                listed[one] if isinstance(one, KeyList) else {key: entries[key] for key in one if key in entries}
            )

    async def _read_ranges(self, ranges: Sequence[_Json]) -> Sequence[Sequence[_Json]]:
        """The rows of each range, all of the newest revision. Again where an answer is lost: reads change nothing."""
        await self._settle()
        losses = 0
        while True:
            seen = self._revision
            try:
                answer = await self._client.ask("kv/txn", {"success": [{"request_range": one} for one in ranges]})
            except Lost:
                losses += 1
                if losses == LOSSES:
                    raise
                continue
            self._checked(answer, seen)
            return [one["response_range"].get("kvs", ()) for one in answer["responses"]]

    def _range(self, wanted: KeyList) -> _Json:
        start = max(wanted.prefix.encode(), wanted.after.encode() + b"\0" if wanted.after else b"")
        end = _behind(self._entries + wanted.prefix.encode())
        # A start behind the end is no range to etcd; an empty one is.
        start = min(self._entries + start, end)
        return {"key": _b64(start), "range_end": _b64(end), "limit": wanted.limit, "keys_only": True}

    # Writing

    async def _write_batch(self, batch: Sequence[CommitTicket]) -> Sequence[CommitTicket]:
        now, later = independent(batch, LIMITS)
        try:
            await self._write_together(now)
        except (StoreFailed, OutcomeUnknown) as failure:
            fail([ticket for ticket in now if not ticket.is_settled], failure)
        return later

    async def _write_together(self, tickets: Sequence[CommitTicket]) -> None:
        losses = 0
        while tickets:
            answer = await self._send([ticket.request for ticket in tickets])
            if isinstance(answer, int):
                for ticket in tickets:
                    ticket.settle(answer)
                break
            if answer is None:
                losses += 1
                if losses == LOSSES:
                    raise StoreFailed("answers of etcd were lost again and again")
            else:
                tickets = without_conflicts(tickets, answer)
        if time.monotonic() > self._clock_due:
            self._clock_due = time.monotonic() + CLOCK_SECONDS
            self._runtime.start(self._compare_clocks)

    async def _send(self, commits: Sequence[Commit]) -> int | Mismatches | None:
        """The version, or what does not hold; `None` when nothing was written and it can be sent again.

        Raises `StoreFailed` (not written) or `OutcomeUnknown`.
        """
        await self._settle()
        self._group += 1
        seen = self._revision
        try:
            answer = await self._client.ask("kv/txn", self._transaction(commits))
        except Refused as refusal:
            raise StoreFailed(f"etcd refused a commit: {refusal}") from None
        except Lost as loss:
            doubt = self._doubt = _Doubt(self._group, self._held)
            return await self._outcome(doubt, loss)
        try:
            revision = self._checked(answer, seen)
        except StoreFailed as failure:
            raise OutcomeUnknown(str(failure)) from None
        if answer.get("succeeded"):
            self._held = revision
            return revision
        versions = [
            int(rows[0]["mod_revision"]) if (rows := one["response_range"].get("kvs")) else 0
            for one in answer["responses"]
        ]
        if versions[0] != self._held:
            self._doubt = _Doubt(0, self._held)
            return None
        keys = dict.fromkeys(key for commit in commits for key in commit.expects)
        return dict(zip(keys, versions[1:], strict=True))

    def _transaction(self, commits: Sequence[Commit]) -> _Json:
        expected = dict.fromkeys(pair for commit in commits for pair in commit.expects.items())
        keys = dict.fromkeys(key for key, _ in expected)
        puts = [_put(self._entries + key.encode(), value) for one in commits for key, value in one.puts.items()]
        gone = {key for one in commits for key in one.deletes if key not in one.puts}
        looks = [self._writer, *(self._entries + key.encode() for key in keys)]
        return {
            "compare": [
                _is_at(self._writer, self._held),
                *(_is_at(self._entries + key.encode(), version) for key, version in expected),
            ],
            "success": [
                _put(self._writer, self._mark(b"+")),
                *puts,
                *({"request_delete_range": {"key": self._name(key)}} for key in sorted(gone)),
            ],
            "failure": [{"request_range": {"key": _b64(key), "keys_only": True}} for key in looks],
        }

    async def _outcome(self, doubt: _Doubt, loss: Lost) -> int | None:
        """What became of the group whose answer was lost. Raises `OutcomeUnknown` if that is not clear soon."""
        deadline = time.monotonic() + PATIENCE
        while not doubt.is_settled and time.monotonic() < deadline:
            try:
                await self._settle()
            except StoreFailed:
                await self._runtime.wait(self._runtime.new_event(), PAUSE)
        if not doubt.is_settled or doubt.is_unknown:
            raise OutcomeUnknown(f"etcd's answer to a commit was lost: {loss}")
        return doubt.version

    async def _settle(self) -> None:
        """Move the writer's key on if there is a doubt. Raises `StoreFailed` where the cluster cannot be asked.

        Several may do so at once: all of them find the same.
        """
        doubt = self._doubt
        if doubt is None:
            return
        moved = {
            "compare": [_is_at(self._writer, doubt.held)],
            "success": [_put(self._writer, self._mark(b"-"))],
            "failure": [{"request_range": {"key": _b64(self._writer)}}],
        }
        seen = self._revision
        try:
            answer = await self._client.ask("kv/txn", moved)
            revision = self._checked(answer, seen)
            if doubt.is_settled:
                return
            rows = [] if answer.get("succeeded") else answer["responses"][0]["response_range"].get("kvs", [])
            if rows:
                self._held = int(rows[0]["mod_revision"])
                if b64decode(rows[0]["value"]).startswith(b"+%d " % doubt.group):
                    doubt.version = self._held
            elif answer.get("succeeded"):
                self._held = revision
            else:
                doubt.is_unknown = True
                await self._register()
        except (Refused, Lost) as failure:
            raise StoreFailed(f"what became of a commit is not known yet: {failure}") from None
        doubt.is_settled = True
        if self._doubt is doubt:
            self._doubt = None

    async def _compare_clocks(self) -> None:
        self.clock = await self._client.clock() or self.clock

    def _checked(self, answer: _Json, seen: int) -> int:
        """The revision of an answer. A cluster that is back from the past would undo what has been answered since."""
        header = answer["header"]
        revision = int(header["revision"])
        if header["cluster_id"] != self._cluster:
            raise StoreFailed("another etcd cluster answers than before")
        if revision < seen:
            raise StoreFailed(f"etcd is back at revision {revision}, after {seen}")
        self._revision = max(self._revision, revision)
        return revision

    def _name(self, key: str) -> str:
        return _b64(self._entries + key.encode())


def _can_be_stored(key: str) -> bool:
    try:
        key.encode()
    except UnicodeError:
        return False
    return True


def _behind(prefix: bytes) -> bytes:
    """The first key that sorts behind all with the prefix. No byte of UTF-8 is the last one."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


def _b64(data: bytes) -> str:
    return b64encode(data).decode()


def _is_at(key: bytes, version: int) -> _Json:
    return {"key": _b64(key), "target": "MOD", "result": "EQUAL", "mod_revision": str(version)}


def _put(key: bytes, value: bytes) -> _Json:
    return {"request_put": {"key": _b64(key), "value": _b64(value)}}
