"""What a role keeps to ask for access tokens with: a secret, a certificate, or a federated credential.

It is made when the first token is asked for, through the journal like every object, and proven before it is used.
After half its life the next request for a token replaces it; the one before it lives a little longer, for requests of
other nodes that are under way. A federated credential has no end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from attrs import evolve, frozen

from ..background import abandon, abandoned_intent, closing, marker, open_intent
from ..context import Context
from ..credentials import CertificateAssertions, IdentityTokens, self_signed, thumbprint
from ..effects import GenerateKey, Instant, Now, Program, RandomBytes
from ..errors import CloudidError, Code, Refused
from ..mounts import Mount
from ..provider import (
    CERTIFICATE,
    CLOCK_SKEW,
    FEDERATED,
    GRACE,
    PROOFS,
    SECRET,
    Client,
    Credentials,
    FreshObject,
    Proof,
    Provisioned,
    add_certificate,
    add_federated_credential,
    retry_while_propagating,
    token_endpoint,
    wait_until_proven,
)
from ..store import Changes, Found
from ..tokens import new_id
from ..values import DAY, Secret, uuid_text
from .provisioning import add_password_to

if TYPE_CHECKING:
    from .roles import Role

NEVER: Final = 253_402_300_799.0
"""The end of what has no end."""
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
    """What a role's application proves itself with, which nobody is given. `provisioned` lists it.

    `secret` is its text, or the key of a certificate, whose thumbprint is `proof_id`. A federated credential has no
    secret: it trusts assertions of this service under `proof_id`."""

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
        """What the application proves itself with. `client`: whom it asks."""
        return WAYS[self.provisioned.proof].present(context, mount, client, self)

    @property
    def replace_at(self) -> Instant:
        """Half its life."""
        return (self.provisioned.made_at + self.ends_at) / 2


async def _make_secret(
    context: Context, mount: Mount, client: Client, at_stake: Provisioned, family: FreshObject, proof_id: str
) -> TokenSecret:
    ends_at = at_stake.made_at + LIFE
    password = await add_password_to(client, at_stake.password_on, at_stake.password_name, ends_at, family)
    provisioned = evolve(at_stake, password_key_id=password.key_id)
    return TokenSecret(secret=password.secret, provisioned=provisioned, ends_at=min(password.ends_at, ends_at))


async def _make_federated(
    context: Context, mount: Mount, client: Client, at_stake: Provisioned, family: FreshObject, proof_id: str
) -> TokenSecret:
    tokens = IdentityTokens.for_application(context.settings, context.records, mount, proof_id)
    add = partial(
        add_federated_credential,
        client,
        at_stake.password_on,
        name=at_stake.password_name,
        issuer=tokens.issuer,
        subject=tokens.subject,
        audience=tokens.audience,
    )
    credential_id = await retry_while_propagating(client, add, family=family, made_at=at_stake.made_at)
    provisioned = evolve(at_stake, password_key_id=credential_id)
    return TokenSecret(secret=Secret(), provisioned=provisioned, ends_at=NEVER, proof_id=proof_id)


async def _make_certificate(
    context: Context, mount: Mount, client: Client, at_stake: Provisioned, family: FreshObject, proof_id: str
) -> TokenSecret:
    """The key is made here and stays here; the directory has its certificate. Times in that are whole seconds."""
    made_at = int(at_stake.made_at)
    private, starts_at, ends_at = await GenerateKey(), made_at - CLOCK_SKEW, made_at + LIFE
    der = self_signed(private, int(proof_id, 16), starts_at, ends_at)
    key_id = uuid_text(await RandomBytes(16))
    add = partial(
        add_certificate,
        client,
        at_stake.password_on,
        name=at_stake.password_name,
        key_id=key_id,
        der=der,
        starts_at=starts_at,
        ends_at=ends_at,
    )
    await retry_while_propagating(client, add, family=family, made_at=at_stake.made_at)
    provisioned = evolve(at_stake, password_key_id=key_id)
    return TokenSecret(secret=private, provisioned=provisioned, ends_at=ends_at, proof_id=thumbprint(der))


def _present_secret(context: Context, mount: Mount, client: Client, kept: TokenSecret) -> Credentials:
    return Credentials(client_id=kept.provisioned.client_id, client_secret=kept.secret)


def _present_certificate(context: Context, mount: Mount, client: Client, kept: TokenSecret) -> Credentials:
    client_id = kept.provisioned.client_id
    assertions = CertificateAssertions(
        client_id=client_id, audience=token_endpoint(client), thumbprint=kept.proof_id, private=kept.secret
    )
    return Credentials(client_id=client_id, assertions=assertions)


def _present_federated(context: Context, mount: Mount, client: Client, kept: TokenSecret) -> Credentials:
    tokens = IdentityTokens.for_application(context.settings, context.records, mount, kept.proof_id)
    return Credentials(client_id=kept.provisioned.client_id, assertions=tokens)


@frozen
class Way:
    """A row: how what a role keeps is made, and how its application proves itself with it. `PROOFS` has the rest."""

    make: Callable[[Context, Mount, Client, Provisioned, FreshObject, str], Program[TokenSecret]]
    present: Callable[[Context, Mount, Client, TokenSecret], Credentials]


WAYS: Final = MappingProxyType(
    {
        SECRET: Way(_make_secret, _present_secret),
        FEDERATED: Way(_make_federated, _present_federated),
        CERTIFICATE: Way(_make_certificate, _present_certificate),
    }
)
"""By the `proof` of a role."""


def forget_secret(kept: TokenSecret, mount: Mount, now: Instant, *, after: int = 0) -> Changes:
    """Gives a role's secret to the journal, which removes it `after` so many seconds."""
    intent_id = f"token-secret-{kept.provisioned.password_key_id}"
    return abandoned_intent(intent_id, mount.id, kept.provisioned, now, due_at=now + after)


async def _may_come(client: Client, kept: TokenSecret, now: Instant) -> bool:
    """Whether the provider may accept yet what it has not so far. Others who change an application may have lost it."""
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
        made = await WAYS[role.proof].make(context, mount, client, at_stake, role.propagation(now), intent_id)
        proven = await wait_until_proven(client, made.credentials(context, mount, client), made.row.family)
        if not (proven or is_needed):
            raise Refused(Code.DEADLINE_PASSED, "the provider does not accept the new secret yet")
        made = evolve(made, proven=proven)
        changes = Changes(expects, {found.key: evolve(found.record, token_secret=made)}) | closing(intent)
        if kept is not None:
            changes |= forget_secret(kept, mount, await Now(), after=OVERLAP)
        await context.records.commit(changes)
    except CloudidError:
        await abandon(context, intent, await Now())
        raise
    if not proven:
        raise Refused(Code.ROLE_PROOF_PENDING, retry_after=COME_AGAIN)
