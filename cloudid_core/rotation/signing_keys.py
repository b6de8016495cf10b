"""The roll-over of signing keys: the first one is made once, and the background adds the next ones."""

from __future__ import annotations

from math import inf

from attrs import evolve

from ..context import Context, Due, Job, queue
from ..credentials import ISSUERS, MOST_KEYS, PLUGINS, Issuer, SigningKeys, find_signing_keys, first_keys
from ..effects import ABSENT, GenerateKey, Instant, Now
from ..errors import Code, Refused
from ..mounts import IDENTITY
from ..settings import Settings
from ..store import Changes, keys, retry_on_conflict


def due_key(issuer: Issuer, record: SigningKeys) -> str:
    return keys.due(record.due_at, queue.SIGNING_KEY, IDENTITY.id, issuer.ref)


def publication_key(issuer: Issuer, record: SigningKeys) -> str:
    """The due entry of the next publication, where there is one."""
    at = record.publish_at
    return "" if at is None else keys.due(at, queue.PUBLICATION, IDENTITY.id, issuer.ref)


def replacing(issuer: Issuer, before: SigningKeys | None, after: SigningKeys) -> Changes:
    """Stores an issuer's keys with all that is due for them."""
    deletes = tuple(_due(issuer, before)) if before is not None else ()
    return Changes(deletes=deletes) | Changes(puts={issuer.entry: after, **dict.fromkeys(_due(issuer, after), Due())})


def _due(issuer: Issuer, record: SigningKeys) -> list[str]:
    return list(filter(None, (due_key(issuer, record), publication_key(issuer, record))))


def to_publish(record: SigningKeys, now: Instant, settings: Settings) -> SigningKeys:
    """The same, to be published at once where documents are."""
    return evolve(record, publish_at=now if settings.publishes_to else None)


def issuer_of(job: Job) -> Issuer:
    return next((issuer for issuer in ISSUERS if issuer.ref == job.ref), PLUGINS)


async def make_first(issuer: Issuer, now: Instant, settings: Settings) -> dict[str, object]:
    """The entries of a store in which an issuer has its first key: it signs at once, or once it is published."""
    made = first_keys(await GenerateKey(), now, settings.signing_key_period)
    return dict(replacing(issuer, None, to_publish(made, now, settings)).puts)


@retry_on_conflict
async def keep_signing_keys(context: Context) -> None:
    """Make the first keys of a store that was initialised before there were any, and let them be published where that
    was not asked for before. A damaged entry is left as it is.

    The next key is due within a period, though the period was longer until now, or the clock was set back.
    """
    settings = context.settings
    for issuer in ISSUERS:
        found, expects = await context.records.find_for_writing(issuer.entry, SigningKeys)
        now = await Now()
        if expects == {issuer.entry: ABSENT}:
            await context.records.commit(Changes(expects, await make_first(issuer, now, settings)))
        elif found is not None:
            after = evolve(found.record, due_at=min(found.record.due_at, now + settings.signing_key_period))
            if settings.publishes_to not in ("", after.place) or (after.publish_at or 0.0) > after.due_at:
                after = to_publish(after, now, settings)
            if after != found.record:
                await context.records.commit(Changes(expects) | replacing(issuer, found.record, after))


@retry_on_conflict
async def begin_key(context: Context, issuer: Issuer) -> Instant:
    """Publish another key, which signs one period from now. In place of damaged keys it signs at once. Returns when."""
    now, settings = await Now(), context.settings
    found, expects = await context.records.find_for_writing(issuer.entry, SigningKeys)
    private = await GenerateKey()
    if found is None:
        after = first_keys(private, now, settings.signing_key_period)
    else:
        kept = found.record.without_expired(now, settings.publishes_to)
        after = kept.with_next(private, now, settings.signing_key_period)
    if len(after.keys) > MOST_KEYS:
        raise Refused(Code.MALFORMED_REQUEST, "too many signing keys are published")
    after = to_publish(after, now, settings)
    await context.records.commit(Changes(expects) | replacing(issuer, found.record if found else None, after))
    return after.keys[-1].signs_from


async def roll_over(job: Job) -> None:
    """Publish the next key, which signs one period from now, and drop keys whose tokens have all expired.

    While the last one could not be published, there is none after it.
    """
    issuer, settings = issuer_of(job), job.context.settings
    found = await find_signing_keys(job.context.records, issuer)
    if found is None or due_key(issuer, found.record) != job.key:
        await queue.drop(job, issuer.entry, found)
        return
    period, place = settings.signing_key_period, settings.publishes_to
    kept = found.record.without_expired(job.now, place)
    if len(kept.keys) < MOST_KEYS and kept.starts(kept.keys[-1], place) < inf:
        after = kept.with_next(await GenerateKey(), job.now, period)
    else:
        after = evolve(kept, due_at=job.now + period)
    changes = Changes({**job.fence, **found.expected}) | replacing(
        issuer, found.record, to_publish(after, job.now, settings)
    )
    await job.context.records.commit(changes)
