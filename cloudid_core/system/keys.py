"""The routes of keys: which data key seals now, and new ones for data, tokens and signatures."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from ..context import begin_data_key, begin_token_keys
from ..credentials import PLUGINS
from ..forms import schemas
from ..messages import NOTHING, READ, WRITE, Answer
from ..rotation import begin_key
from ..routing import COPIED, Call, route
from ..values import rfc3339
from .key_retirement import retire_data_keys, retire_token_keys


@route("key-status", READ, schemas.members(INTEGER="term encryptions", TIME="install_time"), shape=COPIED)
async def read_key_status(call: Call) -> Answer:
    """Tells the term of the newest data key, since when it is in use, and how often at most.

    Other nodes count as having used all seals that they have reserved.
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
    """Begins a new data key. What older ones have sealed stays readable."""
    await retire_data_keys(call.context, call.now, call.deadline)
    await begin_data_key(call.context)
    return NOTHING


@route("rotate/tokens", WRITE, schemas.members(INTEGER="term", TIME="serves_from"))
async def rotate_token_keys(call: Call) -> Answer:
    """Adds new keys for tokens and accessors, which serve some minutes later. Tokens from before live on."""
    await retire_token_keys(call.context, call.now, call.deadline)
    fresh = await begin_token_keys(call.context)
    return Answer(data={"term": fresh.term, "serves_from": rfc3339.show(fresh.serves_from)})


@route("rotate/signing-keys", WRITE, schemas.members(TIME="signs_from"))
async def rotate_signing_keys(call: Call) -> Answer:
    """Publishes a new key for identity tokens of mounts, which signs one period later. Replaces damaged keys."""
    return Answer(data={"signs_from": rfc3339.show(await begin_key(call.context, PLUGINS))})


ROUTES: Final = (
    read_key_status,
    rotate_data_key,
    evolve(rotate_data_key, path="rotate/keyring"),
    rotate_token_keys,
    rotate_signing_keys,
)
