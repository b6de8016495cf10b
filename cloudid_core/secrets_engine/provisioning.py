"""Create the objects of credentials in Azure: first plan them with chosen ids, then create them one after the other.

A plan is complete before the first call, so that the journal can store it. Creating the objects is idempotent, except
for the client secret: if its response was lost, it is removed, and another one is added.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from attrs import evolve, frozen

from ..effects import Instant, Now, RandomBytes
from ..provider import (
    MEMBERSHIPS,
    SINGLE_TENANT,
    Client,
    Description,
    FreshObject,
    NewPassword,
    Provisioned,
    assign,
    assignment_path,
    ensure_application,
    ensure_principal,
    make_password,
    retry_while_propagating,
)
from ..values import fold, uuid_text
from .grants import RoleGrant

_PROVIDER_SPELLINGS: Final[Mapping[str, str]] = {
    "CloudADMyOrg": "AzureADMyOrg",
    "CloudADMultipleOrgs": "AzureADMultipleOrgs",
    "CloudADandPersonalVendorAccount": "AzureADandPersonalMicrosoftAccount",
    "PersonalVendorAccount": "PersonalMicrosoftAccount",
}
SIGN_IN_AUDIENCES: Final = (*_PROVIDER_SPELLINGS, *_PROVIDER_SPELLINGS.values())
"""Both spellings are accepted, and are returned as written."""
UUID_BYTES: Final = 16


def provider_spelling(audience: str) -> str:
    """Return an audience as Azure spells it. Empty means only the own tenant."""
    return _PROVIDER_SPELLINGS.get(audience, audience) or SINGLE_TENANT


@frozen(kw_only=True)
class PlannedAssignment:
    """A role assignment with an id that cloudid chose, or with that of someone else who created it."""

    path: str
    role_id: str
    scope: str
    is_foreign: bool = False
    """Whether someone else created it."""


async def plan_assignments(grants: tuple[RoleGrant, ...]) -> tuple[PlannedAssignment, ...]:
    """Return role assignments with new ids."""
    random = await RandomBytes(UUID_BYTES * len(grants)) if grants else b""
    return tuple(
        PlannedAssignment(
            path=assignment_path(one.scope, uuid_text(random[UUID_BYTES * number : UUID_BYTES * (number + 1)])),
            role_id=one.role_id,
            scope=one.scope,
        )
        for number, one in enumerate(grants)
    )


def paths_of(planned: tuple[PlannedAssignment, ...]) -> tuple[str, ...]:
    return tuple(one.path for one in planned)


async def make_application(client: Client, provisioned: Provisioned, description: Description) -> Provisioned:
    """Create an app registration under its unique name, and its service principal. Return both with their ids."""
    application = await ensure_application(client, provisioned.unique_name, description)
    principal = await retry_while_propagating(
        client,
        lambda: ensure_principal(client, application.client_id),
        family=FreshObject.PRINCIPAL,
        made_at=await Now(),
    )
    return evolve(
        provisioned,
        application_id=application.object_id,
        client_id=application.client_id,
        audience=description.sign_in_audience,
        principal_id=principal,
        member_id=principal,
    )


async def grant(
    client: Client,
    principal_id: str,
    planned: tuple[PlannedAssignment, ...],
    memberships: Mapping[str, tuple[str, ...]],
) -> tuple[PlannedAssignment, ...]:
    """Assign roles and memberships to a service principal, which may be new.

    Return its assignments: those that already existed have their own paths.
    """
    made_at = await Now()
    granted = []
    for wanted in planned:
        make = partial(assign, client, wanted.path, wanted.role_id, principal_id)
        path = await retry_while_propagating(client, make, family=FreshObject.ASSIGNMENT, made_at=made_at)
        is_made_here = fold(path) == fold(wanted.path)
        granted.append(wanted if is_made_here else evolve(wanted, path=path, is_foreign=True))
    for kind, ids in memberships.items():
        for one in ids:
            attempt = partial(MEMBERSHIPS[kind].add, client, one, principal_id)
            await retry_while_propagating(client, attempt, family=MEMBERSHIPS[kind].family, made_at=made_at)
    return tuple(granted)


def foreign_warnings(granted: tuple[PlannedAssignment, ...]) -> tuple[str, ...]:
    """Return warnings about assignments that someone else created.

    cloudid does not remove them before the service principal.
    """
    return tuple(
        f"a role assignment at {one.scope} was created by someone else, and exists as long as the service principal"
        for one in granted
        if one.is_foreign
    )


async def add_password_to(
    client: Client, application_id: str, name: str, ends_at: Instant, family: FreshObject
) -> NewPassword:
    """Add a client secret to an app registration, valid from now on. `family` defines which errors are retried.

    A tenant may limit its validity, so the start is not set back for slow clocks.
    """
    now = await Now()
    attempt = partial(make_password, client, application_id, name=name, starts_at=now, ends_at=ends_at)
    return await retry_while_propagating(client, attempt, family=family, made_at=now)
