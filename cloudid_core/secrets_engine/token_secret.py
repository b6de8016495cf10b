"""The secret that a role keeps for itself: with it the service asks for access tokens in the name of its application.

It is made when the first token is asked for, through the journal like every object, and proven before the role has it.
After half its life the next request for a token replaces it; the one before it lives a little longer, for requests of
other nodes that are under way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import evolve, frozen

from ..background import abandon, abandoned_intent, closing, marker, open_intent
from ..context import Context
from ..effects import Instant, Now
from ..errors import CloudidError, Code, Refused
from ..mounts import Mount
from ..provider import Client, Provisioned, wait_until_accepted
from ..store import Changes, Found
from ..tokens import new_id
from ..values import DAY, Secret
from .provisioning import add_password_to

if TYPE_CHECKING:
    from .roles import Role

LIFE: Final = 30 * DAY
"""Seconds that a secret is made for. Some tenants allow no longer ones."""
OVERLAP: Final = 300
"""Seconds for which the secret before it is left alive."""


@frozen(kw_only=True)
class TokenSecret:
    """A secret of a role's application that nobody is given. `provisioned` lists it."""

    secret: Secret
    provisioned: Provisioned
    ends_at: Instant

    @property
    def replace_at(self) -> Instant:
        """Half its life."""
        return (self.provisioned.made_at + self.ends_at) / 2


def forget_secret(kept: TokenSecret, mount: Mount, now: Instant, *, after: int = 0) -> Changes:
    """Gives a role's secret to the journal, which removes it `after` so many seconds."""
    intent_id = f"token-secret-{kept.provisioned.password_key_id}"
    return abandoned_intent(intent_id, mount.id, kept.provisioned, now, due_at=now + after)


async def replace_secret(context: Context, mount: Mount, client: Client, found: Found[Role], grounds: Changes) -> None:
    """Make a secret, prove it, and store it with the role, as it was written. Nothing is left of it if that fails.

    `grounds`: what the commits rest on besides the role. Raises `Conflict` when any of it has changed.
    """
    role, now, intent_id = found.record.normal, await Now(), await new_id()
    at_stake = Provisioned(
        made_at=now,
        tenant=client.tenant,
        client_id=role.existing_client_id,
        password_on=role.existing_id,
        password_name=marker(context, intent_id),
    )
    expects = {**grounds.expects, **found.expected}
    intent = await open_intent(
        context,
        intent_id=intent_id,
        mount_id=mount.id,
        provisioned=at_stake,
        now=now,
        until=client.deadline.at,
        expects=expects,
    )
    try:
        password = await add_password_to(
            client, at_stake.password_on, at_stake.password_name, now + LIFE, role.propagation(now)
        )
        if not await wait_until_accepted(client, at_stake.client_id, password.secret):
            raise Refused(Code.DEADLINE_PASSED, "the provider does not accept the new secret yet")
        made = TokenSecret(
            secret=password.secret,
            provisioned=evolve(at_stake, password_key_id=password.key_id),
            ends_at=min(password.ends_at, now + LIFE),
        )
        changes = Changes(expects, {found.key: evolve(found.record, token_secret=made)}) | closing(intent)
        if role.token_secret is not None:
            changes |= forget_secret(role.token_secret, mount, await Now(), after=OVERLAP)
        await context.records.commit(changes)
    except CloudidError:
        await abandon(context, intent, await Now())
        raise
