"""Initialise a store: create its key ring, mounts, signing key and root token in one commit.

Later root tokens are created here too.
"""

from __future__ import annotations

from attrs import frozen

from .caches import Caches
from .context import KEYRING_BYTES, make_keyring, open_keyring, seal_keyring
from .credentials import ISSUERS
from .effects import ABSENT, Commit, Instant, ListKeys, Now, RandomBytes, ReadEntry
from .errors import Code, Conflict, Refused
from .mounts import MOUNT_BYTES, TOKEN, default_mounts
from .rotation import make_first
from .settings import Settings
from .store import NONCE_SIZE, Changes, Keyring, Records, Sealer, keys
from .tokens import Token, encoding
from .values import Secret


@frozen
class Unshown:
    """A mark in the store that the last root token may never have been shown to anyone."""


async def initialise(settings: Settings, root_token: Secret | None = None) -> Secret:
    """Initialise an empty store, and return the root token, which is stored nowhere.

    `root_token` sets a fixed token, for development only. Refuse with `MALFORMED_REQUEST` if the store is not empty.
    Run `confirm_root_token` after the token was shown.
    """
    if await ListKeys("", "", 1) and not await is_initialised():
        raise Refused(
            Code.MALFORMED_REQUEST,
            "the store has entries but no key ring, perhaps from a failed copy: remove the entries",
        )
    now = await Now()
    keyring = make_keyring(now, await RandomBytes(KEYRING_BYTES))
    records = Records(Sealer(keyring), Caches(settings).records)
    token, shown = await _root_token(keyring, now, root_token)
    mounts = default_mounts(await RandomBytes(MOUNT_BYTES))
    puts: dict[str, object] = {keys.MOUNTS: mounts, keys.token(token.id): token, keys.UNSHOWN_ROOT_TOKEN: Unshown()}
    for issuer in ISSUERS:
        puts |= await make_first(issuer, now, settings)
    sealed = records.seal(puts, await RandomBytes(NONCE_SIZE * len(puts)))
    try:
        await Commit({keys.RING: ABSENT}, {keys.RING: await seal_keyring(settings, keyring), **sealed})
    except Conflict:
        raise Refused(Code.MALFORMED_REQUEST, "the store is already initialised") from None
    return shown


async def is_initialised() -> bool:
    """Return whether the store is initialised. Needs no master key."""
    return await ReadEntry(keys.RING) is not None


async def was_root_token_shown() -> bool:
    """Return whether `confirm_root_token` was run for the last root token. Needs no master key."""
    return await ReadEntry(keys.UNSHOWN_ROOT_TOKEN) is None


async def confirm_root_token() -> None:
    """Record that the last root token was shown."""
    if mark := await ReadEntry(keys.UNSHOWN_ROOT_TOKEN):
        await Commit({keys.UNSHOWN_ROOT_TOKEN: mark.version}, deletes=(keys.UNSHOWN_ROOT_TOKEN,))


async def make_root_token(settings: Settings) -> Secret:
    """Create another root token for an initialised store. Earlier root tokens stay valid.

    Needs only the master key. Fails like `open_keyring`. Run `confirm_root_token` after the token was shown.
    """
    keyring = await open_keyring(settings)
    token, shown = await _root_token(keyring, await Now(), None)
    records = Records(Sealer(keyring), Caches(settings).records)
    puts: dict[str, object] = {keys.token(token.id): token, keys.UNSHOWN_ROOT_TOKEN: Unshown()}
    await records.commit(Changes({keys.token(token.id): ABSENT}, puts))
    return shown


async def _root_token(keyring: Keyring, now: Instant, chosen: Secret | None) -> tuple[Token, Secret]:
    fresh = encoding.new_token(now, await RandomBytes(encoding.RANDOM_SIZE))
    shown = chosen.reveal() if chosen else fresh.text
    token_keys = keyring.token_keys_at(now)
    token_id = encoding.id_of(shown, token_keys)
    if token_id is None:
        raise Refused(Code.MALFORMED_REQUEST, "a root token has 1 to 128 visible ASCII characters")
    token = Token(
        id=token_id,
        mac=encoding.mac_of(shown, token_keys),
        key_term=token_keys.term,
        path="auth/token/root",
        mount_id=TOKEN.id,
        policies=("root",),
        display_name="root",
        created_at=now,
        ttl=0,
        expires_at=None,
        renewable=False,
    )
    return token, Secret(shown)
