"""The first start of a store: its key ring, its mounts, and the root token, in one commit."""

from __future__ import annotations

from .effects import ABSENT, Commit, Instant, Now, RandomBytes
from .errors import Code, Conflict, Refused
from .foundation.caches import Caches
from .mounts.table import MOUNT_BYTES, TOKEN, default_mounts
from .settings import Settings
from .store import keys
from .store.keyring import KEYRING_BYTES, make_keyring, seal_keyring
from .store.records import Records
from .store.sealing import NONCE_SIZE, Keyring, Sealer
from .tokens import encoding
from .tokens.record import Token
from .values.secret import Secret


async def initialise(settings: Settings, root_token: Secret | None = None) -> Secret:
    """Prepare an empty store, and answer the root token: it is stored nowhere and shown only now.

    `root_token` fixes its text, for development only. Refused with `MALFORMED_REQUEST` when the store is in use.
    """
    now = await Now()
    keyring = make_keyring(now, await RandomBytes(KEYRING_BYTES))
    records = Records(Sealer(keyring), Caches(settings).records)
    token, shown = await _root_token(keyring, now, root_token)
    mounts = default_mounts(await RandomBytes(MOUNT_BYTES))
    puts = {keys.MOUNTS: mounts, keys.token(token.id): token}
    sealed = records.seal(puts, await RandomBytes(NONCE_SIZE * len(puts)))
    try:
        await Commit({keys.RING: ABSENT}, {keys.RING: await seal_keyring(settings, keyring), **sealed})
    except Conflict:
        raise Refused(Code.MALFORMED_REQUEST, "the store is already initialised") from None
    return shown


async def _root_token(keyring: Keyring, now: Instant, chosen: Secret | None) -> tuple[Token, Secret]:
    fresh = encoding.new_token(now, await RandomBytes(encoding.RANDOM_SIZE))
    shown = chosen.reveal() if chosen else fresh.text
    token_id = encoding.id_of(shown, keyring)
    if token_id is None:
        raise Refused(Code.MALFORMED_REQUEST, "a root token has 1 to 128 visible ASCII characters")
    token = Token(
        id=token_id,
        mac=encoding.mac_of(shown, keyring),
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
