"""The app registration of a role with `persist_app`: created once, updated with the role, and deleted with it.

Only one change is in progress at a time: its intent has a fixed id, and exists until a failed change is undone, or the
remains of a finished one are removed. Otherwise, the objects of a later change could be mistaken for those remains.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from attrs import evolve, frozen

from ..background import abandon, abandoned_intent, closing, find_intent, marker, open_intent
from ..context import Context, Due
from ..effects import Instant
from ..errors import CloudidError, Code, Refused
from ..mounts import Mount
from ..provider import Client, Description, Provisioned, describe_application, identities_for_writing, is_assigned
from ..routing import Call, capture_name
from ..store import Changes, keys
from ..tokens import new_id
from ..values import fold
from .ceiling import Ceiling
from .grants import GroupGrant, RoleGrant
from .provisioning import (
    PlannedAssignment,
    foreign_warnings,
    grant,
    make_application,
    paths_of,
    plan_assignments,
)
from .token_secret import TokenSecret

if TYPE_CHECKING:
    from .roles import Role

COME_AGAIN: Final = 30.0
"""Seconds after which a change can be retried that has to wait for another."""


@frozen(kw_only=True)
class PersistentApp:
    """What a role owns in Azure: `provisioned` lists all of it, and the rest says why it was created."""

    id: str
    provisioned: Provisioned
    assignments: tuple[PlannedAssignment, ...]
    groups: tuple[GroupGrant, ...]
    """Stored for nodes of earlier releases. `provisioned` has all memberships."""
    tags: tuple[str, ...]
    sign_in_audience: str
    service_management_reference: str = ""
    is_tagged: bool = False
    """Whether its unique name is one of its tags."""
    left: tuple[PlannedAssignment, ...] = ()
    """Assignments by others that the role no longer has. They exist as long as the service principal."""

    @property
    def change_id(self) -> str:
        """Return the id of the intent for its changes."""
        return f"{self.id}-change"


@frozen(kw_only=True)
class Change:
    """The difference between what a role owns and what it should own."""

    stay: tuple[PlannedAssignment, ...]
    added: tuple[RoleGrant, ...]
    removed: tuple[PlannedAssignment, ...]
    joined: Mapping[str, tuple[str, ...]]
    left: Mapping[str, tuple[str, ...]]
    """Memberships by kind."""
    described: bool
    """Whether the app registration's own properties differ."""


async def persist(
    call: Call, client: Client, key: str, role: Role, description: Description, grounds: Changes
) -> tuple[str, ...]:
    """Create what the role should own, and store the role with it. What it should no longer own is removed afterwards.

    `grounds` are part of the commit that stores it. Return warnings about assignments by others.

    Raise `Conflict` if something expected has changed, and `ROLE_CHANGE_PENDING`.
    """
    kept = role.persistent_app
    if kept is None:
        return await _make(call, client, key, role, description, grounds)
    description = evolve(description, is_tagged=kept.is_tagged)
    change = _difference(kept, role.normal, description)
    if not (change.added or change.removed or change.joined or change.left or change.described):
        provisioned = evolve(kept.provisioned, purge=role.permanently_delete)
        stored = Changes(puts={key: evolve(role, persistent_app=evolve(kept, provisioned=provisioned))})
        await call.context.records.commit(grounds | stored | await pointing(call, provisioned.client_id))
        return ()
    if await find_intent(call.context, call.mount.id, kept.change_id):
        raise Refused(Code.ROLE_CHANGE_PENDING, retry_after=COME_AGAIN)
    return await _change(call, client, key, role, kept, change, description, grounds)


async def without_gone(client: Client, kept: PersistentApp) -> PersistentApp:
    """Return it without assignments by others that they have removed."""
    left = tuple([one for one in kept.left if await is_assigned(client, one.path)])
    assignments = paths_of((*kept.assignments, *left))
    return evolve(kept, left=left, provisioned=evolve(kept.provisioned, assignments=assignments))


async def require_changed(context: Context, mount: Mount, ceiling: Ceiling, role: Role) -> None:
    """Refuse with `ROLE_CHANGE_PENDING` while a role's app registration may still exceed a ceiling.

    What a role gave up is removed after the role was written, and Azure may refuse that for a long time.
    """
    kept = role.persistent_app
    if kept is None or not (ceiling.is_limited or ceiling.deny_privileged_roles):
        return
    if await find_intent(context, mount.id, kept.change_id):
        raise Refused(Code.ROLE_CHANGE_PENDING, retry_after=COME_AGAIN)


async def pointing(call: Call, client_id: str, role: str = "") -> Changes:
    """Return what every commit of a role must contain that issues secrets of an existing app registration.

    Refuse the service's own.

    It changes what configurations are written with, so neither the role nor a configuration can overtake the other.
    """
    identities, expects = await identities_for_writing(call.context.records)
    identities.refuse(client_id)
    index_key = keys.target(client_id, call.mount.id, role or capture_name(call))
    return Changes(expects, {keys.IDENTITIES: identities, index_key: Due()})


def forget(persistent_app: PersistentApp, secret: TokenSecret | None, mount: Mount, now: Instant) -> Changes:
    """Return the change that passes a role's app registration to the journal, which removes it immediately.

    Its secret is removed first.
    """
    provisioned = persistent_app.provisioned
    if secret is not None:
        provisioned = evolve(
            provisioned,
            password_on=secret.provisioned.password_on,
            password_name=secret.provisioned.password_name,
            password_key_id=secret.provisioned.password_key_id,
            proof=secret.provisioned.proof,
        )
    return abandoned_intent(persistent_app.id, mount.id, provisioned, now).abandonment


async def _make(
    call: Call, client: Client, key: str, role: Role, description: Description, grounds: Changes
) -> tuple[str, ...]:
    intent_id = await new_id()
    planned = await plan_assignments(role.normal.azure_roles)
    at_stake = Provisioned(
        made_at=call.now,
        tenant=client.tenant,
        unique_name=marker(call.context, intent_id),
        assignments=paths_of(planned),
        purge=True,
    )
    until, expects = call.deadline.at, grounds.expects
    intent = await open_intent(call.context, intent_id, call.mount.id, at_stake, until=until, expects=expects)
    try:
        made = await make_application(client, at_stake, description)
        granted = await grant(client, made.member_id, planned, role.memberships)
        persistent_app = _persisted(intent_id, made, granted, role, description)
        stored = grounds | Changes(puts={key: evolve(role, persistent_app=persistent_app)})
        stored |= await pointing(call, made.client_id)
        await call.context.records.commit(stored | closing(intent))
    except CloudidError as failure:
        await abandon(call.context, intent, failure)
        raise
    return foreign_warnings(granted)


async def _change(
    call: Call,
    client: Client,
    key: str,
    role: Role,
    kept: PersistentApp,
    change: Change,
    description: Description,
    grounds: Changes,
) -> tuple[str, ...]:
    """Create what is new, then store the role. The same commit turns the intent into one that removes what is old."""
    planned = await plan_assignments(change.added)
    member_id = kept.provisioned.member_id
    nothing = Provisioned(made_at=call.now, tenant=client.tenant, member_id=member_id)
    at_stake = evolve(nothing, assignments=paths_of(planned)).with_memberships(change.joined)
    until, expects = call.deadline.at, grounds.expects
    intent = await open_intent(call.context, kept.change_id, call.mount.id, at_stake, until=until, expects=expects)
    try:
        if change.described:
            await describe_application(
                client,
                kept.provisioned.application_id,
                kept.provisioned.unique_name,
                description,
                had_reference=bool(kept.service_management_reference),
            )
        granted = _adopted(kept, await grant(client, member_id, planned, change.joined))
        assigned = {one.path for one in granted}
        given_up = [one for one in change.removed if one.path not in assigned]
        left = tuple(one for one in (*kept.left, *given_up) if one.is_foreign and one.path not in assigned)
        audience = description.sign_in_audience if change.described else kept.provisioned.audience
        provisioned = evolve(kept.provisioned, made_at=call.now, audience=audience)
        persistent_app = _persisted(kept.id, provisioned, (*change.stay, *granted), role, description, left)
        removed = tuple(one.path for one in given_up if not one.is_foreign)
        old = evolve(nothing, assignments=removed).with_memberships(change.left)
        changes = grounds | Changes(puts={key: evolve(role, persistent_app=persistent_app)}) | closing(intent)
        changes |= await pointing(call, provisioned.client_id)
        if not old.is_empty:
            changes |= abandoned_intent(kept.change_id, call.mount.id, old, call.now).abandonment
        await call.context.records.commit(changes)
    except CloudidError as failure:
        await abandon(call.context, intent, failure)
        raise
    return foreign_warnings((*granted, *left))


def _adopted(kept: PersistentApp, granted: tuple[PlannedAssignment, ...]) -> tuple[PlannedAssignment, ...]:
    """Return existing assignments as the role's own if it owns them under another spelling of their role definition."""
    own = {fold(one.path): one for one in kept.assignments if not one.is_foreign}
    return tuple(
        evolve(one, path=own[fold(one.path)].path, is_foreign=False) if fold(one.path) in own else one
        for one in granted
    )


def _persisted(
    persisted_id: str,
    provisioned: Provisioned,
    assignments: tuple[PlannedAssignment, ...],
    role: Role,
    description: Description,
    left: tuple[PlannedAssignment, ...] = (),
) -> PersistentApp:
    return PersistentApp(
        id=persisted_id,
        provisioned=evolve(
            provisioned.with_memberships(role.memberships),
            assignments=paths_of((*assignments, *left)),
            purge=role.permanently_delete,
        ),
        assignments=assignments,
        groups=role.azure_groups,
        tags=role.normal.tags,
        sign_in_audience=role.sign_in_audience,
        service_management_reference=description.service_management_reference,
        is_tagged=description.is_tagged,
        left=left,
    )


def _difference(kept: PersistentApp, role: Role, description: Description) -> Change:
    described = kept.tags, kept.provisioned.audience, kept.service_management_reference
    wanted_description = role.tags, description.sign_in_audience, description.service_management_reference
    wanted = {_assignment_key(one): one for one in role.azure_roles}
    assigned = {_assignment_key(one) for one in kept.assignments}
    return Change(
        stay=tuple(one for one in kept.assignments if _assignment_key(one) in wanted),
        added=tuple(one for name, one in wanted.items() if name not in assigned),
        removed=tuple(one for one in kept.assignments if _assignment_key(one) not in wanted),
        joined=_beyond(role.memberships, kept.provisioned),
        left=_beyond(kept.provisioned.memberships, role),
        described=wanted_description != described,
    )


def _beyond(memberships: Mapping[str, tuple[str, ...]], other: Provisioned | Role) -> dict[str, tuple[str, ...]]:
    """Return the memberships that are not among others."""
    known = {(kind, fold(one)) for kind, ids in other.memberships.items() for one in ids}
    more = {kind: tuple(one for one in ids if (kind, fold(one)) not in known) for kind, ids in memberships.items()}
    return {kind: ids for kind, ids in more.items() if ids}


def _assignment_key(one: RoleGrant | PlannedAssignment) -> tuple[str, str]:
    return one.role_id.lower(), one.scope.lower()
