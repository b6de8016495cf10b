"""The roll-over of signing keys: the first one is made once, and the background adds the next ones."""

from __future__ import annotations

from ..context import Context, Due, Job, queue
from ..credentials import ISSUERS, MOST_KEYS, PLUGINS, Issuer, SigningKeys, find_signing_keys, first_keys
from ..effects import ABSENT, GenerateKey, Instant, Now
from ..errors import Code, Refused
from ..mounts import IDENTITY
from ..store import Changes, keys, retry_on_conflict


def due_key(issuer: Issuer, record: SigningKeys) -> str:
    return keys.due(record.due_at, queue.SIGNING_KEY, IDENTITY.id, issuer.ref)


async def make_first(issuer: Issuer, now: Instant, period: int) -> dict[str, object]:
    """The entries of a store in which an issuer has its first key: it signs at once."""
    made = first_keys(await GenerateKey(), now, period)
    return {issuer.entry: made, due_key(issuer, made): Due()}


@retry_on_conflict
async def ensure_first(context: Context) -> None:
    """Make the first keys of a store that was initialised before there were any. A damaged entry is left as it is."""
    for issuer in ISSUERS:
        if not await context.records.has(issuer.entry):
            made = await make_first(issuer, await Now(), context.settings.signing_key_period)
            await context.records.commit(Changes({issuer.entry: ABSENT}, made))


@retry_on_conflict
async def begin_key(context: Context, issuer: Issuer) -> Instant:
    """Publish another key, which signs one period from now. In place of damaged keys it signs at once. Returns when."""
    now, period = await Now(), context.settings.signing_key_period
    found, expects = await context.records.find_for_writing(issuer.entry, SigningKeys)
    private = await GenerateKey()
    changes = Changes(expects)
    if found is None:
        after = first_keys(private, now, period)
    else:
        after = found.record.without_expired(now).with_next(private, now, period)
        changes |= Changes(deletes=(due_key(issuer, found.record),))
    if len(after.keys) > MOST_KEYS:
        raise Refused(Code.MALFORMED_REQUEST, "too many signing keys are published")
    await context.records.commit(changes | Changes(puts={issuer.entry: after, due_key(issuer, after): Due()}))
    return after.keys[-1].signs_from


async def roll_over(job: Job) -> None:
    """Publish the next key, which signs one period from now, and drop keys whose tokens have all expired."""
    issuer = next((each for each in ISSUERS if each.ref == job.ref), PLUGINS)
    found = await find_signing_keys(job.context.records, issuer)
    if found is None or due_key(issuer, found.record) != job.key:
        await queue.drop(job, issuer.entry, found)
        return
    period = job.context.settings.signing_key_period
    kept = found.record.without_expired(job.now)
    if len(kept.keys) < MOST_KEYS:
        after = kept.with_next(await GenerateKey(), job.now, period)
    else:
        after = SigningKeys(keys=kept.keys, due_at=job.now + period)
    expects = {**job.fence, **found.expected}
    await job.context.records.commit(Changes(expects, {found.key: after, due_key(issuer, after): Due()}, (job.key,)))
