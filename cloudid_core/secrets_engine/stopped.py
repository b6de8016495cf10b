"""Roles that no longer issue credentials under the current ceiling, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final, TypeVar

from attrs import define, field, frozen

from ..context import Context
from ..deadline import Deadline
from ..effects import Now, give_way
from ..errors import CloudidError
from ..forms import Json, schemas
from ..messages import READ, Answer
from ..mounts import SECRET, Mount
from ..provider import Client, Rights
from ..routing import Call, route
from ..store import keys
from .ceiling import Ceiling, exceeded
from .config import Config, find_config, in_use
from .limits import DENIED, ReadDefinition, last_read_definition
from .roles import Role, rights_of
from .static_roles import StaticRole

R = TypeVar("R", Role, StaticRole)
MOST_NAMED: Final = 1000
"""Maximum number of roles in a response."""
PAGE: Final = 100
"""How many roles are read before other programs get a turn."""
COMPARED_AT_ONCE: Final = 10
"""How many roles are compared with the ceiling before other programs get a turn. Each may have many grants."""
LOOK_SECONDS: Final = 5.0
"""How long a report that the caller did not request waits for Azure."""


@define
class Definitions:
    """Role definitions as last read. After a failure, Azure is not called again."""

    client: Client | None
    unread: set[str] = field(factory=set[str])

    async def find(self, definition_id: str) -> ReadDefinition | None:
        """`None`: it could not be read."""
        if self.client is not None and not self.unread:
            try:
                return await last_read_definition(self.client, definition_id)
            except CloudidError:
                pass
        self.unread.add(definition_id)
        return None


@frozen
class Stopped:
    """The stopped roles, by their paths below the mount, with the reasons for each."""

    roles: Mapping[str, tuple[str, ...]]
    unread: int
    """Number of role definitions that could not be read. A role may have one that is denied."""


async def find_stopped(context: Context, mount: Mount, deadline: Deadline) -> Stopped:
    """Compare the stored roles of both types with the stored ceiling. Failures of Azure are part of the result."""
    stored = await find_config(context, mount)
    ceiling: Ceiling = stored.record if stored else Config()
    definitions = Definitions(await _client(context, mount, deadline) if ceiling.deny_privileged_roles else None)
    stopped: dict[str, tuple[str, ...]] = {}
    rights = await _rights(context, keys.roles(mount.id), Role, rights_of)
    static = await _rights(context, keys.static_roles(mount.id), StaticRole, lambda role: role.rights)
    named = {f"roles/{name}": each for name, each in rights.items()}
    named |= {f"static-roles/{name}": each for name, each in static.items()}
    for number, (path, each) in enumerate(named.items()):
        if number % COMPARED_AT_ONCE == 0:
            await give_way()
        reasons = [problem.detail for problem in exceeded(ceiling, each)]
        if ceiling.deny_privileged_roles:
            reasons += await _denied(definitions, each)
        if reasons:
            stopped[path] = tuple(reasons)
    return Stopped(stopped, len(definitions.unread))


async def newly_denied(context: Context, mount: Mount) -> list[str]:
    """Return the roles that `deny_privileged_roles` refuses only since it covers taking over identities."""
    stored = await find_config(context, mount)
    if stored is None or not stored.record.deny_privileged_roles:
        return []
    definitions = Definitions(await _client(context, mount, Deadline(await Now() + LOOK_SECONDS)))
    rights = await _rights(context, keys.roles(mount.id), Role, rights_of)
    denied = []
    for name, each in rights.items():
        found = [await definitions.find(definition) for _, definition in each.assignments]
        if any(definition is not None and definition.is_newly_privileged for definition in found):
            denied.append(name)
    return denied


async def kept_applications(context: Context, mount: Mount) -> dict[str, str]:
    """Return the client ids of app registrations that roles with `persist_app` own, by role name."""
    if mount.kind != SECRET:
        return {}
    rights = await _rights(context, keys.roles(mount.id), Role, rights_of)
    return {name: each.client_id for name, each in rights.items() if each.client_id and not each.application_id}


async def count_stopped(context: Context, mount: Mount, deadline: Deadline) -> int:
    """Return how many roles are stopped, as far as that is known within a few seconds."""
    latest = min(deadline.at, await Now() + LOOK_SECONDS)
    return len((await find_stopped(context, mount, Deadline(latest))).roles)


@route("ceiling", READ, schemas.members(stopped=schemas.each(schemas.LIST), INTEGER="count"))
async def stopped_by_ceiling(call: Call) -> Answer:
    """Lists the roles and static roles that the current ceiling stops, and why.

    Role definitions are used as they were read in the last minutes, and are otherwise read now.
    """
    stopped = await find_stopped(call.context, call.mount, call.deadline)
    unread = f"role definitions that could not be read, so roles with them may be missing: {stopped.unread}"
    named: dict[str, Json] = {path: list(reasons) for path, reasons in islice(stopped.roles.items(), MOST_NAMED)}
    return Answer(data={"stopped": named, "count": len(stopped.roles)}, warnings=(unread,) if stopped.unread else ())


async def _client(context: Context, mount: Mount, deadline: Deadline) -> Client | None:
    try:
        return (await in_use(context, mount, deadline))[1]
    except CloudidError:
        return None


async def _rights(context: Context, prefix: str, form: type[R], rights: Callable[[R], Rights]) -> dict[str, Rights]:
    """Return the rights of all undamaged roles below a prefix, by their names."""
    names, found = await context.records.names(prefix), dict[str, Rights]()
    for start in range(0, len(names), PAGE):
        page = [f"{prefix}{name}" for name in names[start : start + PAGE]]
        for each in await context.records.find_undamaged(page, form):
            found[each.key.removeprefix(prefix)] = rights(each.record)
        await give_way()
    return found


async def _denied(definitions: Definitions, rights: Rights) -> list[str]:
    """Return why `deny_privileged_roles` refuses a role."""
    reasons = []
    for number, (_, definition_id) in enumerate(rights.assignments):
        definition = await definitions.find(definition_id)
        if definition is not None and definition.is_privileged:
            reasons.append(DENIED.format(number=number))
    return reasons
