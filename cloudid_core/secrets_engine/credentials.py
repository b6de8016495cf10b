"""Credentials: issue a working client id and secret under a lease.

Everything that will be created is in the journal before the first call. One commit writes the lease and closes the
intent. Until then, after any failure, the intent is undone, and the caller has nothing.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from attrs import evolve, frozen

from ..background import Intent, abandon, closing, marker, open_intent
from ..context import LeaseSubject
from ..effects import Instant, Now
from ..errors import CloudidError, Code, Conflict, ProviderProblem, Refused, StoreFailed
from ..forms import grant as grant_life
from ..forms import schemas
from ..leases import Lease, end_lease
from ..messages import READ, Answer
from ..mounts import mount_table, require_live
from ..provider import Client, Credentials, Description, FreshObject, NewPassword, Provisioned, wait_until_proven
from ..quotas import room_for_lease
from ..routing import PROVIDER, Answers, Call, capture_name, route
from ..store import Changes, Found, retry_on_conflict
from ..token_store import hard_end
from ..tokens import new_id, owner_of, tie
from .config import Config, in_use
from .persistent_app import COME_AGAIN
from .provisioning import (
    PlannedAssignment,
    add_password_to,
    foreign_warnings,
    grant,
    make_application,
    paths_of,
    plan_assignments,
)
from .roles import Role, description_of, find_role, may_hold, may_issue_for, rights_of

SECRET_MARGIN: Final = 3600
"""Seconds by which a secret in Azure outlives the longest lease, but never an explicit maximum or `max_secret_ttl`."""
CREDENTIALS: Final = Answers(
    data=schemas.members(TEXT="client_id client_secret tenant_id subscription_id"),
    lease=True,
    refusals=(Code.ROLE_CHANGE_PENDING, *PROVIDER),
)


@frozen(kw_only=True)
class Plan:
    """An issue before its first call: what will be created, and for how long."""

    id: str
    role_name: str
    role: Role
    provisioned: Provisioned
    assignments: tuple[PlannedAssignment, ...]
    description: Description
    ttl: int
    ends_at: Instant
    """When the secret in Azure will expire."""
    subscription_id: str
    warnings: tuple[str, ...]


@frozen
class Made:
    """What was created, with all ids, and the client secret."""

    provisioned: Provisioned
    password: NewPassword
    warnings: tuple[str, ...] = ()


@route("creds/:name", READ, CREDENTIALS, has_side_effect=True)
async def generate_credentials(call: Call) -> Answer:
    """Issues the client id and secret of a service principal, under a lease.

    If this fails, nothing is left behind. The response also has the `tenant_id` and `subscription_id` that a login with
    them needs: the subscription is the only one in which the role assigns roles, otherwise the one in the
    configuration.
    """
    if call.token.last_use:
        raise Refused(Code.TOKEN_USED_UP)
    client, plan, intent = await _begin(call)
    lease_id = _lease_id(call, plan)
    made: Made | None = None
    try:
        made = await _make(client, plan)
        client_id, secret = made.provisioned.client_id, made.password.secret
        given = Credentials(client_id=client_id, client_secret=secret)
        if client.settings.verify_credentials and not await wait_until_proven(client, given, FreshObject.SECRET):
            raise Refused(Code.DEADLINE_PASSED, "Azure does not accept the new client secret yet")
        lease = await _account_for(call, plan, made, intent, lease_id)
    except CloudidError as failure:
        if made is None and plan.provisioned.password_on and isinstance(failure, ProviderProblem):
            # A password that was refused is looked for as any other, but it does not count as a lease.
            intent = intent.with_record(evolve(intent.record, role=""))
        await _take_back(call, intent, lease_id)
        raise
    return Answer(
        data={
            "client_id": client_id,
            "client_secret": secret.reveal(),
            "tenant_id": client.tenant,
            "subscription_id": plan.subscription_id,
        },
        lease_id=lease.id,
        lease_duration=round(lease.expires_at - lease.issued_at),
        renewable=True,
        warnings=(*plan.warnings, *made.warnings, *_capped_by_token(lease, plan)),
        holds=lease.id,
        wake_at=lease.due_at,
    )


def _capped_by_token(lease: Lease, plan: Plan) -> tuple[str, ...]:
    """Warn if the lease ends before the TTL that its role grants, because its token expires earlier."""
    seconds = round(lease.expires_at - lease.issued_at)
    return () if seconds >= plan.ttl else (f"the TTL is capped to {seconds}s, because the token expires then",)


def _lease_id(call: Call, plan: Plan) -> str:
    return f"{call.mount.path}/creds/{plan.role_name}/{plan.id}"


@retry_on_conflict
async def _begin(call: Call) -> tuple[Client, Plan, Found[Intent]]:
    """Plan an issue with the current role and configuration, and write the plan as an intent."""
    context, mount, name = call.context, call.mount, capture_name(call)
    mounts = await require_live(context.records, mount)
    role = await find_role(context, mount, name)
    if role is None:
        raise Refused(Code.ROLE_NOT_FOUND)
    config, client, config_expects = await in_use(context, mount, call.deadline)
    await may_issue_for(context, mount, config, client, role.record)
    plan = await _plan(call, config, client, role.record, name)
    call.held.lease_id, call.held.mount_id, call.held.intent_id = _lease_id(call, plan), mount.id, plan.id
    at_stake, expects = evolve(plan.provisioned, purge=True), {**role.expected, **config_expects}
    room = await room_for_lease(context, mounts, mount.id, name, role.record.max_leases)
    intent = await open_intent(
        context, plan.id, mount.id, at_stake, until=call.deadline.at, expects=expects, role=name, more=room
    )
    return client, plan, intent


async def _plan(call: Call, config: Config, client: Client, role: Role, name: str) -> Plan:
    terms = role.terms(call.context, call.mount, config)
    granted = grant_life(terms, start=call.now, now=call.now)
    intent_id = await new_id()
    provisioned = Provisioned(made_at=call.now, tenant=client.tenant)
    mark, on, client_id = marker(call.context, intent_id), role.existing_id, role.existing_client_id
    planned: tuple[PlannedAssignment, ...] = ()
    if on:
        provisioned = evolve(provisioned, password_on=on, password_name=mark, client_id=client_id)
    else:
        planned = await plan_assignments(role.azure_roles)
        paths, definitions = paths_of(planned), tuple(one.role_id for one in planned)
        provisioned = evolve(provisioned, unique_name=mark, assignments=paths, definitions=definitions)
        provisioned = evolve(provisioned, purge=role.permanently_delete)
    return Plan(
        id=intent_id,
        role_name=name,
        role=role,
        provisioned=provisioned,
        assignments=planned,
        description=description_of(config, role),
        ttl=granted.ttl,
        ends_at=call.now + min(terms.effective_max + SECRET_MARGIN, config.capped(role.cap)),
        subscription_id=role.subscription or config.subscription_id,
        warnings=granted.warnings,
    )


async def _make(client: Client, plan: Plan) -> Made:
    """Create the planned objects."""
    role, provisioned = plan.role, plan.provisioned
    if provisioned.password_on:
        family = role.propagation(provisioned.made_at)
        on, name = provisioned.password_on, provisioned.password_name
        password = await add_password_to(client, on, name, plan.ends_at, family)
        return Made(evolve(provisioned, password_key_id=password.key_id), password)
    provisioned = await make_application(client, provisioned, plan.description)
    on = provisioned.application_id
    password = await add_password_to(client, on, "", plan.ends_at, FreshObject.APPLICATION)
    granted = await grant(client, provisioned.principal_id, plan.assignments, role.memberships)
    made = evolve(provisioned.with_memberships(role.memberships), password_on=on)
    made = evolve(made, assignments=paths_of(granted), password_key_id=password.key_id)
    return Made(made, password, foreign_warnings(granted))


@retry_on_conflict
async def _account_for(call: Call, plan: Plan, made: Made, intent: Found[Intent], lease_id: str) -> Lease:
    """Replace the intent with the lease, if mount, role and token are still valid. The lease ends with the token.

    A batch token without a parent is not stored: the lease expires with the token, and ends with its mount.
    """
    context, mount, token = call.context, call.mount, call.token.token
    now = await Now()
    ends_at = min(plan.ends_at, made.password.ends_at)
    if token.is_batch and token.expires_at is not None:
        ends_at = min(ends_at, token.expires_at)
    ttl = min(plan.ttl, int(ends_at - now))
    if ttl <= 0:
        raise Refused(Code.DEADLINE_PASSED, "the lease no longer exists")
    mounts = await mount_table(context.records)
    role = await find_role(context, mount, plan.role_name)
    if role is None or mount.id not in mounts.record.by_id:
        raise Refused(Code.ROLE_NOT_FOUND)
    if plan.role.persistent_app and role.record.existing_id != plan.role.existing_id:
        raise Refused(Code.ROLE_CHANGE_PENDING, retry_after=COME_AGAIN)
    config, client, config_expects = await in_use(context, mount, call.deadline)
    rights = None if made.provisioned.application_id else rights_of(plan.role)
    subject = LeaseSubject(role=plan.role_name, provisioned=made.provisioned, rights=rights)
    grounds = await may_hold(context, mount, config, client, role.record, subject)
    owner = await owner_of(context, mounts.record, token, now)
    token_end = await hard_end(context, mounts.record, owner.record, now) if owner else None
    if token_end is not None:
        ttl = min(ttl, max(1, int(token_end - now)))
    lease = Lease(
        id=lease_id,
        mount_id=mount.id,
        role=plan.role_name,
        token_id=owner.record.id if owner else "",
        provisioned=made.provisioned,
        issued_at=now,
        expires_at=now + ttl,
        ends_at=ends_at,
        due_at=now + ttl,
        rights=rights,
        batch_mount_id="" if owner else token.mount_id,
        batch_holder="" if owner else token.batch_holder,
    )
    expects = {**mounts.expected, **role.expected, **config_expects}
    changes = Changes(expects) | grounds | lease.creation | closing(intent)
    changes |= call.tied_to_wrapping(lease_id=lease.id)
    try:
        await context.records.commit(changes | tie(owner) if owner else changes)
    except (Conflict, StoreFailed):  # nothing was written
        call.held.wrapping = None
        raise
    return lease


async def _take_back(call: Call, intent: Found[Intent], lease_id: str) -> None:
    """Undo everything, even if the lease replaced the intent without confirmation. Never fails.

    What the store does not accept stays held, and is revoked with the rest of the request.
    """
    now = await Now()
    await abandon(call.context, intent)
    with suppress(CloudidError):
        await end_lease(call.context, lease_id, now)
        call.held.lease_id = call.held.mount_id = call.held.intent_id = ""
