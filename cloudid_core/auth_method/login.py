"""Login: from a machine's signed token to a service token, in the order of its steps.

First the mount accepts the token: signature, issuer, tenant, audience, times. Azure signs the tokens of all tenants
with the same keys, so a signature alone proves nothing. Only then does anything depend on the role: its existence, the
source address, the bounds. Checks that need no network come first. The decision itself is one pure function.

A login works on a view of mount, configuration and role, which may be cached. Its commit expects the view. Before a
refusal, dispatch verifies the view, and runs the login again on a new view if it was out of date.
"""

from __future__ import annotations

from typing import Final

from ..effects import Instant, RandomBytes, Record
from ..errors import Code, Conflict, Refused, StoreFailed
from ..events import MachineClaimIgnored
from ..messages import Answer
from ..provider import (
    PROVIDER_FAILURES,
    Client,
    KeySet,
    known_groups,
    known_keys,
    known_machine,
    machine_facts,
    member_groups,
    refreshed_for,
)
from ..provider.signing_keys import signing_keys
from ..routing import Call
from ..settings import Settings
from ..store import NONCE_SIZE, Changes
from ..tokens import RANDOM_SIZE
from ..tokens.issue import issue
from .checks import TOKEN_CHECKS
from .claims import Claims, OtherClaim
from .decision import NOT_ASKED, Case, Facts, Needs, Trust, Verified, admit, plan_of, run
from .explanation import explanation_of
from .form import LoginForm, validate
from .snapshot import MountSnapshot, Snapshot, cached_mount, cached_role, fresh_mount, fresh_role
from .verification import UnknownKey, forget_login_jwt, verify_login_jwt

AFTER_SIGNATURE: Final = frozenset({Code.JWT_CLAIM_MISSING, *(check.code for check in TOKEN_CHECKS)})
"""Codes of tokens that the mount does not accept although their signature was verified."""


async def log_in(call: Call) -> Answer:
    """Answer a login with a token, or refuse it with the code of the failed check.

    Until the mount has accepted the token, nothing reads, caches or records the role in the form. Otherwise, the work
    would reveal which roles exist to every caller, or to the machines of all tenants.
    """
    form = call.form(LoginForm)
    exchange = call.exchange
    proven = exchange.proven
    try:
        validate(form)
    except Refused:
        proven.has_invalid_form = True
        raise
    base = cached_mount(call) or await fresh_mount(call)
    case: Case | None = None
    try:
        claims, key_set = await verified_claims(call, form, base)
        trust = trust_of(call.context.settings, base, key_set)
        case = Case(claims, trust, exchange.time, exchange.request.remote_address)
        run(TOKEN_CHECKS, case)
    except Refused as refusal:
        proven.is_verified, proven.case = refusal.code in AFTER_SIGNATURE, case
        if case is not None:
            forget_login_jwt(form.jwt.strip(), key_set, call.context.caches, call.mount.id)
        raise
    proven.principal_id = claims.principal_id
    if claims.machine is not None:
        proven.resource_id = claims.machine.written
    if call.count_role is not None:
        call.count_role()
    name = form.role.lower()
    snapshot = cached_role(call, base, name) or await fresh_role(call, base, name)
    case.bounds, case.form = snapshot.role.bounds, form
    case.facts = facts_at_hand(base.identity, claims, exchange.time)
    answer = await _issue(call, snapshot, await admitted(call, snapshot, case))
    form.jwt, proven.case = "", case  # what is remembered of a login holds no JWT
    return answer


async def admitted(call: Call, snapshot: Snapshot, case: Case) -> Verified:
    """Run the checks of the role. Return what is recorded of them."""
    plan, other, exchange = plan_of(case), case.claims.other, call.exchange
    try:
        if plan.by_source:  # few roles have such a check, and most logins save the call
            run(plan.by_source, case)
        if other is not None:
            await Record(_ignored(other, call, snapshot))
        verdict = admit(plan, case)
        if type(verdict) is Needs:
            case.facts = await fetched_facts(call, snapshot, case.claims, case.facts, verdict)
            verdict = admit(plan, case)
    except (Refused, *PROVIDER_FAILURES):
        case.form.jwt, exchange.proven.case = "", case
        if exchange.trail is not None:
            exchange.trail.decision = explanation_of(case).decision
        raise
    if exchange.trail is not None:
        plan.recorded = plan.recorded or explanation_of(case).decision
        exchange.trail.decision = plan.recorded
    assert type(verdict) is Verified  # all facts that it can need are there
    return verdict


async def _issue(call: Call, snapshot: Snapshot, verdict: Verified) -> Answer:
    """Commit a token for an admitted login. Raise `Conflict` if the snapshot is out of date."""
    random = await RandomBytes(RANDOM_SIZE + NONCE_SIZE)
    issued = issue(
        call.context,
        snapshot.template,
        random[:RANDOM_SIZE],
        now=call.exchange.time,
        display_name=snapshot.base.display_prefix + verdict.claims.principal_id,
        metadata=verdict.metadata(snapshot.role_name),
    )
    changes, nonces = Changes(snapshot.expects, issued.puts), random[RANDOM_SIZE:]
    if call.wrapping is not None and issued.stored_id:
        changes, nonces = changes | call.tied_to_wrapping(token_id=issued.stored_id), b""
    held = call.exchange.held
    held.token = issued.token
    try:
        await call.context.records.commit(changes, nonces)
    except (Conflict, StoreFailed):  # nothing was written
        held.token = held.wrapping = None
        raise
    return Answer(auth=issued.block, warnings=issued.warnings, new_token=issued.stored_id)


def trust_of(settings: Settings, base: MountSnapshot, key_set: KeySet) -> Trust:
    """Return what the mount requires of tokens."""
    return Trust(base.config.resource, key_set.tenant_id, key_set.issuers, settings.leeway, settings.machine_check)


async def verified_claims(call: Call, form: LoginForm, base: MountSnapshot) -> tuple[Claims, KeySet]:
    """Return the claims of a token with a valid signature, and the keys that verified it.

    Clients that send a file (`jwt=@FILE`) send the newline at its end with the token.
    """
    context = call.context
    key_set = known_keys(base.identity, call.exchange.time) or await fetched_keys(call, base)
    while True:
        try:
            return verify_login_jwt(
                form.jwt.strip(), key_set, context.caches, base.mount.id, context.settings.jwt_limit
            ), key_set
        except UnknownKey as unknown:
            key_set = await _newer_keys(call, base, unknown.kid)


async def provider_client(call: Call, base: MountSnapshot) -> Client:
    """Return a client for calls to Azure, after checking that the view is not out of date.

    A cached configuration may have a credential that had to be replaced.
    """
    await call.view.verify(call.context.records)
    return base.client(call.deadline)


async def fetched_keys(call: Call, base: MountSnapshot) -> KeySet:
    """Fetch the tenant's signing keys from Azure."""
    return await signing_keys(await provider_client(call, base))


async def _newer_keys(call: Call, base: MountSnapshot, kid: str) -> KeySet:
    """Fetch the tenant's signing keys again, unless that was just done. Refuse with `LOGIN_REFUSED` without `kid`."""
    key_set = await refreshed_for(await provider_client(call, base), kid)
    if kid not in key_set.keys:
        raise Refused(Code.LOGIN_REFUSED)
    return key_set


def _ignored(other: OtherClaim, call: Call, snapshot: Snapshot) -> MachineClaimIgnored:
    return MachineClaimIgnored(
        request_id=call.request_id,
        mount_accessor=snapshot.base.mount.accessor,
        role=snapshot.role_name,
        claim=other.claim,
    )


def facts_at_hand(client: Client, claims: Claims, now: Instant) -> Facts:
    """Return recent facts from Azure."""
    machine = known_machine(client, claims.machine.folded, now) if claims.machine else None
    groups = known_groups(client, claims.principal_id, now) if claims.groups_overflow else None
    return Facts(machine.content if machine else NOT_ASKED, groups.content if groups else NOT_ASKED)


async def fetched_facts(call: Call, snapshot: Snapshot, claims: Claims, facts: Facts, needs: Needs) -> Facts:
    """Look up the facts that only Azure has, in addition to those that are known."""
    return await asked_facts(await provider_client(call, snapshot.base), claims, facts, needs)


async def asked_facts(client: Client, claims: Claims, facts: Facts, needs: Needs) -> Facts:
    """Look up facts like `fetched_facts`, with a client."""
    machine, groups = facts.machine, facts.groups
    if needs.machine and claims.machine is not None:
        machine = await machine_facts(client, claims.machine.resource_id)
    if needs.groups:
        groups = await member_groups(client, claims.principal_id)
    return Facts(machine, groups)
