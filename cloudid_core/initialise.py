"""The first start of a store: its key ring, its mounts, and the root token, in one commit."""

from __future__ import annotations

from .caches import Caches
from .effects import ABSENT, Commit, Instant, Now, RandomBytes
from .errors import Code, Conflict, Refused
from .mounts import MOUNT_BYTES, TOKEN, default_mounts
from .ring import RING_BYTES, make_ring, seal_ring
from .settings import Settings
from .store import keys
from .store.records import Records
from .store.sealing import NONCE_SIZE, KeyRing, Sealer
from .tokens import text
from .tokens.record import Token
from .values.secret import Secret


async def initialise(settings: Settings, root_token: Secret | None = None) -> Secret:
    """Prepare an empty store, and answer the root token: it is stored nowhere and shown only now.

    `root_token` fixes its text, for development only. Refused with `MALFORMED_REQUEST` when the store is in use.
    """
    now = await Now()
    ring = make_ring(now, await RandomBytes(RING_BYTES))
    records = Records(Sealer(ring), Caches(settings).records)
    token, shown = await _root_token(ring, now, root_token)
    mounts = default_mounts(await RandomBytes(MOUNT_BYTES))
    puts = {keys.MOUNTS: mounts, keys.token(token.id): token}
    sealed = records.seal(puts, await RandomBytes(NONCE_SIZE * len(puts)))
    try:
        await Commit({keys.RING: ABSENT}, {keys.RING: await seal_ring(settings, ring), **sealed})
    except Conflict:
        raise Refused(Code.MALFORMED_REQUEST, "the store is already initialised") from None
    return shown


async def _root_token(ring: KeyRing, now: Instant, chosen: Secret | None) -> tuple[Token, Secret]:
    fresh = text.new_token(now, await RandomBytes(text.RANDOM_SIZE))
    shown = chosen.reveal() if chosen else fresh.text
    token_id = text.id_of(shown, ring)
    if token_id is None:
        raise Refused(Code.MALFORMED_REQUEST, "a root token has 1 to 128 visible ASCII characters")
    token = Token(
        id=token_id,
        mac=text.mac_of(shown, ring),
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
