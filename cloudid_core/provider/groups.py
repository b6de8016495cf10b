"""Groups of Microsoft Entra ID, their members, and all groups of a principal."""

from __future__ import annotations

import msgspec

from ..errors import ProviderProblem
from .client import Client, ask
from .objects import Id, address, delete, directory_call, find, find_by_id, literal, select
from .responses import nonsense, unless


class _Link(msgspec.Struct):
    """A link between two objects, of which nothing is read."""


class _Ids(msgspec.Struct):
    value: list[str]
    next_link: str | None = msgspec.field(default=None, name="@odata.nextLink")
    """The response is complete, as documented: up to 11,000 ids, and an error if there are more."""


class Group(msgspec.Struct, rename="camel", frozen=True):
    id: Id
    display_name: str | None = None


async def find_group(client: Client, object_id: str) -> Group | None:
    return await find_by_id(client, "groups", object_id, Group)


async def groups_by_name(client: Client, name: str) -> list[Group]:
    """Return all groups with a display name, which need not be unique."""
    return await select(client, "groups", f"displayName eq {literal(name)}", Group)


async def add_member(client: Client, group_id: str, principal_id: str) -> None:
    """Add a principal to a group. Does nothing if it is already a member."""
    target = f"{address(client, 'groups', group_id, 'members')}/$ref"
    body = {"@odata.id": address(client, "directoryObjects", principal_id)}
    try:
        await client.call(directory_call(client, "POST", target, body))
    except ProviderProblem as problem:
        # What the directory says of a member, it also says of other mistakes.
        if problem.status != 400 or not await _is_member(client, group_id, principal_id):
            raise


async def remove_member(client: Client, group_id: str, principal_id: str) -> bool:
    """Remove a principal from a group. Return `False` if it is not a member, or the group does not exist."""
    try:
        return await delete(client, f"{address(client, 'groups', group_id, 'members', principal_id)}/$ref")
    except ProviderProblem as problem:
        # A membership that has just ended in another way is answered with 400 instead of 404.
        if problem.status != 400 or await _is_member(client, group_id, principal_id):
            raise
        return False


async def _is_member(client: Client, group_id: str, principal_id: str) -> bool:
    """Return whether a principal is a direct member. The permission to change members is enough to query this."""
    target = f"{address(client, 'groups', group_id, 'members', principal_id)}/$ref"
    return await find(client, target, _Link) is not None


async def member_groups_of(client: Client, principal_id: str) -> frozenset[str] | None:
    """Return the lowercase ids of all direct and indirect groups of a principal. `None` if it is unknown."""
    target = address(client, "directoryObjects", principal_id, "getMemberGroups")
    call = directory_call(client, "POST", target, {"securityEnabledOnly": False})  # a question: it changes nothing
    answer = await unless(lambda problem: problem.status == 404, ask(client, call, _Ids), None)
    if answer is None:
        return None
    if answer.next_link:
        raise nonsense()
    return frozenset(group.lower() for group in answer.value)
