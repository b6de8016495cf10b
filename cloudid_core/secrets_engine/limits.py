"""Whether credentials may still be issued: one decision for issue, renewal, rotation and access tokens.

It judges the rights that credentials have, not those in their role, because a role can be rewritten while a lease is
valid.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from attrs import frozen

from ..context import Context
from ..effects import Instant, Now
from ..errors import Code, Refused
from ..provider import Application, Client, Rights, assignments, lending
from ..store import NO_CHANGES, Changes
from ..values import fold, have_common
from .ceiling import Ceiling, check_ceiling

HANDS_OUT_RIGHTS: Final = ("Microsoft.Authorization/*/write",)
"""Actions that grant rights to others. A role definition that allows everything includes them."""

TAKES_OVER_IDENTITIES: Final = (
    "Microsoft.Authorization/elevateAccess/action",  # makes the caller User Access Administrator at the root
    "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/write",  # trusts an issuer's tokens
    "Microsoft.ManagedIdentity/userAssignedIdentities/*assign/action",  # gives an identity to a resource
    # Code on a machine gets the tokens of the machine's identities.
    "Microsoft.Compute/virtualMachines/runCommand/action",
    "Microsoft.Compute/virtualMachines/runCommands/write",
    "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/runCommand/action",
    "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/runCommands/write",
    "Microsoft.Compute/virtualMachines/extensions/write",
    "Microsoft.Compute/virtualMachineScaleSets/extensions/write",
    "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/extensions/write",
    "Microsoft.HybridCompute/machines/extensions/write",
    "Microsoft.HybridCompute/machines/runCommands/write",
)
"""Actions that give the caller another identity with its rights.

Source: https://learn.microsoft.com/azure/role-based-access-control/resource-provider-operations, with the providers
Microsoft.Authorization, Microsoft.ManagedIdentity, Microsoft.Compute and Microsoft.HybridCompute. The built-in role
Managed Identity Operator writes `userAssignedIdentities/*/assign/action`, so the pattern covers that spelling as well
as the operation's name.
"""

DENIED: Final = '"azure_roles", element {number}: "deny_privileged_roles" refuses the role'
LONGEST_KNOWN: Final = 300.0
"""Seconds for which reports use a cached role definition. Decisions always read it again."""


@frozen
class ReadDefinition:
    """A role definition as it was last read. Without actions: Azure has none with this id."""

    actions: tuple[str, ...] | None
    read_at: Instant

    @property
    def is_privileged(self) -> bool:
        return self.actions is None or any(map(is_privileged, self.actions))

    @property
    def is_newly_privileged(self) -> bool:
        """Return whether it only takes over identities, which earlier releases did not refuse."""
        actions = self.actions or ()
        return _allows_any(actions, TAKES_OVER_IDENTITIES) and not _allows_any(actions, HANDS_OUT_RIGHTS)


async def may_issue(context: Context, ceiling: Ceiling, client: Client, rights: Rights) -> Changes:
    """Refuse credentials with more rights than a configuration allows; `client` belongs to the configuration.

    Return what their commit must expect besides the configuration. `SELF_TARGET`: they belong to an app registration
    with which the service authenticates. `CEILING_EXCEEDED`: they exceed the ceiling, or have a privileged role
    definition that it denies.
    """
    grounds = await lending(context.records, rights.client_id) if rights.client_id else NO_CHANGES
    check_ceiling(ceiling, rights)
    if ceiling.deny_privileged_roles:
        await _refuse_privileged(client, (definition for _, definition in rights.assignments))
    return grounds


def refuse_kept(context: Context, application: Application) -> None:
    """Refuse with `APPLICATION_KEPT` an existing app registration that this service has created.

    It has the rights of the role or lease to which it belongs. A ceiling compares the rights in a role, not those that
    an existing app registration already has.
    """
    names = (application.display_name, application.unique_name)
    if any(name.startswith(context.marker_prefix) for name in names):
        raise Refused(Code.APPLICATION_KEPT, '"application_object_id"')


async def _refuse_privileged(client: Client, definition_ids: Iterable[str]) -> None:
    """Check each role definition once: a role may assign the same one at many scopes, and Azure limits reads."""
    read: dict[str, ReadDefinition] = {}
    for number, definition_id in enumerate(definition_ids):
        key = fold(definition_id)
        definition = read[key] = read.get(key) or await _read_definition(client, definition_id)
        if definition.actions is None:
            raise Refused(Code.REFERENCE_NOT_FOUND, f'"azure_roles", element {number}')
        if definition.is_privileged:
            raise Refused(Code.CEILING_EXCEEDED, DENIED.format(number=number))


async def last_read_definition(client: Client, definition_id: str) -> ReadDefinition:
    """Return a role definition for a report: from the last minutes, otherwise read now."""
    known: ReadDefinition | None = client.caches.role_definitions.get(_cache_key(client, definition_id))
    if known is not None and 0 <= await Now() - known.read_at < LONGEST_KNOWN:
        return known
    return await _read_definition(client, definition_id)


async def _read_definition(client: Client, definition_id: str) -> ReadDefinition:
    definition = await assignments.definition_by_id(client, definition_id)
    read = ReadDefinition(definition.actions if definition else None, await Now())
    client.caches.role_definitions.put(_cache_key(client, definition_id), read)
    return read


def _cache_key(client: Client, definition_id: str) -> tuple[str, str]:
    return client.owner, fold(definition_id)


def is_privileged(pattern: str) -> bool:
    """Return whether an action of a role definition, in which `*` matches any text, may be privileged."""
    return _allows_any((pattern,), (*HANDS_OUT_RIGHTS, *TAKES_OVER_IDENTITIES))


def _allows_any(patterns: Iterable[str], actions: tuple[str, ...]) -> bool:
    return any(have_common(fold(pattern), fold(action)) for pattern in patterns for action in actions)
