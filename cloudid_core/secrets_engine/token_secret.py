"""What a role keeps to ask for access tokens with: a secret, a certificate, or a federated credential.

It is made when the first token is asked for, through the journal like every object, and proven before it is used.
After half its life the next request for a token replaces it; the one before it lives a little longer, for requests of
other nodes that are under way. A federated credential has no end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import evolve, frozen

from ..background import abandon, abandoned_intent, closing, marker, open_intent
from ..context import Context
from ..credentials import Key, Wanted, make_key, present
from ..effects import Instant, Now
from ..errors import CloudidError, Code, Refused
from ..mounts import Mount
from ..provider import GRACE, PROOFS, Client, Credentials, Proof, Provisioned, wait_until_proven
from ..rotation import find_root
from ..store import Changes, Found
from ..tokens import new_id
from ..values import DAY, Secret, rfc3339

if TYPE_CHECKING:
    from .roles import Role

LIFE: Final = 30 * DAY
"""Seconds that a secret is made for. Some tenants allow no longer ones."""
OVERLAP: Final = 300
"""Seconds for which the secret before it is left alive."""
LONGEST_WAIT: Final = 3600
"""Seconds after which another is made in place of one that the provider has never accepted."""
COME_AGAIN: Final = 10.0
"""Seconds after which a token may be asked for again."""


@frozen(kw_only=True)
class TokenSecret:
    """The credential of a role's app registration, which is never issued. `provisioned` lists it.

    `secret` and `proof_id` are those of a `Key`."""

    secret: Secret
    provisioned: Provisioned
    ends_at: Instant
    proof_id: str = ""
    proven: bool = True
    """Whether the provider has ever accepted it."""

    @property
    def row(self) -> Proof:
        return PROOFS[self.provisioned.proof]

    def credentials(self, context: Context, mount: Mount, client: Client) -> Credentials:
        """Return how the app registration authenticates to the address of `client`."""
        key = Key(secret=self.secret, proof=self.provisioned.proof, proof_id=self.proof_id)
        return present(context, mount, client, self.provisioned.client_id, key)

    @property
    def replace_at(self) -> Instant:
        """Half its life."""
        return (self.provisioned.made_at + self.ends_at) / 2


def forget_secret(kept: TokenSecret, mount: Mount, now: Instant, *, after: int = 0) -> Changes:
    """Gives a role's secret to the journal, which removes it `after` so many seconds."""
    intent_id = f"token-secret-{kept.provisioned.password_key_id}"
    return abandoned_intent(intent_id, mount.id, kept.provisioned, now, due_at=now + after).abandonment


async def _may_come(client: Client, kept: TokenSecret, now: Instant) -> bool:
    """Return whether Azure may still accept a new secret, which another change of the app may have removed."""
    made, age = kept.provisioned, now - kept.provisioned.made_at
    is_fresh = age < GRACE
    return is_fresh or (age < LONGEST_WAIT and await kept.row.stands(client, made.password_on, made.password_name))


async def replace_secret(
    context: Context, mount: Mount, client: Client, found: Found[Role], grounds: Changes, *, is_needed: bool
) -> None:
    """Make a secret, prove it, and store it with the role, as it was written. Nothing is left of it if that fails.

    `is_needed`: the role has none that works. What the provider does not accept in time is stored unproven then, and
    proven by the next request, which is asked for by `ROLE_PROOF_PENDING`.

    `grounds`: what the commits rest on besides the role. Raises `Conflict` when any of it has changed.
    """
    role, now, intent_id = found.record.normal, await Now(), await new_id()
    root = await find_root(context, mount)
    expects, kept = {**grounds.expects, **found.expected}, role.token_secret
    if kept is not None and not kept.proven and await _may_come(client, kept, now):
        if not await wait_until_proven(client, kept.credentials(context, mount, client), kept.row.family):
            raise Refused(Code.ROLE_PROOF_PENDING, retry_after=COME_AGAIN)
        stored = evolve(found.record, token_secret=evolve(kept, proven=True))
        await context.records.commit(Changes(expects, {found.key: stored}))
        return
    at_stake = Provisioned(
        made_at=now,
        tenant=client.tenant,
        client_id=role.existing_client_id,
        password_on=role.existing_id,
        password_name=marker(context, intent_id),
        proof=role.proof,
    )
    intent = await open_intent(context, intent_id, mount.id, at_stake, until=client.deadline.at, expects=expects)
    try:
        wanted = Wanted(
            proof=role.proof,
            proof_id=intent_id,
            object_id=role.existing_id,
            name=at_stake.password_name,
            now=now,
            ends_at=now + (root.record.capped(LIFE) if root else LIFE),
            family=role.propagation(now),
        )
        key = await make_key(context, mount, client, wanted)
        made = TokenSecret(
            secret=key.secret,
            provisioned=evolve(at_stake, password_key_id=key.id),
            ends_at=rfc3339.LATEST if key.expires_at is None else key.expires_at,
            proof_id=key.proof_id,
        )
        proven = await wait_until_proven(client, made.credentials(context, mount, client), made.row.family)
        if not (proven or is_needed):
            raise Refused(Code.DEADLINE_PASSED, "Azure does not accept the new client secret yet")
        made = evolve(made, proven=proven)
        changes = Changes(expects, {found.key: evolve(found.record, token_secret=made)}) | closing(intent)
        if kept is not None:
            changes |= forget_secret(kept, mount, await Now(), after=OVERLAP)
        await context.records.commit(changes)
    except CloudidError as failure:
        await abandon(context, intent, failure)
        raise
    if not proven:
        raise Refused(Code.ROLE_PROOF_PENDING, retry_after=COME_AGAIN)
