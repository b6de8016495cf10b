"""An issuer's documents (OpenID Connect Discovery 1.0, section 4), and their publication: where others can read them,
while the service itself is private.

The leader writes them. Before it does, it makes sure that it still leads and that the keys are the newest, after it has
read what it replaces: where a document tells that it has changed, an older one never takes the place of a newer one. A
key signs once its document was read back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Final

import msgspec
from attrs import evolve

from ..context import Context, Job, queue
from ..credentials import ISSUERS, Issuer, SigningKeys, find_signing_keys
from ..effects import Now, ReadDocument, Record, WriteDocument
from ..errors import Conflict, EntryDamaged, PublicationFailed
from ..events import PublishedDocumentChanged
from ..forms import Json
from ..health import HealthProblem, Occurrence
from ..rotation import issuer_of, publication_key, replacing
from ..settings import Settings
from ..store import Changes, Found

PAUSE: Final = 300.0
"""Seconds between two looks at what is published, at the most."""


def configuration(issuer: Issuer, settings: Settings) -> dict[str, Json]:
    """What others have to know of an issuer."""
    address = issuer.address(settings)
    return {
        "issuer": address,
        "jwks_uri": f"{address}/.well-known/keys",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    }


def key_set(keys: SigningKeys) -> dict[str, Json]:
    """The public halves of all keys: those that have signed, the one that signs, and the next one."""
    return {"keys": [key.jwk for key in keys.keys]}


async def publish(job: Job) -> None:
    """Put the documents of an issuer where they are published, unless they are there."""
    context, settings, issuer = job.context, job.context.settings, issuer_of(job)
    found = await find_signing_keys(context.records, issuer)
    if found is None or publication_key(issuer, found.record) != job.key:
        await queue.drop(job, issuer.entry, found)
        return
    failure: PublicationFailed | None = None
    if not settings.publishes_to:
        after = evolve(found.record, publish_at=None, attempts=0, trouble="")
    else:
        try:
            if not settings.issuer:
                raise PublicationFailed('the setting "issuer" is not set')
            documents = {"openid-configuration": configuration(issuer, settings), "keys": key_set(found.record)}
            digests = [
                await _put(job, found, f"{issuer.path}/.well-known/{name}", documents[name]) for name in documents
            ]
            now = await Now()
            kept = found.record.published(settings.publishes_to, now, settings.signing_key_period)
            after = evolve(kept, publish_at=now + PAUSE, digests=tuple(digests))
        except PublicationFailed as failed:
            failure, attempts = failed, found.record.attempts + 1
            again = min(await queue.retry_at(job, attempts), job.now + PAUSE)
            after = evolve(found.record, publish_at=again, attempts=attempts, trouble=str(failed))
    changes = Changes({**job.fence, **found.expected}) | replacing(issuer, found.record, after)
    await context.records.commit(changes)
    context.node.note(HealthProblem.ISSUER_UNPUBLISHED, await unpublished(context))
    if failure is not None:
        raise failure


async def _put(job: Job, found: Found[SigningKeys], path: str, content: Json) -> str:
    """Put a document at its place; answers its digest. `Conflict`: this node no longer leads, or keys are newer."""
    path, body = path.removeprefix("/"), msgspec.json.encode(content)
    there, digest = await ReadDocument(path), sha256(body).hexdigest()
    if there is not None and there.body == body:
        return digest
    if not await job.context.records.are_at({**job.fence, **found.expected}):
        raise Conflict("what this document rests on has changed")
    is_known = there is not None and sha256(there.body).hexdigest() in found.record.digests
    if found.record.digests and found.record.place == job.context.settings.publishes_to and not is_known:
        await Record(PublishedDocumentChanged(document=path))
    await WriteDocument(path, body, there)
    there = await ReadDocument(path)
    if there is None or there.body != body:
        raise PublicationFailed("what was written is not what is read")
    return digest


async def publish_soon(context: Context, fence: Mapping[str, int]) -> None:
    """Make the documents of all issuers due, for the node that has taken the leadership, expected by `fence`.

    The node that led before may have published elsewhere, or the place may have been emptied since.
    """
    for issuer in ISSUERS if context.settings.publishes_to else ():
        with suppress(EntryDamaged):
            found = await find_signing_keys(context.records, issuer)
            if found is not None:
                after = evolve(found.record, publish_at=await Now())
                changes = Changes({**fence, **found.expected}) | replacing(issuer, found.record, after)
                await context.records.commit(changes)


async def unpublished(context: Context) -> Sequence[Occurrence]:
    """The issuers whose documents could not be published, and why."""
    troubles: list[Occurrence] = []
    for issuer in ISSUERS if context.settings.publishes_to else ():
        with suppress(EntryDamaged):
            found = await find_signing_keys(context.records, issuer)
            if found is not None and found.record.trouble:
                troubles.append({"issuer": issuer.address(context.settings), "reason": found.record.trouble})
    return troubles
