"""Compute: look up a machine's location, identities and scale set in Azure."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from sys import intern
from typing import Final, TypeVar

import msgspec
from attrs import frozen

from ..effects import gather
from ..errors import Code, ProviderProblem
from ..values import SCALE_SET, USER_ASSIGNED_IDENTITY, VIRTUAL_MACHINE, ResourceId, fold, fold_location, parse
from .api_versions import api_version
from .client import Client, get_json, page, refusal_of
from .responses import nonsense

T = TypeVar("T")

MOST_IDENTITIES: Final = 256
"""Maximum number of a machine's identities that are looked up, `AT_ONCE` of them concurrently."""

AT_ONCE: Final = 8


@frozen(kw_only=True)
class Machine:
    """A machine as Azure shows it: a virtual machine, a uniform scale set, or any resource with identities.

    The location is folded; principals are object ids in lower case. `scale_set` is the name of the set to which the
    machine belongs, or which it is; "" if none. `vm_id` is the `vmId` of a virtual machine in lower case, which the
    platform generates and never reuses; "" for anything else. `unread` is the refusal for an identity that could not be
    read: its principal is missing in `principals`.
    """

    resource_id: ResourceId
    location: str
    principals: frozenset[str]
    scale_set: str = ""
    vm_id: str = ""
    unread: Code | None = None


class _UserAssigned(msgspec.Struct, rename="camel"):
    principal_id: str | None = None


class _Identity(msgspec.Struct, rename="camel"):
    principal_id: str | None = None
    user_assigned_identities: dict[str, _UserAssigned | None] | None = None


class _Resource(msgspec.Struct, rename="camel"):
    location: str | None = None
    identity: _Identity | None = None


class _Reference(msgspec.Struct):
    id: str


class _VirtualMachineProperties(msgspec.Struct, rename="camel"):
    virtual_machine_scale_set: _Reference | None = None
    vm_id: str | None = None


class _VirtualMachine(_Resource):
    properties: _VirtualMachineProperties | None = None


class _Listed(_VirtualMachine, kw_only=True):
    id: str


class _IdentityResource(msgspec.Struct):
    properties: _UserAssigned | None = None


async def find_machine(client: Client, resource_id: ResourceId) -> Machine | None:
    """Look up a machine in Azure. `None` if Azure answers 404, whose code depends on the type of resource."""
    form = _VirtualMachine if resource_id.is_a(VIRTUAL_MACHINE) else _Resource
    document = await _find(client, resource_id, form)
    if document is None:
        return None
    shown, named = _identities(document)
    found: list[str | Code | None] = [*shown]
    for start in range(0, len(named), AT_ONCE):
        found += await gather([_look_up_identity(client, each) for each in named[start : start + AT_ONCE]])
    return _machine(resource_id, document, [each for each in found if each])


async def machines_page(client: Client, url: str) -> tuple[list[Machine], str]:
    """Return the machines on a page of a list, and the URL of the next page, empty after the last one.

    Machines for which the list is not enough are omitted: those with an identity that the list only names.
    """
    documents, following = await page(client, url, client.cloud.resource_scope, _Listed)
    return [machine for document in documents if (machine := _listed(document))], following


def _listed(document: _Listed) -> Machine | None:
    try:
        resource_id = parse(document.id)
        shown, named = _identities(document)
        return None if named else _machine(resource_id, document, shown)
    except (ValueError, ProviderProblem):
        return None


def _machine(resource_id: ResourceId, document: _Resource, identities: Sequence[str | Code]) -> Machine:
    properties = _VirtualMachineProperties()
    if resource_id.is_a(VIRTUAL_MACHINE) and isinstance(document, _VirtualMachine):
        properties = document.properties or properties
    scale_set = resource_id.name if resource_id.is_a(SCALE_SET) else ""
    if properties.virtual_machine_scale_set:
        scale_set = _reference(properties.virtual_machine_scale_set.id, SCALE_SET).name
    return Machine(
        resource_id=resource_id,
        location=intern(fold_location(document.location or "")),
        principals=frozenset(found.lower() for found in identities if isinstance(found, str)),
        scale_set=scale_set,
        vm_id=fold(properties.vm_id or ""),
        unread=next((found for found in identities if isinstance(found, Code)), None),
    )


async def _find(client: Client, resource_id: ResourceId, form: type[T]) -> T | None:
    """Return the document of a resource in the API version of its type. `None` if there is no such resource."""
    try:
        version = await api_version(client, resource_id)
        address = f"{client.cloud.resource_manager}{resource_id.path}?api-version={version}"
        return await get_json(client, address, client.cloud.resource_scope, form)
    except ProviderProblem as problem:
        if problem.status == 404:
            return None
        raise


def _identities(document: _Resource) -> tuple[list[str], list[str]]:
    """Return the principals in a machine's document, and the identities of which it has only the ids.

    Flexible scale sets have such identities.
    """
    identity = document.identity or _Identity()
    shown: list[str] = [identity.principal_id] if identity.principal_id else []
    named: list[str] = []
    for name, assigned in (identity.user_assigned_identities or {}).items():
        if assigned is not None and assigned.principal_id:
            shown.append(assigned.principal_id)
        else:
            named.append(name)
    if len(named) > MOST_IDENTITIES:
        raise nonsense()
    return shown, named


async def _look_up_identity(client: Client, name: str) -> str | Code | None:
    """Return the principal of an identity, or the refusal if it cannot be read.

    `None` if it has no principal or was deleted.
    """
    try:
        document = await _find(client, _reference(name, USER_ASSIGNED_IDENTITY), _IdentityResource)
    except ProviderProblem as problem:
        return refusal_of(problem).code
    return document.properties.principal_id if document and document.properties else None


def _reference(text: str, kind: str) -> ResourceId:
    """Return a resource id from Azure, which must have a given type."""
    with suppress(ValueError):
        if (resource_id := parse(text)).is_a(kind):
            return resource_id
    raise nonsense()
