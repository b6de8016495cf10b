"""Service principals: the identity of an app registration in the tenant."""

from __future__ import annotations

from typing import Final

import msgspec

from ..errors import ProviderProblem
from .client import Client, ask
from .objects import Id, address, delete, directory_call, find_by_key, literal, select, upsert

TAKEN: Final = "Request_MultipleObjectsWithSameKeyValue"
"""The code if the service principal already exists. Its status used to be 400, and is now 409."""


class _Principal(msgspec.Struct):
    id: Id


async def ensure_principal(client: Client, client_id: str) -> str:
    """Return the object id of an app registration's service principal, and create it if it does not exist.

    Can be repeated.
    """
    body = {"appId": client_id}
    made = await upsert(client, "servicePrincipals", "appId", client_id, body, _Principal)
    if made is not None:
        return made.id
    call = directory_call(client, "POST", address(client, "servicePrincipals"), body)
    try:  # idempotent anyway, because an app registration has one service principal
        return (await ask(client, call, _Principal)).id
    except ProviderProblem as problem:
        taken = problem.status == 409 or problem.code == TAKEN
        if taken and (found := await principal_of(client, client_id)) is not None:
            return found
        raise


async def principal_of(client: Client, client_id: str) -> str | None:
    """Return the object id of an app registration's service principal. `None` if it is not visible."""
    found = await find_by_key(client, "servicePrincipals", "appId", client_id, _Principal)
    if found is not None:
        return found.id
    listed = await select(client, "servicePrincipals", f"appId eq {literal(client_id)}", _Principal)
    return listed[0].id if listed else None


async def delete_principal(client: Client, object_id: str) -> bool:
    """Move a service principal to the deleted items. Return `False` if it does not exist."""
    return await delete(client, address(client, "servicePrincipals", object_id))
