"""The routes of keys: the current data key, and new keys for data, tokens and signatures.

Keys that are no longer needed are retired, so that new ones can always be created. A data key is needed while an entry
is sealed with it, or a node may still seal with it; entries are first resealed with the newest key. Token keys are
needed while a token that was created with them is stored, or a batch token that was created with them, which is not
stored, may be valid. The first token keys stay, because nodes compare their settings with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import evolve

from ..context import Context, begin_data_key, begin_token_keys, drop_keys, keep_reserve, read_keyring
from ..credentials import PLUGINS
from ..deadline import Deadline
from ..effects import MOST_ENTRIES, Commit, Entry, Instant, ListKeys, RandomBytes, ReadEntries, Sleep
from ..errors import Conflict, OutcomeUnknown
from ..forms import schemas
from ..messages import NOTHING, READ, WRITE, Answer
from ..mounts import mount_table
from ..rotation import begin_key
from ..routing import COPIED, Call, route
from ..store import NONCE_SIZE, SealBroken, keys, term_of
from ..tokens import Token
from ..values import rfc3339

KEPT: Final = 64
"""With fewer keys of a kind, none is retired, because the whole store must be read to find out which are needed."""

REPLACED_FOR: Final = 3600.0
"""Seconds after which no node uses a replaced data key, or creates a token with replaced keys."""

PAGE: Final = min(100, MOST_ENTRIES)


@route("key-status", READ, schemas.members(INTEGER="term encryptions", TIME="install_time"), shape=COPIED)
async def read_key_status(call: Call) -> Answer:
    """Returns the term of the newest data key, since when it is in use, and the maximum of its uses so far.

    Other nodes are assumed to have used all seals that they have reserved.
    """
    sealer = call.context.records.sealer
    current = sealer.keyring.current
    unused = sealer.left if sealer.term == current.term else 0
    data = {
        "term": current.term,
        "install_time": rfc3339.show(current.made_at),
        "encryptions": max(0, current.reserved - unused),
    }
    return Answer(data=data, copy_up=True)


@route("rotate", WRITE)
async def rotate_data_key(call: Call) -> Answer:
    """Starts a new data key. Data that older keys encrypted can still be read."""
    await retire_data_keys(call.context, call.now, call.deadline)
    await begin_data_key(call.context)
    return NOTHING


@route("rotate/tokens", WRITE, schemas.members(INTEGER="term", TIME="serves_from"))
async def rotate_token_keys(call: Call) -> Answer:
    """Adds new keys for tokens and accessors, which take effect some minutes later. Existing tokens stay valid."""
    await retire_token_keys(call.context, call.now, call.deadline)
    fresh = await begin_token_keys(call.context)
    return Answer(data={"term": fresh.term, "serves_from": rfc3339.show(fresh.serves_from)})


@route("rotate/signing-keys", WRITE, schemas.members(TIME="signs_from"))
async def rotate_signing_keys(call: Call) -> Answer:
    """Publishes a new key for identity tokens of mounts, which starts to sign one period later.

    Replaces damaged keys.
    """
    return Answer(data={"signs_from": rfc3339.show(await begin_key(call.context, PLUGINS))})


async def retire_data_keys(context: Context, now: Instant, deadline: Deadline) -> None:
    """Retire data keys that are no longer needed, if there are many."""
    ring = await read_keyring(context.settings)
    if len(ring.data_keys) < KEPT:
        return
    await _seal_anew(context, deadline)
    needed: set[int] = set()
    after = ""
    while page := await _next_page(after, deadline):
        after = max(page)
        needed |= {term_of(entry.value) for key, entry in page.items() if key != keys.RING}
    replaced = zip(ring.data_keys, ring.data_keys[1:], strict=False)
    old = {key.term for key, successor in replaced if successor.made_at + REPLACED_FOR < now}
    await drop_keys(context, old - needed, ())


async def retire_token_keys(context: Context, now: Instant, deadline: Deadline) -> None:
    """Retire token keys without remaining tokens, if there are many."""
    ring = await read_keyring(context.settings)
    if len(ring.token_keys) < KEPT:
        return
    mounts = (await mount_table(context.records)).record
    longest = max(context.settings.max_lease_ttl, *(mount.max_ttl(context.settings) for mount in mounts.live))
    replaced = zip(ring.token_keys[1:], ring.token_keys[2:], strict=False)
    old = {each.term for each, successor in replaced if successor.serves_from + longest + REPLACED_FOR < now}
    after = ""
    while old and (page := await ListKeys(keys.TOKENS, after, PAGE)):
        await deadline.remaining()
        old -= {found.record.key_term for found in await context.records.find_undamaged(page, Token)}
        after = page[-1]
        await Sleep(0.0)  # requests run between two pages
    await drop_keys(context, (), old)


async def _seal_anew(context: Context, deadline: Deadline) -> None:
    """Reseal all entries with the newest data key.

    An entry that is changed in the meantime is resealed by that change.
    """
    sealer = context.records.sealer
    after = ""
    while page := await _next_page(after, deadline):
        after = max(page)
        await keep_reserve(context)
        for key, entry in page.items():
            if key == keys.RING or term_of(entry.value) == sealer.term:
                continue
            try:
                plain = sealer.open(key, entry.value)
                await Commit({key: entry.version}, {key: sealer.seal(key, plain, await RandomBytes(NONCE_SIZE))})
            except (SealBroken, Conflict, OutcomeUnknown):
                continue


async def _next_page(after: str, deadline: Deadline) -> Mapping[str, Entry]:
    """Return the existing entries of the next page. Empty after the last one."""
    while listed := await ListKeys("", after, PAGE):
        await deadline.remaining()
        await Sleep(0.0)  # requests run between two pages
        if found := await ReadEntries(listed):
            return found
        after = listed[-1]
    return {}


ROUTES: Final = (
    read_key_status,
    rotate_data_key,
    evolve(rotate_data_key, path="rotate/keyring"),
    rotate_token_keys,
    rotate_signing_keys,
)
