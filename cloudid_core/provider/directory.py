"""The directory: groups of a principal, asked of the provider's directory service."""

from __future__ import annotations

from typing import Final

import msgspec

from .client import ApiCall, Client, ask
from .responses import nonsense, unless
from .urls import url

VERSION: Final = "v1.0"


class _Ids(msgspec.Struct):
    value: list[str]
    next_link: str | None = msgspec.field(default=None, name="@odata.nextLink")
    """This answer is whole, as documented: up to 11,000 ids, and an error where there are more."""


async def member_groups_of(client: Client, principal_id: str) -> frozenset[str] | None:
    """The ids, in lower case, of all groups that a principal is a member of, directly or through other groups; `None`
    if the directory does not know the principal.
    """
    call = ApiCall(
        method="POST",  # a question all the same: it changes nothing
        url=url(client.cloud.directory, VERSION, "directoryObjects", principal_id, "getMemberGroups"),
        scope=client.cloud.directory_scope,
        body={"securityEnabledOnly": False},
    )
    answer = await unless(lambda problem: problem.status == 404, ask(client, call, _Ids), None)
    if answer is None:
        return None
    if answer.next_link:
        raise nonsense()
    return frozenset(group.lower() for group in answer.value)
