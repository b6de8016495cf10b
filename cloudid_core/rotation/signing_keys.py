"""The roll-over of signing keys: the first one is made once, and the background adds the next ones."""

from __future__ import annotations

from ..context import Context, Due, Job, queue
from ..credentials import MOST_KEYS, SigningKeys, find_signing_keys, first_keys
from ..effects import GenerateKey, Instant, Now
from ..errors import Code, Refused
from ..mounts import IDENTITY
from ..store import Changes, expected, keys, retry_on_conflict


def due_key(record: SigningKeys) -> str:
    return keys.due(record.due_at, queue.SIGNING_KEY, IDENTITY.id, "next")


async def make_first(now: Instant, period: int) -> dict[str, object]:
    """The entries of a store that has its first key: it signs at once."""
    made = first_keys(await GenerateKey(), now, period)
    return {keys.SIGNING_KEYS: made, due_key(made): Due()}


@retry_on_conflict
async def ensure_first(context: Context) -> None:
    """Make the first key of a store that was initialised before there were any. A damaged entry is left as it is."""
    if not await context.records.has(keys.SIGNING_KEYS):
        made = await make_first(await Now(), context.settings.signing_key_period)
        await context.records.commit(Changes(expected(None, keys.SIGNING_KEYS), made))


@retry_on_conflict
async def begin_key(context: Context) -> Instant:
    """Publish another key, which signs one period from now. In place of damaged keys it signs at once. Returns when."""
    now, period = await Now(), context.settings.signing_key_period
    found, expects = await context.records.find_for_writing(keys.SIGNING_KEYS, SigningKeys)
    private = await GenerateKey()
    changes = Changes(expects)
    if found is None:
        after = first_keys(private, now, period)
    else:
        after = found.record.without_expired(now).with_next(private, now, period)
        changes |= Changes(deletes=(due_key(found.record),))
    if len(after.keys) > MOST_KEYS:
        raise Refused(Code.MALFORMED_REQUEST, "too many signing keys are published")
    await context.records.commit(changes | Changes(puts={keys.SIGNING_KEYS: after, due_key(after): Due()}))
    return after.keys[-1].signs_from


async def roll_over(job: Job) -> None:
    """Publish the next key, which signs one period from now, and drop keys whose tokens have all expired."""
    found = await find_signing_keys(job.context.records)
    if found is None or due_key(found.record) != job.key:
        await queue.drop(job, keys.SIGNING_KEYS, found)
        return
    period = job.context.settings.signing_key_period
    kept = found.record.without_expired(job.now)
    if len(kept.keys) < MOST_KEYS:
        after = kept.with_next(await GenerateKey(), job.now, period)
    else:
        after = SigningKeys(keys=kept.keys, due_at=job.now + period)
    expects = {**job.fence, **found.expected}
    await job.context.records.commit(Changes(expects, {found.key: after, due_key(after): Due()}, (job.key,)))
