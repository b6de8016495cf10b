"""The key ring: made once, sealed under the master key, opened at every start."""

from __future__ import annotations

from typing import Final

from ..effects import Commit, Instant, Now, RandomBytes, ReadEntry
from ..errors import Code, Conflict, OutcomeUnknown, Refused
from ..foundation.context import Context
from ..settings import Settings
from ..values.secret import Secret
from . import keys
from .conflicts import retry_on_conflict
from .records import converter
from .sealing import (
    KEY_SIZE,
    MASTER_TERM,
    NONCE_SIZE,
    RESERVE,
    DataKey,
    Keyring,
    SealBroken,
    master_cipher,
    open_with,
    seal_with,
)

INSTALLATION_SIZE: Final = 8
KEYRING_BYTES: Final = 4 * KEY_SIZE + INSTALLATION_SIZE
"""How many random bytes a new ring is made of."""


def make_keyring(now: Instant, random: bytes) -> Keyring:
    """A ring of keys that nobody has seen, made of `RING_BYTES` random bytes."""
    data_key, token_key, accessor_key, batch_key = (
        Secret(random[KEY_SIZE * number : KEY_SIZE * (number + 1)].hex()) for number in range(4)
    )
    return Keyring(
        installation=random[4 * KEY_SIZE :].hex(),
        data_keys=(DataKey(1, data_key, now),),
        token_key=token_key,
        accessor_key=accessor_key,
        batch_key=batch_key,
    )


async def seal_keyring(settings: Settings, keyring: Keyring) -> bytes:
    """A ring as the store may see it."""
    nonce = await RandomBytes(NONCE_SIZE)
    return seal_with(master_cipher(settings.master_key), MASTER_TERM, keys.RING, converter.dumps(keyring), nonce)


@retry_on_conflict
async def open_keyring(settings: Settings) -> Keyring:
    """The key ring of an initialised store, with a block of seals reserved for the caller.

    A new data key is begun if it is time.

    Refuses with `NOT_INITIALISED`, or with `SEALED` when the master key is the wrong one.
    """
    keyring, version = await _read(settings)
    reserved = keyring.with_reserve(await Now(), await RandomBytes(KEY_SIZE))
    try:
        await Commit({keys.RING: version}, {keys.RING: await seal_keyring(settings, reserved)})
    except OutcomeUnknown:
        raise Conflict("a block of seals may be reserved for nobody, which does no harm") from None
    return reserved


async def keep_reserve(context: Context) -> None:
    """Reserve more seals before those of this node are used up.

    They come from the ring as it is stored: other nodes reserve too, and may have begun another key.
    """
    sealer = context.records.sealer
    if sealer.left <= RESERVE // 2:
        sealer.adopt(await open_keyring(context.settings))


async def _read(settings: Settings) -> tuple[Keyring, int]:
    entry = await ReadEntry(keys.RING)
    if entry is None:
        raise Refused(Code.NOT_INITIALISED)
    try:
        plain = open_with(master_cipher(settings.master_key), keys.RING, entry.value)
    except SealBroken:
        raise Refused(Code.SEALED, "the master key does not open the key ring") from None
    return converter.loads(plain, Keyring), entry.version
