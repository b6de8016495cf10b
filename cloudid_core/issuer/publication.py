"""Publish an issuer's documents where others can read them while the service is private.

The documents are those of OpenID Connect Discovery 1.0, section 4. The leader writes them. After it has read the
published documents and before it replaces them, it checks that it still leads and that its keys are the newest. So if
the place of publication detects concurrent changes, an older document never replaces a newer one. A key starts to sign
only after its document was read back.
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
"""Maximum seconds between two checks of the published documents."""


def configuration(issuer: Issuer, settings: Settings) -> dict[str, Json]:
    """Return the configuration of an issuer that other services need."""
    address = issuer.address(settings)
    return {
        "issuer": address,
        "jwks_uri": f"{address}/.well-known/keys",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    }


def key_set(keys: SigningKeys) -> dict[str, Json]:
    """Return the public keys that have signed, that signs now, and that signs next."""
    return {"keys": [key.jwk for key in keys.keys]}


async def publish(job: Job) -> None:
    """Publish the documents of an issuer, unless they are already published."""
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
    """Publish a document, and return its digest. Raise `Conflict` if this node no longer leads or has outdated keys."""
    path, body = path.removeprefix("/"), msgspec.json.encode(content)
    there, digest = await ReadDocument(path), sha256(body).hexdigest()
    if there is not None and there.body == body:
        return digest
    if not await job.context.records.are_at({**job.fence, **found.expected}):
        raise Conflict("the data of this document has changed")
    is_known = there is not None and sha256(there.body).hexdigest() in found.record.digests
    if found.record.digests and found.record.place == job.context.settings.publishes_to and not is_known:
        await Record(PublishedDocumentChanged(document=path))
    await WriteDocument(path, body, there)
    there = await ReadDocument(path)
    if there is None or there.body != body:
        raise PublicationFailed("the published document differs from what was written")
    return digest


async def publish_soon(context: Context, fence: Mapping[str, int]) -> None:
    """Schedule the publication of all issuers' documents, for a node that has become the leader, as `fence` expects.

    The previous leader may have published elsewhere, or the place may have been emptied since.
    """
    for issuer in ISSUERS if context.settings.publishes_to else ():
        with suppress(EntryDamaged):
            found = await find_signing_keys(context.records, issuer)
            if found is not None:
                after = evolve(found.record, publish_at=await Now())
                changes = Changes({**fence, **found.expected}) | replacing(issuer, found.record, after)
                await context.records.commit(changes)


async def unpublished(context: Context) -> Sequence[Occurrence]:
    """Return the issuers whose documents could not be published, and why."""
    troubles: list[Occurrence] = []
    for issuer in ISSUERS if context.settings.publishes_to else ():
        with suppress(EntryDamaged):
            found = await find_signing_keys(context.records, issuer)
            if found is not None and found.record.trouble:
                troubles.append({"issuer": issuer.address(context.settings), "reason": found.record.trouble})
    return troubles
