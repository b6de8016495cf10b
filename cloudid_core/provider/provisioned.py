"""Holdings: the objects at the provider that one of our records accounts for, and how they are removed.

A lease holds them, an intent holds those that may have come to be. Removal is the same for both: idempotent, in the
order that lets nothing survive, and honest about absence: what the provider does not find is gone only when the
directory's declared settle time has passed since it may have been made.
"""

from __future__ import annotations

from typing import Final, TypeVar

from attrs import evolve, frozen

from ..effects import Instant, Now, Program
from ..errors import CloudidError, reason_of
from .applications import application_by_unique_name, delete_application, find_application, purge, remove_password
from .assignments import unassign
from .client import Client
from .groups import remove_member
from .principals import delete_principal, principal_of

T = TypeVar("T")

UNSETTLED: Final = "not found yet: the directory may not show it before its settle time has passed"


@frozen(kw_only=True)
class Provisioned:
    """Objects at the provider.

    An application of ours is known by its unique name from the start, by its ids once an answer came. A password stands
    on an application that is not held; it is known by its display name, and by its key id once an answer came.
    """

    made_at: Instant
    tenant: str = ""
    """The directory that they are in, where that is known."""
    unique_name: str = ""
    application_id: str = ""
    client_id: str = ""
    principal_id: str = ""
    member_id: str = ""
    """The principal whose memberships in `groups` are held; it need not be held itself."""
    assignments: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    password_on: str = ""
    password_name: str = ""
    password_key_id: str = ""
    purge: bool = False
    to_purge: tuple[str, ...] = ()
    deleted_at: Instant = 0.0
    """When the latest of `to_purge` was deleted: it may not show among the deleted items yet."""

    @property
    def is_empty(self) -> bool:
        return not (
            self.unique_name
            or self.application_id
            or self.principal_id
            or self.assignments
            or self.groups
            or self.password_on
            or self.to_purge
        )


@frozen
class Removal:
    """What is left after an attempt, and why."""

    left: Provisioned
    reasons: tuple[str, ...]


async def remove(client: Client, provisioned: Provisioned, *, settled: bool) -> Removal:
    """Remove what can be removed: assignments, memberships, password, principal, application, then what is purged.

    `settled`: what the provider does not find is not there.
    """
    reasons: list[str] = []

    async def tried(what: str, attempt: Program[T]) -> T | None:
        """What an attempt brought; its failure is noted, and stops nothing else."""
        try:
            return await attempt
        except CloudidError as failure:
            reasons.append(f"{what}: {reason_of(failure)}")
        return None

    async def gone(what: str, removal: Program[bool], *, settled: bool = settled) -> bool:
        """Whether an object is certainly gone."""
        removed = await tried(what, removal)
        if removed is False and not settled:
            reasons.append(f"{what}: {UNSETTLED}")
        return removed is True or (removed is False and settled)

    identified = await tried("application", _identified(client, provisioned))
    left = identified or provisioned
    if left.purge and left != provisioned:
        # What was deleted can no longer be found by its name: its ids must be written down before.
        return Removal(left, ("its ids were found; it will be removed next",))
    kept = [path for path in left.assignments if not await gone("assignment", unassign(client, path))]
    left = evolve(left, assignments=tuple(kept))
    if left.member_id:
        member_id = left.member_id
        member_of = [
            group for group in left.groups if not await gone("membership", remove_member(client, group, member_id))
        ]
        left = evolve(left, groups=tuple(member_of))
    if left.password_on and await gone("password", _remove_password(client, left)):
        left = evolve(left, password_on="", password_name="", password_key_id="")
    now = await Now()
    if left.principal_id and await gone("principal", delete_principal(client, left.principal_id)):
        member_id = "" if left.member_id == left.principal_id else left.member_id
        left = evolve(_deleted(left, left.principal_id, now), principal_id="", member_id=member_id)
    if left.application_id:
        if await gone("application", delete_application(client, left.application_id)):
            left = evolve(_deleted(left, left.application_id, now), application_id="", unique_name="")
    elif left.unique_name and identified is not None:
        if settled:
            left = evolve(left, unique_name="")
        else:
            reasons.append(f"application: {UNSETTLED}")
    if not (left.member_id or left.unique_name or left.application_id):
        left = evolve(left, groups=())  # memberships end with their principal, as a principal with its application
    purge_settled = now >= left.deleted_at + client.settings.settle_time
    unpurged = [
        item for item in left.to_purge if not await gone("deleted object", purge(client, item), settled=purge_settled)
    ]
    return Removal(evolve(left, to_purge=tuple(unpurged)), tuple(reasons))


async def _identified(client: Client, provisioned: Provisioned) -> Provisioned:
    """The holdings with the ids of what may have been made without our seeing the answer."""
    if provisioned.unique_name and not provisioned.application_id:
        found = await application_by_unique_name(client, provisioned.unique_name)
        if found is not None:
            provisioned = evolve(provisioned, application_id=found.object_id, client_id=found.client_id)
    if provisioned.application_id and provisioned.client_id and not provisioned.principal_id:
        principal = await principal_of(client, provisioned.client_id) or ""
        provisioned = evolve(provisioned, principal_id=principal, member_id=provisioned.member_id or principal)
    return provisioned


def _deleted(provisioned: Provisioned, object_id: str, now: Instant) -> Provisioned:
    """The holdings after an object was moved to the deleted items."""
    if not provisioned.purge:
        return provisioned
    return evolve(provisioned, to_purge=(*provisioned.to_purge, object_id), deleted_at=now)


async def _remove_password(client: Client, provisioned: Provisioned) -> bool:
    """Remove a password by its key id, or whatever stands under its display name."""
    if provisioned.password_key_id:
        return await remove_password(client, provisioned.password_on, provisioned.password_key_id)
    application = await find_application(client, provisioned.password_on)
    if application is None:
        return False
    named = [p.key_id for p in application.passwords if p.display_name == provisioned.password_name]
    return any([await remove_password(client, provisioned.password_on, key_id) for key_id in named])
