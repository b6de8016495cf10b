"""The `Store` on etcd: groups, coalesced reads, and what a lost answer means for a commit.

A group is one transaction: it is written if everything that its commits expect holds, and otherwise returns the
versions that it found. The commits that expect others fail, and the rest are sent again. A version is the key's
`mod_revision`.

Each store has a key of its own, the writer's. Every group expects the version that it had last, and puts it. When an
answer is lost, the store moves that key on: either the group had been written by then, as the key says, or it never
will be. Until that is settled nothing is read or written: nothing may depend on what may still change.

A store that is opened exclusively puts the lock, which lapses with its lease. Every group expects the lock as it was
when its store was opened, so no other process writes while the lock is held.
"""

from __future__ import annotations

import os
import time
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from attrs import define, frozen

from cloudid_core.effects import Commit, Entry
from cloudid_core.errors import OutcomeUnknown, StoreFailed
from cloudid_core.version import VERSION

from ...runtime import Runtime
from ..batched import LOSSES, BatchedStore, CommitTicket, KeyList, Limits, Mismatches, Read
from ..store import FORMAT, check
from .address import Address
from .client import Client, Lost, Refused

MOST_OPERATIONS: Final = 128
"""Of a transaction's comparisons, and of its changes: what a member takes unless `--max-txn-ops` says otherwise."""

OWN_OPERATIONS: Final = 2
"""Of those, for the writer's key and the lock."""

PATIENCE: Final = 5.0
"""Seconds that a commit waits for the end of a doubt."""

PAUSE: Final = 0.1
LOCK_SECONDS: Final = 10
CLOCK_SECONDS: Final = 30.0
FORGOTTEN_SECONDS: Final = 7 * 86400.0

_T = TypeVar("_T")
_Json: TypeAlias = Mapping[str, Any]
"""msgspec writes bytes in base64, as etcd reads them."""


@frozen
class _Reply:
    """What a transaction answered."""

    revision: int
    holds: bool
    rows: Sequence[Sequence[_Json]]
    """Of each range that it asked for."""

    def versions(self) -> list[int]:
        return [int(rows[0]["mod_revision"]) if rows else 0 for rows in self.rows]


@define(eq=False)
class _Doubt:
    """A group whose answer was lost, or, with number 0, a writer's key that is not where it was."""

    group: int
    held: int
    is_settled: bool = False
    version: int | None = None
    """Of the group, once settled; `None`: it was not written."""
    is_unknown: bool = False
    """The outcome is unknown, because the writer's key was removed."""


class EtcdStore(BatchedStore):
    """Entries below the prefix of `address`. `is_new`: `open` makes the store if there is none.

    `open` raises `StoreFailed` when there is no store, or one that is not ours; when another has it exclusively; or
    when the cluster is not the one in which the store was made, unless `accepts_restore`. While a store is open
    exclusively the commits of all others fail.
    """

    LIMITS = Limits(commits=MOST_OPERATIONS, keys=MOST_OPERATIONS - OWN_OPERATIONS, bytes=2**20)

    def __init__(
        self, address: Address, *, is_new: bool = False, is_exclusive: bool = False, accepts_restore: bool = False
    ) -> None:
        self._address = address
        self._client = Client(address)
        self._is_new = is_new
        self._is_exclusive = is_exclusive
        self._accepts_restore = accepts_restore
        self._entries = f"{address.prefix}/entry/".encode()
        self._format = f"{address.prefix}/format".encode()
        self._lock = f"{address.prefix}/lock".encode()
        self._writers = f"{address.prefix}/writer/".encode()
        self._writer = self._writers + os.urandom(12).hex().encode()
        self._locked = 0
        """The lock's version, if this store holds it."""
        self._held = 0
        """The writer's key's version, as far as it is known."""
        self._group = 0
        self._doubt: _Doubt | None = None
        self._cluster = ""
        self._revision = 0
        self._clock_due = 0.0

    async def open(self, runtime: Runtime) -> None:
        self._start(runtime)
        self._client.open(runtime)
        for step in (self._find, self._pass_lock, self._forget_writers, self._register):
            await _repeated(step)

    async def commit(self, commit: Commit) -> int:
        changes = len(commit.puts.keys() | set(commit.deletes))
        if max(len(commit.expects), changes) > MOST_OPERATIONS - OWN_OPERATIONS:
            raise StoreFailed(
                f"a commit expects {len(commit.expects)} entries and changes {changes}: etcd takes at most "
                f"{MOST_OPERATIONS - OWN_OPERATIONS}"
            )
        return await super().commit(commit)

    def close(self) -> None:
        """The runtime has closed the connections."""

    async def _ask(
        self, expects: Sequence[_Json] = (), then: Sequence[_Json] = (), otherwise: Sequence[_Json] = ()
    ) -> _Reply:
        """One transaction. Raises `Refused`, `Lost`, or `StoreFailed` where the cluster is not what it was.

        A cluster that is back from the past would undo what has been answered since.
        """
        seen = self._revision
        answer = await self._client.ask("kv/txn", {"compare": expects, "success": then, "failure": otherwise})
        header = answer["header"]
        revision = int(header["revision"])
        self._cluster = self._cluster or header["cluster_id"]
        if header["cluster_id"] != self._cluster:
            raise StoreFailed("a different etcd cluster answers than before")
        if revision < seen:
            raise StoreFailed(f"etcd is back at revision {revision}, after {seen}")
        self._revision = max(self._revision, revision)
        found = [one["response_range"] for one in answer.get("responses", ()) if "response_range" in one]
        return _Reply(revision, bool(answer.get("succeeded")), [one.get("kvs", ()) for one in found])

    # Opening

    async def _find(self) -> None:
        if self._is_new:
            await self._ask()  # says which cluster it is
            made = {"format": FORMAT, "release": VERSION, "cluster": self._cluster}
            await self._ask([_is_at(self._format, 0)], [_put(self._format, msgspec.json.encode(made))])
        [rows] = (await self._ask(then=[_get(self._format)])).rows
        if not rows:
            raise StoreFailed("etcd has no store at this prefix: run init first")
        try:
            known = msgspec.json.decode(b64decode(rows[0]["value"]), type=dict[str, Any])
            check("the store in etcd", known["format"], known["release"])
            cluster = known["cluster"]
        except (KeyError, ValueError, TypeError):
            raise StoreFailed("the data in etcd at this prefix is not a store of cloudid") from None
        if cluster != self._cluster:
            if not self._accepts_restore:
                raise StoreFailed(
                    "the store was created in a different etcd cluster: if this cluster was restored "
                    "from its snapshot and no server uses the other, run init --accept-restore"
                )
            moved = msgspec.json.encode({**known, "cluster": self._cluster})
            await self._ask(then=[_put(self._format, moved)])

    async def _pass_lock(self) -> None:
        """Take the lock if this store is exclusive, or wait until the lock of one that was killed has lapsed."""
        until = time.monotonic() + (0 if self._is_exclusive else LOCK_SECONDS + 2)
        mine: list[_Json] = []
        if self._is_exclusive:
            lease = (await self._client.ask("lease/grant", {"TTL": LOCK_SECONDS}))["ID"]
            mine = [_put(self._lock, b"", lease=lease)]
        while not (reply := await self._ask([_is_at(self._lock, 0)], mine)).holds:
            if time.monotonic() > until:
                raise StoreFailed(
                    f"another process copies this store, or was killed in the last {LOCK_SECONDS} seconds"
                )
            await self._runtime.wait(self._runtime.new_event(), 1.0)
        if self._is_exclusive:
            self._locked = reply.revision
            self._runtime.start(partial(self._keep_lock, lease))

    async def _keep_lock(self, lease: str) -> None:
        while True:
            await self._runtime.wait(self._runtime.new_event(), LOCK_SECONDS / 5)
            with suppress(Refused, Lost):
                await self._client.ask("lease/keepalive", {"ID": lease})

    async def _forget_writers(self) -> None:
        """Remove the keys of writers of long ago. One that lives after all makes itself a new one."""
        all_of_them = {"key": self._writers, "range_end": _behind(self._writers), "limit": MOST_OPERATIONS}
        oldest = time.time() - FORGOTTEN_SECONDS
        [rows] = (await self._ask(then=[{"request_range": all_of_them}])).rows
        old = [row["key"] for row in rows if float(b64decode(row["value"]).partition(b" ")[2] or 0) < oldest]
        await self._ask(then=[{"request_delete_range": {"key": key}} for key in old])

    async def _register(self) -> None:
        self._held = (await self._ask(then=[self._mark(b"-")])).revision

    def _mark(self, kind: bytes) -> _Json:
        return _put(self._writer, b"%s%d %d" % (kind, self._group, time.time()))

    # Reading

    async def _read_together(self, tickets: Sequence[Read]) -> None:
        wanted = [ticket.request for ticket in tickets]
        each = dict.fromkeys(one for some in wanted for one in (some if isinstance(some, tuple) else (some,)))
        ranges = [self._range(one) if isinstance(one, KeyList) else _get(self._name(one)) for one in each]
        rows: list[Sequence[_Json]] = []
        for start in range(0, len(ranges), MOST_OPERATIONS):  # each time all of the newest revision
            await self._settle()
            step = partial(self._ask, then=ranges[start : start + MOST_OPERATIONS])
            rows += (await _repeated(step)).rows
        found = dict(zip(each, rows, strict=True))
        for ticket, one in zip(tickets, wanted, strict=True):
            if isinstance(one, KeyList):
                ticket.settle(tuple(b64decode(row["key"])[len(self._entries) :].decode() for row in found[one]))
            else:
                ticket.settle({key: _entry(found[key][0]) for key in one if found[key]})

    def _range(self, wanted: KeyList) -> _Json:
        start = max(wanted.prefix.encode(), wanted.after.encode() + b"\0" if wanted.after else b"")
        end = _behind(self._entries + wanted.prefix.encode())
        # A start behind the end is no range to etcd; an empty one is.
        start = min(self._entries + start, end)
        return _get(start, range_end=end, limit=wanted.limit, keys_only=True)

    # Writing

    async def _send(self, tickets: Sequence[CommitTicket]) -> Sequence[int] | Mismatches | None:
        if time.monotonic() > self._clock_due:
            self._clock_due = time.monotonic() + CLOCK_SECONDS
            self._runtime.start(self._compare_clocks)
        commits = [ticket.request for ticket in tickets]
        await self._settle()
        self._group += 1
        expected = dict.fromkeys(pair for commit in commits for pair in commit.expects.items())
        keys = tuple(dict.fromkeys(key for key, _ in expected))
        own = ((self._writer, self._held), (self._lock, self._locked))
        puts = [_put(self._name(key), value) for one in commits for key, value in one.puts.items()]
        gone = {self._name(key) for one in commits for key in one.deletes if key not in one.puts}
        try:
            reply = await self._ask(
                [_is_at(key, version) for key, version in (*own, *((self._name(key), at) for key, at in expected))],
                [self._mark(b"+"), *puts, *({"request_delete_range": {"key": key}} for key in sorted(gone))],
                [_get(key, keys_only=True) for key in (self._writer, self._lock, *map(self._name, keys))],
            )
        except Refused:
            raise
        except Lost as loss:
            self._doubt = _Doubt(self._group, self._held)
            version = await self._outcome(self._doubt, loss)
            return None if version is None else [version] * len(tickets)
        except StoreFailed as failure:
            raise OutcomeUnknown(str(failure)) from None
        if reply.holds:
            self._held = reply.revision
            return [reply.revision] * len(tickets)
        held, locked, *versions = reply.versions()
        if held != self._held:
            self._doubt = _Doubt(0, self._held)
            return None
        if locked != self._locked:
            raise StoreFailed("another process copies this store" if locked else "the lock of this copy has lapsed")
        return dict(zip(keys, versions, strict=True))

    async def _outcome(self, doubt: _Doubt, loss: Lost) -> int | None:
        """The group's version, or `None` if it was not written. Raises `OutcomeUnknown` if that is not clear soon."""
        deadline = time.monotonic() + PATIENCE
        while not doubt.is_settled and time.monotonic() < deadline:
            try:
                await self._settle()
            except StoreFailed:
                await self._runtime.wait(self._runtime.new_event(), PAUSE)
        if not doubt.is_settled or doubt.is_unknown:
            raise OutcomeUnknown(f"etcd's response to a commit was lost: {loss}")
        return doubt.version

    async def _settle(self) -> None:
        """Move the writer's key on if there is a doubt. Raises `StoreFailed` where the cluster cannot be asked.

        Several may do so at once: all of them find the same.
        """
        doubt = self._doubt
        if doubt is None:
            return
        reply = await self._ask([_is_at(self._writer, doubt.held)], [self._mark(b"-")], [_get(self._writer)])
        if doubt.is_settled:
            return
        if reply.holds:
            self._held = reply.revision
        elif reply.rows[0]:
            [self._held] = reply.versions()
            if b64decode(reply.rows[0][0]["value"]).startswith(b"+%d " % doubt.group):
                doubt.version = self._held
        else:
            doubt.is_unknown = True
            await self._register()
        doubt.is_settled = True
        if self._doubt is doubt:
            self._doubt = None

    async def _compare_clocks(self) -> None:
        self.clock = await self._client.clock() or self.clock

    def _name(self, key: str) -> bytes:
        return self._entries + key.encode()


async def _repeated(step: Callable[[], Awaitable[_T]]) -> _T:
    """Again where an answer is lost: a member may have been killed, and another answers. To do it twice is no harm."""
    for _ in range(LOSSES - 1):
        with suppress(Lost):
            return await step()
    return await step()


def _entry(row: _Json) -> Entry:
    return Entry(b64decode(row.get("value", "")), int(row["mod_revision"]))


def _behind(prefix: bytes) -> bytes:
    """The first key that sorts behind all with the prefix. No byte of UTF-8 is the last one."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


def _is_at(key: bytes, version: int) -> _Json:
    return {"key": key, "target": "MOD", "result": "EQUAL", "mod_revision": str(version)}


def _get(key: bytes, **options: object) -> _Json:
    return {"request_range": {"key": key, **options}}


def _put(key: bytes, value: bytes, **options: object) -> _Json:
    return {"request_put": {"key": key, "value": value, **options}}
