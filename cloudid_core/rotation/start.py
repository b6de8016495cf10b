"""The first step of a rotation, on request or by a plan: the application gets one more key, and it is stored.

The record of the rotation names it before it is made, so that it is found and removed whatever becomes of the request.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from attrs import evolve

from ..background import Intent, abandoned_intent, look_again, marker
from ..credentials import Key, SecretHolder, Wanted, make_key
from ..deadline import Deadline
from ..effects import Instant, ListKeys, Now
from ..errors import CloudidError, Code, Conflict, ProviderProblem, Refused, reason_of
from ..provider import SECRET, Client, FreshObject
from ..routing import mount_client
from ..store import NO_CHANGES, Changes, Found, expected, keys
from ..tokens import new_id
from .record import Home, Phase, Rotation, given_up
from .root import Subject, application_of, find_root, hinted_key, is_managed, is_used_elsewhere

MOST_KEYS: Final = 8
"""How many secrets of a mount or static role, made here, may live at the same time."""
COME_AGAIN: Final = 30.0
"""Seconds after which an earlier secret may be removed, at the least."""
REFUSED: Final = "refused-"
"""How the ids start of intents for secrets that the provider refused to make: they are looked for anyway."""
UNIDENTIFIED: Final = "the replaced secret remains in Azure, because its key id is unknown"


async def rotated_holder(subject: Subject) -> Found[SecretHolder]:
    """Return the holder of the secret to be replaced: the configuration of a mount, or a static role.

    Refuse with the reason if the secret cannot be replaced.
    """
    holder = await subject.holder()
    if holder is None:
        raise Refused(Code.ROLE_NOT_FOUND) if subject.role else Refused(Code.CONFIG_MISSING)
    if not (subject.role or is_managed(subject.context, holder.record)):
        raise Refused(Code.ROOT_SECRET_UNMANAGED)
    return holder


async def start(
    subject: Subject, deadline: Deadline, now: Instant, *, force: bool = False, until: Instant | None = None
) -> Found[Rotation]:
    """Make a new secret and store it, to be proven. It is given up if it is not in use at `until`.

    A record of rotations that is damaged is replaced by force: secrets that only it named stay at the provider.

    Nothing is left of the secret if that fails. `Conflict`: nothing was made, because someone else changed the holder
    or has begun a rotation.
    """
    context, mount, role = subject.context, subject.mount, subject.role
    holder = await rotated_holder(subject)
    if not (force or role) and await is_used_elsewhere(context, mount.id, holder.record.client_secret):
        raise Refused(Code.ROOT_SECRET_SHARED)
    grounds = await context.components.of(mount).may_rotate(context, mount, role, deadline) if role else NO_CHANGES
    key = keys.rotation(mount.id, role)
    if force:
        before, expects = await context.records.find_for_writing(key, Rotation)
    else:
        before = await subject.rotation()
        expects = expected(before, key)
    last = before.record if before else Rotation(mount_id=mount.id, role=role)
    if last.phase is Phase.ADDING:  # only its record says by which name its secret is found
        raise Conflict(f"a rotation of {key} has started")
    abandoned = await ListKeys(f"{keys.intents(mount.id)}{last.abandons}", "", MOST_KEYS)
    if len(abandoned) + sum(key.made_at is not None for key in last.known_keys) >= MOST_KEYS:
        raise Refused(Code.ROOT_SECRETS_LEFT, retry_after=max(COME_AGAIN, last.due_at - now))
    client = await mount_client(context, mount.id, deadline)
    begun, given_back = await _begin(subject, holder.record, before.record if before else None, client, now)
    rests_on = Changes({**holder.expected, **expects, **grounds.expects})
    claim = await subject.write(before, evolve(begun, until=until), given_back | rests_on)
    try:
        return await _make(subject, claim, holder.record, client, now)
    except CloudidError as failure:
        with suppress(CloudidError):  # it is due in any case
            await _give_up_now(subject, claim, failure)
        if isinstance(failure, Conflict):
            raise Refused(Code.STORE_CONTENDED) from None
        raise


async def _begin(
    subject: Subject, holder: SecretHolder, before: Rotation | None, client: Client, now: Instant
) -> tuple[Rotation, Changes]:
    """Return the rotation before its first call, and the changes that give up keys of a former app registration."""
    context, mount_id = subject.context, subject.mount.id
    application = await application_of(client, holder)
    home = Home(client.tenant, holder.target or client.credentials.client_id, application.object_id)
    given_back = Changes()
    known = before.known_keys if before else ()
    if before is not None and before.home != home:
        for key in known:
            if key.made_at is not None and not await is_used_elsewhere(context, mount_id, key.secret):
                given_back |= abandoned_key(before, now, key).abandonment
        known = ()
    replaced = next((key for key in known if key.secret == holder.client_secret), None)
    if replaced is None and not holder.awaits_secret:
        ours = {key.id for key in known}
        replaced = Key(id=hinted_key(application, holder.client_secret, ours, now), secret=holder.client_secret)
    begun = Rotation(
        mount_id=mount_id,
        role=subject.role,
        phase=Phase.ADDING,
        home=home,
        name=marker(context, await new_id()),
        proof=holder.proof,
        replaced=replaced,
        outgoing=tuple(key for key in known if key is not replaced),
        due_at=client.deadline.at + client.settings.request_grace,
        started_at=now,
        rotated_at=before.rotated_at if before else None,
        note="" if replaced is None or replaced.id else UNIDENTIFIED,
    )
    return begun, given_back


async def _make(
    subject: Subject, claim: Found[Rotation], holder: SecretHolder, client: Client, now: Instant
) -> Found[Rotation]:
    begun, root = claim.record, await find_root(subject.context, subject.mount)
    life = root.record.capped(holder.secret_lifetime) if root else holder.secret_lifetime
    wanted = Wanted(
        proof=begun.proof,
        proof_id=begun.name.removeprefix(subject.context.marker_prefix),
        object_id=begun.home.object_id,
        name=begun.name,
        now=now,
        ends_at=now + life,
        family=FreshObject.SHARED,
    )
    new = await make_key(subject.context, subject.mount, client, wanted)
    return await subject.write(claim, evolve(begun, phase=Phase.PROVING, name="", new=new, due_at=client.deadline.at))


async def _give_up_now(subject: Subject, claim: Found[Rotation], failure: CloudidError) -> None:
    begun, now = claim.record, await Now()
    is_refused = begun.proof == SECRET and isinstance(failure, ProviderProblem)
    try:
        await give_up(subject, claim, now, reason_of(failure), is_refused=is_refused)
    except Conflict:
        if now > begun.due_at:  # others have given it up
            await look_again(subject.context, abandoned_key(begun, now, None), failure)


async def give_up(
    subject: Subject, found: Found[Rotation], now: Instant, error: str, *, is_refused: bool = False
) -> Found[Rotation]:
    """Forget the new secret; the journal removes it from the provider. One that was refused counts no more."""
    rotation = found.record
    abandoned = abandoned_key(rotation, now, rotation.new, is_refused=is_refused)
    return await subject.write(found, given_up(rotation, now, error=error), abandoned.abandonment)


def abandoned_key(rotation: Rotation, now: Instant, key: Key | None, *, is_refused: bool = False) -> Intent:
    """Return an intent to remove a key of a rotation. `None`: the key that is being added, whose name is known."""
    intent_id = f"{REFUSED * is_refused}{rotation.abandons}{(key and key.id) or rotation.name}"
    return abandoned_intent(intent_id, rotation.mount_id, rotation.provisioned(key, now), now)
