"""Records: typed values of the store's entries, encrypted when they are written and decrypted when they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, Generic, TypeVar

import msgspec
from attrs import evolve, fields

from ..caches import Weighed
from ..effects import (
    ABSENT,
    MOST_ENTRIES,
    Commit,
    Entry,
    ListKeys,
    Program,
    RandomBytes,
    ReadEntries,
    ReadEntry,
    give_way,
    record_if_possible,
)
from ..errors import Code, Conflict, EntryDamaged, OutcomeUnknown, Refused, StoreFailed, drop_tracebacks
from ..values import Secret
from .changes import Changes
from .conflicts import retry_on_conflict
from .sealing import NONCE_SIZE, Keyring, SealBroken, Sealer, term_of
from .upgrades import UNKNOWN_BOUNDS, has_renamed_fields, keeps_unknown_bounds, unknown_bounds, with_new_names

T = TypeVar("T")
U = TypeVar("U")
PAGE: Final = 1000
AT_ONCE: Final = 100
"""How many records are decoded before other programs get a turn."""


def _revealed(value: object) -> str:
    if isinstance(value, Secret):
        return value.reveal()
    raise TypeError(f"{type(value).__name__} has no place in a record")


def _hidden(form: type, text: str) -> Secret:
    if form is Secret:
        return Secret(text)
    raise TypeError(f"{form.__name__} has no place in a record")


_encode: Final = msgspec.json.Encoder(enc_hook=_revealed).encode


def encode(record: Any) -> bytes:
    """Encode the fields of a record. Cached computed values are omitted."""
    if isinstance(record, msgspec.Struct):
        return _encode(record)
    names = (field.name for field in fields(type(record)) if field.name != UNKNOWN_BOUNDS)
    return _encode({name: getattr(record, name) for name in names})


def decode(raw: bytes, form: type[T]) -> T:
    """Decode a record of this form from the bytes of `encode`. Raise `ValueError` if there is none."""
    record: T = _decoder(form)(raw)  # type: ignore[arg-type]  # every class is hashable
    return record


@cache
def _decoder(form: type) -> Callable[[bytes], Any]:
    decode = msgspec.json.Decoder[Any](form, dec_hook=_hidden).decode
    if keeps_unknown_bounds(form):
        return lambda raw: evolve(decode(raw), **{UNKNOWN_BOUNDS: unknown_bounds(raw, form)})
    return (lambda raw: decode(with_new_names(raw))) if has_renamed_fields(form) else decode


class Found(msgspec.Struct, Generic[T], frozen=True):
    """A record and its place in the store."""

    key: str
    record: T
    version: int
    size: int = 0
    """Size of its entry in bytes."""

    @property
    def expected(self) -> dict[str, int]:
        """Return what a commit must expect that depends on this record."""
        return {self.key: self.version}

    def with_record(self, record: U) -> Found[U]:
        """Return a value that is derived from this record, with the same place."""
        return Found(self.key, record, self.version, self.size)


def version_of(found: Found[Any] | None) -> int:
    """Return the version of a record, or of its absence."""
    return found.version if found else ABSENT


def expected(found: Found[Any] | None, key: str) -> dict[str, int]:
    """Return what a commit must expect that depends on this record, or on its absence."""
    return {key: version_of(found)}


class Records:
    """The store as programs see it: typed, encrypted, and decoded once for each version.

    `read_keyring` reads the ring of the store, for entries that another node has encrypted with a newer key.
    """

    def __init__(
        self, sealer: Sealer, cache: Weighed[str, Any], read_keyring: Callable[[], Program[Keyring]] | None = None
    ) -> None:
        self.sealer = sealer
        self._cache = cache
        self._read_keyring = read_keyring

    def find(self, key: str, form: type[T]) -> Program[Found[T] | None]:
        """Return the record at `key`, or `None`."""
        return self.find_known(self._cache, key, form)

    async def find_known(self, cache: Weighed[str, Any], key: str, form: type[T]) -> Found[T] | None:
        """Return a record like `find`, for records that have their own cache."""
        entry = await ReadEntry(key)
        if entry is None:
            cache.drop(key)
            return None
        known: Found[T] | None = cache.get(key)
        if known is not None and known.version == entry.version:
            return known
        if not self.sealer.knows(term_of(entry.value)):
            await self.learn_keys()
        found = Found(key, self._opened(key, entry, form), entry.version, len(entry.value))
        cache.put(key, found, found.size)
        return found

    def last_found(self, key: str, form: type[T]) -> Found[T] | None:
        """Return the record at `key` as `find` last returned it, if it is cached. It may be out of date."""
        found: Found[T] | None = self._cache.peek(key)
        return found

    async def find_fresh(self, key: str, form: type[T]) -> Found[T] | None:
        """Return a record like `find`, without caching it: for leases, intents, wrapped responses."""
        entry = await ReadEntry(key)
        if entry is None:
            return None
        if not self.sealer.knows(term_of(entry.value)):
            await self.learn_keys()
        return Found(key, self._opened(key, entry, form), entry.version)

    async def find_all_fresh(self, keys: Sequence[str], form: type[T]) -> tuple[list[Found[T]], list[EntryDamaged]]:
        """Return the existing records, in this order, and the damaged ones. None of them is cached."""
        found: list[Found[T]] = []
        damaged: list[EntryDamaged] = []
        for number, (key, entry) in enumerate((await _entries(keys)).items(), 1):
            if number % AT_ONCE == 0:
                await give_way()
            if not self.sealer.knows(term_of(entry.value)):
                await self.learn_keys()
            try:
                found.append(Found(key, self._opened(key, entry, form), entry.version))
            except EntryDamaged as damage:
                drop_tracebacks(damage)
                damaged.append(damage)
        return found, damaged

    async def find_undamaged(self, keys: Sequence[str], form: type[T]) -> list[Found[T]]:
        """Return records like `find_all_fresh`, without damaged ones."""
        found, _ = await self.find_all_fresh(keys, form)
        return found

    async def has(self, key: str) -> bool:
        """Return whether there is a record at `key`, damaged or not."""
        return await ReadEntry(key) is not None

    async def are_at(self, versions: Mapping[str, int]) -> bool:
        """Return whether all these entries still have their versions (`ABSENT`: still do not exist)."""
        keys = tuple(versions)
        return _are_at(await (ReadEntries(keys) if len(keys) <= MOST_ENTRIES else _entries(keys)), versions)

    async def find_for_writing(self, key: str, form: type[T]) -> tuple[Found[T] | None, dict[str, int]]:
        """Return the record at `key`, and what a commit that replaces it must expect.

        A damaged record counts as none.
        """
        try:
            found = await self.find_fresh(key, form)
        except EntryDamaged as damaged:
            return None, {key: damaged.version}
        return found, expected(found, key)

    async def names(self, prefix: str) -> list[str]:
        """Return the rest of all keys that start with `prefix`, in order."""
        found: list[str] = []
        after = ""
        while page := await ListKeys(prefix, after, PAGE):
            found.extend(key.removeprefix(prefix) for key in page)
            after = page[-1]
            if len(page) == PAGE:
                await give_way()
        return found

    async def commit(self, changes: Changes, nonces: bytes = b"") -> int:
        """Write all changes or none, and return the version of what was put.

        Raise `Conflict` if an expectation does not hold.

        Callers may pass `nonces` that they drew earlier, `NONCE_SIZE` bytes for each put. If the store does not know
        the outcome of a commit, it is read here. If that does not show it either, refuse with `COMMIT_UNRESOLVED`.
        """
        sealed: dict[str, bytes] = {}
        if changes.puts:
            sealed = self.seal(changes.puts, nonces or await RandomBytes(NONCE_SIZE * len(changes.puts)))
        try:
            version = await Commit(changes.expects, sealed, changes.deletes)
        except OutcomeUnknown:
            try:
                version = await self._resolve(changes.expects, sealed, changes.deletes)
            except StoreFailed:  # of a reading: callers take it for a commit that was certainly not written
                raise Refused(Code.COMMIT_UNRESOLVED) from None
        for event in changes.events:
            await record_if_possible(event)
        return version

    def seal(self, puts: Mapping[str, object], nonces: bytes) -> dict[str, bytes]:
        """Encrypt records for the store. Needs `NONCE_SIZE` random bytes for each."""
        sealed: dict[str, bytes] = {}
        at = 0
        for key, record in puts.items():
            sealed[key] = self.sealer.seal(key, encode(record), nonces[at : at + NONCE_SIZE])
            at += NONCE_SIZE
        return sealed

    @retry_on_conflict
    async def update(self, key: str, form: type[T], change: Callable[[T | None], T | None]) -> T | None:
        """Replace a record with the result of a pure function of it, in spite of concurrent changes.

        `None` stands for no record. A damaged record counts as none.
        """
        found, expects = await self.find_for_writing(key, form)
        changed = change(found.record if found else None)
        put = {key: changed} if changed is not None else {}
        await self.commit(Changes(expects, put, () if put else (key,)))
        return changed

    def with_added(self, added: Callable[[Changes], Program[Changes]]) -> Records:
        """Return records whose commits also make the changes that `added` returns."""
        return _WithAdded(self, added)

    async def learn_keys(self) -> None:
        """Read the ring of the store, and add the keys of other nodes."""
        if self._read_keyring is not None:
            self.sealer.learn(await self._read_keyring())

    def _opened(self, key: str, entry: Entry, form: type[T]) -> T:
        try:
            return decode(self.sealer.open(key, entry.value), form)
        except (SealBroken, ValueError):
            raise EntryDamaged(key, entry.version) from None

    async def _resolve(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        """Find out whether a commit was written.

        The nonce makes an encrypted value unique, so finding one proves it.
        """
        entries = await _entries((*puts, *deletes, *expects))
        for key, value in puts.items():
            entry = entries.get(key)
            if entry is not None and entry.value == value:
                return entry.version
        if deletes and not puts and not any(key in entries for key in deletes):
            return ABSENT
        if not _are_at(entries, expects):
            raise Refused(Code.COMMIT_UNRESOLVED)
        if not puts and not deletes:
            return ABSENT
        if expects:
            raise Conflict("a commit was not written")
        raise Refused(Code.COMMIT_UNRESOLVED)


class _WithAdded(Records):
    """Records whose commits make additional changes."""

    def __init__(self, records: Records, added: Callable[[Changes], Program[Changes]]) -> None:
        super().__init__(records.sealer, records._cache, records._read_keyring)
        self._added = added

    async def commit(self, changes: Changes, nonces: bytes = b"") -> int:
        added = await self._added(changes)
        return await super().commit(changes | added, b"" if added.puts else nonces)


async def _entries(keys: Sequence[str]) -> dict[str, Entry]:
    """Return the existing entries, in the order of their keys as given."""
    entries: dict[str, Entry] = {}
    for start in range(0, len(keys), MOST_ENTRIES):
        page = tuple(keys[start : start + MOST_ENTRIES])
        found = await ReadEntries(page)
        entries |= {key: found[key] for key in page if key in found}
    return entries


def _are_at(entries: Mapping[str, Entry], versions: Mapping[str, int]) -> bool:
    """Return whether the existing entries have these versions, and the others are `ABSENT`."""
    for key, version in versions.items():
        entry = entries.get(key)
        if (ABSENT if entry is None else entry.version) != version:
            return False
    return True
