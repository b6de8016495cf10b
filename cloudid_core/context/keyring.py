"""The key ring: created once, opened at every start, and encrypted with a root key that each master key can decrypt.

The root key is encrypted with every master key in use: during a rekey, both the old and the new master key open the
ring. Both parts are in one entry, so that one commit changes them together.
"""

from __future__ import annotations

from collections.abc import Container
from contextlib import suppress
from typing import Final

import msgspec
from attrs import evolve, frozen
from cattrs.preconf.msgspec import make_converter

from ..effects import Commit, Entry, Instant, Now, RandomBytes, ReadEntry, record_if_possible
from ..errors import Code, Conflict, OutcomeUnknown, Refused
from ..events import KeysChanged
from ..settings import Settings
from ..store import (
    KEY_SIZE,
    MASTER_TERM,
    NONCE_SIZE,
    RESERVE,
    DataKey,
    Keyring,
    SealBroken,
    TokenKeys,
    keys,
    master_cipher,
    open_with,
    retry_on_conflict,
    seal_with,
)
from ..values import Secret
from .context import Context

INSTALLATION_SIZE: Final = 8
KEYRING_BYTES: Final = 4 * KEY_SIZE + INSTALLATION_SIZE
"""How many random bytes a new ring needs."""
ROOT_KEY: Final = "root-key"
"""The name for which the root key is sealed."""
PUBLISHED_AHEAD: Final = 300.0
"""Seconds between the publication and the first use of new token keys. Nodes read the ring every minute."""
MOST_TOKEN_KEYS: Final = 255
"""Maximum number of token keys, because a batch token stores its term in one byte."""
MOST_DATA_KEYS: Final = 256
"""Maximum number of data keys, because the ring is one entry, which every node reads every minute."""
MOST_MASTER_KEYS: Final = 8
"""Maximum number of master keys that open the ring. Each unfinished rekey leaves one."""


class StoredKeyring(msgspec.Struct, frozen=True):
    """The entry of the ring: the ring encrypted with the root key, and the root key encrypted with each master key."""

    keyring: bytes
    root_keys: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"<StoredKeyring with {len(self.root_keys)} master keys>"


converter: Final = make_converter()
"""Convert the key ring to bytes and back. Unlike `encode`, it omits computed values."""
converter.register_unstructure_hook(Secret, Secret.reveal)
converter.register_structure_hook(Secret, lambda text, _: Secret(text))


@frozen
class Opened:
    """The ring as it was read.

    In an entry of an earlier version there is no root key, because the master key encrypted the ring.
    """

    keyring: Keyring
    version: int
    root_key: Secret | None
    root_keys: tuple[bytes, ...]


def make_keyring(now: Instant, random: bytes) -> Keyring:
    """Return a ring with new keys from `KEYRING_BYTES` random bytes."""
    return Keyring(
        installation=random[4 * KEY_SIZE :].hex(),
        data_keys=(DataKey(1, Secret(random[:KEY_SIZE].hex()), now),),
        token_keys=(_token_keys(1, random[KEY_SIZE : 4 * KEY_SIZE], now),),
    )


def _token_keys(term: int, random: bytes, serves_from: Instant) -> TokenKeys:
    hash_key, accessor_key, batch_key = (
        Secret(random[KEY_SIZE * number : KEY_SIZE * (number + 1)].hex()) for number in range(3)
    )
    return TokenKeys(
        term=term, hash_key=hash_key, accessor_key=accessor_key, batch_key=batch_key, serves_from=serves_from
    )


async def seal_keyring(settings: Settings, keyring: Keyring) -> bytes:
    """Encrypt a ring with a new root key, which only the current master key opens."""
    root_key = Secret((await RandomBytes(KEY_SIZE)).hex())
    return await _sealed(keyring, root_key, (await _sealed_root_key(root_key, settings.master_key),))


async def read_keyring(settings: Settings) -> Keyring:
    """Read the stored ring. It has no seals reserved for the caller.

    Refuse with `NOT_INITIALISED`, or with `SEALED` if the master key is wrong.
    """
    return (await _read(settings)).keyring


@retry_on_conflict
async def open_keyring(settings: Settings) -> Keyring:
    """Read the ring and reserve a block of seals for the caller. Start a new data key if it is time.

    Refuse like `read_keyring`.
    """
    opened = await _read(settings)
    return await _replace(settings, opened, opened.keyring.with_reserve(await Now(), await RandomBytes(KEY_SIZE)))


async def keep_reserve(context: Context) -> None:
    """Reserve more seals before those of this node are used up.

    The ring is read again, because other nodes also reserve seals and may have started a new key.
    """
    sealer = context.records.sealer
    if sealer.left <= RESERVE // 2:
        sealer.adopt(await open_keyring(context.settings))


async def begin_data_key(context: Context) -> None:
    """Start a new data key. Data that older keys encrypted can still be read.

    Refuse if there are too many: some must be retired first.
    """
    keyring = await _with_new_term(context.settings)
    context.records.sealer.adopt(keyring)
    await record_if_possible(KeysChanged(kind="data", term=keyring.current.term))


@retry_on_conflict
async def _with_new_term(settings: Settings) -> Keyring:
    opened = await _read(settings)
    if len(opened.keyring.data_keys) >= MOST_DATA_KEYS:
        raise Refused(Code.MALFORMED_REQUEST, f"at most {MOST_DATA_KEYS} data keys can be in use")
    return await _replace(settings, opened, opened.keyring.with_new_term(await Now(), await RandomBytes(KEY_SIZE)))


async def begin_token_keys(context: Context) -> TokenKeys:
    """Add new token keys, which take effect when every node knows them. Existing tokens stay valid."""
    keyring = await _with_token_keys(context.settings)
    context.records.sealer.learn(keyring)
    fresh = keyring.token_keys[-1]
    await record_if_possible(KeysChanged(kind="token", term=fresh.term))
    return fresh


@retry_on_conflict
async def _with_token_keys(settings: Settings) -> Keyring:
    opened = await _read(settings)
    older, now = opened.keyring.token_keys, await Now()
    if len(older) >= MOST_TOKEN_KEYS:
        raise Refused(Code.MALFORMED_REQUEST, f"at most {MOST_TOKEN_KEYS} token keys can be in use")
    fresh = _token_keys(_free_term(opened.keyring), await RandomBytes(3 * KEY_SIZE), now + PUBLISHED_AHEAD)
    return await _replace(settings, opened, evolve(opened.keyring, token_keys=(*older, fresh)))


def _free_term(keyring: Keyring) -> int:
    """Return the next free term for token keys. The terms of retired keys are reused."""
    newest, used = keyring.token_keys[-1].term, {keys.term for keys in keyring.token_keys}
    terms = (*range(newest + 1, MOST_TOKEN_KEYS + 1), *range(1, newest))
    free: int = next(term for term in terms if term not in used)
    return free


@retry_on_conflict
async def drop_keys(context: Context, data_terms: Container[int], token_terms: Container[int]) -> None:
    """Remove keys from the ring that nothing needs any more."""
    opened = await _read(context.settings)
    keyring = opened.keyring.without(data_terms, token_terms)
    if keyring.retired > opened.keyring.retired:
        context.records.sealer.learn(await _replace(context.settings, opened, keyring))


@retry_on_conflict
async def add_master_key(settings: Settings, new: Secret) -> None:
    """Let another master key open the ring as well. Do nothing if it already does.

    Refuse like `read_keyring`, and with `MALFORMED_REQUEST` if too many keys open it.
    """
    opened = await _read(settings)
    root_key = opened.root_key
    if root_key is None:
        await _commit(opened, await seal_keyring(settings, opened.keyring))
        raise Conflict("the ring has got a root key: it is read again")
    if _root_key_under(new, opened.root_keys) is not None:
        return
    if len(opened.root_keys) >= MOST_MASTER_KEYS:
        raise Refused(Code.MALFORMED_REQUEST, "too many master keys open the key ring: finish the last rekey first")
    root_keys = (*opened.root_keys, await _sealed_root_key(root_key, new))
    await _commit(opened, await _sealed(opened.keyring, root_key, root_keys))


@retry_on_conflict
async def drop_other_master_keys(settings: Settings) -> None:
    """Let only the current master key open the ring, with a new root key. Refuse like `read_keyring`."""
    opened = await _read(settings)
    await _commit(opened, await seal_keyring(settings, opened.keyring))
    await record_if_possible(KeysChanged(kind="master"))


async def _read(settings: Settings) -> Opened:
    return open_entry(settings, await ReadEntry(keys.RING))


def open_entry(settings: Settings, entry: Entry | None) -> Opened:
    """Decrypt the ring in its entry. Refuse like `read_keyring`."""
    if entry is None:
        raise Refused(Code.NOT_INITIALISED)
    try:
        stored = msgspec.json.decode(entry.value, type=StoredKeyring)
    except (msgspec.DecodeError, UnicodeDecodeError):
        stored = None
    if stored is None:
        return Opened(_opened(entry.value, settings.master_key), entry.version, None, ())
    root_key = _root_key_under(settings.master_key, stored.root_keys)
    if root_key is None:
        raise _wrong_master_key()
    return Opened(_opened(stored.keyring, root_key), entry.version, root_key, stored.root_keys)


def _opened(sealed: bytes, key: Secret) -> Keyring:
    try:
        plain = open_with(master_cipher(key), keys.RING, sealed)
    except SealBroken:
        raise _wrong_master_key() from None
    return _keyring_of(plain)


def _keyring_of(plain: bytes) -> Keyring:
    """Decode the ring. In earlier versions it had one term of token keys and no list."""
    members = msgspec.json.decode(plain)
    if "token_keys" not in members:
        hash_key, accessor_key, batch_key = (members.pop(name) for name in ("token_key", "accessor_key", "batch_key"))
        first = {"term": 1, "hash_key": hash_key, "accessor_key": accessor_key, "batch_key": batch_key}
        members["token_keys"] = [first]
    return converter.structure(members, Keyring)


def _root_key_under(master_key: Secret, root_keys: tuple[bytes, ...]) -> Secret | None:
    """Return the root key if this master key opens one of its encrypted copies."""
    cipher = master_cipher(master_key)
    for sealed in root_keys:
        with suppress(SealBroken):
            return Secret(open_with(cipher, ROOT_KEY, sealed).hex())
    return None


def _wrong_master_key() -> Refused:
    return Refused(Code.SEALED, "the master key does not open the key ring")


async def _sealed_root_key(root_key: Secret, master_key: Secret) -> bytes:
    nonce = await RandomBytes(NONCE_SIZE)
    return seal_with(master_cipher(master_key), MASTER_TERM, ROOT_KEY, bytes.fromhex(root_key.reveal()), nonce)


async def _sealed(keyring: Keyring, root_key: Secret, root_keys: tuple[bytes, ...]) -> bytes:
    nonce = await RandomBytes(NONCE_SIZE)
    sealed = seal_with(master_cipher(root_key), MASTER_TERM, keys.RING, converter.dumps(keyring), nonce)
    return msgspec.json.encode(StoredKeyring(sealed, root_keys))


async def _replace(settings: Settings, opened: Opened, keyring: Keyring) -> Keyring:
    """Replace the ring that was read. The same master keys open the new ring."""
    if opened.root_key is None:
        await _commit(opened, await seal_keyring(settings, keyring))
    else:
        await _commit(opened, await _sealed(keyring, opened.root_key, opened.root_keys))
    return keyring


async def _commit(opened: Opened, value: bytes) -> None:
    """Write the entry of the ring. Raise `Conflict` if it is uncertain whether it was written."""
    try:
        await Commit({keys.RING: opened.version}, {keys.RING: value})
    except OutcomeUnknown:
        entry = await ReadEntry(keys.RING)
        if entry is None or entry.value != value:
            raise Conflict("the key ring was not written") from None
