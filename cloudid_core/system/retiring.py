"""The routes of retiring mounts: disabled mounts whose objects are still being removed from Azure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen
from msgspec.structs import replace

from ..auth_method import config as auth_config
from ..auth_method import routes as auth_routes
from ..errors import Code, Refused
from ..forms import BOOLEAN, Json, combined, parse, schemas, setting
from ..leases import Remains, drop_remains, try_at_once, what_remains
from ..messages import DELETE, LIST, READ, WRITE, Answer, Operation
from ..mounts import AUTH, SECRET, Mount, mount_table
from ..provider import Provisioned
from ..routing import PROVIDER, Call, RouteTable, reason_for, route
from ..secrets_engine import config as engine_config
from ..secrets_engine import routes as engine_routes
from ..values import rfc3339

MOST_NAMED: Final = 1000
"""Maximum number of dropped leases and intents in a response."""
CONFIG: Final = "config"
TABLES: Final[Mapping[str, RouteTable]] = {AUTH: auth_routes.ROUTES, SECRET: engine_routes.ROUTES}
"""The routes of mountable components, by kind."""


ConfigForm: Final = combined("ConfigForm", auth_config.Config, engine_config.ConfigForm)
"""The configuration of either kind of mount, so that policies can name its fields."""


@frozen(kw_only=True)
class DropForm:
    force: bool = setting(BOOLEAN, False, "Required, because remaining objects stay in Azure.")


RETIRING: Final = schemas.members(
    TEXT="accessor uuid path type",
    TIME="disabled_at",
    INTEGER="left leases intents roles damaged attempts",
    BOOLEAN="rotating",
    LIST="reasons",
    next_attempt=schemas.nullable(schemas.TIME),
)
OBJECTS: Final = schemas.members(
    {
        "TEXT": "application_object_id application_unique_name service_principal_id password_application_object_id"
        " password_key_id",
        "LIST": "role_assignments groups deleted_items",
    }
)
DROPPED: Final = schemas.members(
    INTEGER="lease_count intent_count",
    LIST="damaged",
    leases=schemas.list_of(schemas.joined(schemas.members(TEXT="lease_id"), OBJECTS)),
    intents=schemas.list_of(schemas.joined(schemas.members(TEXT="intent_id"), OBJECTS)),
)
CONFIG_OF_EITHER: Final = {"anyOf": [auth_config.CONFIG_MEMBERS, engine_config.CONFIG_MEMBERS]}


@route("retiring", LIST)
async def list_retiring(call: Call) -> Answer:
    """Lists retiring mounts by accessor."""
    retired = (await mount_table(call.context.records)).record.retired.values()
    accessors = [mount.accessor for mount in retired if (await what_remains(call.context, mount)).count]
    return Answer(data={"keys": accessors})


@route("retiring/:accessor", READ, RETIRING)
async def read_retiring(call: Call) -> Answer:
    """Reads what remains of a disabled mount in Azure, and why."""
    mount, remains = await _found(call)
    data: dict[str, Json] = {
        "accessor": mount.accessor,
        "uuid": mount.id,
        "path": f"{mount.path}/",
        "type": mount.type_alias or mount.type,
        "disabled_at": rfc3339.show(mount.retired_at or 0.0),
        "left": remains.count,
        "leases": remains.leases,
        "intents": remains.intents,
        "roles": remains.roles,
        "damaged": remains.damaged,
        "rotating": remains.is_rotating,
        "reasons": [reason_for(call.caller, mount, reason) for reason in remains.reasons],
        "attempts": remains.attempts,
        "next_attempt": None if remains.next_at is None else rfc3339.show(remains.next_at),
    }
    return Answer(data=data)


@route("retiring/:accessor", DELETE, DROPPED, refusals=(Code.LEASES_ALIVE, Code.NOT_FOUND), form=DropForm)
async def drop(call: Call) -> Answer:
    """Drops the records of what remains of a disabled mount, and lists them."""
    mount, remains = await _found(call)
    if not call.form(DropForm).force:
        counts = {"leases": remains.leases, "intents": remains.intents, "roles": remains.roles}
        left = ", ".join(f"{what}: {count}" for what, count in counts.items() if count) or "a rotation"
        raise Refused(Code.LEASES_ALIVE, f"{left}; force=true drops them")
    dropped = await drop_remains(call.context, mount, call.now, call.deadline)
    data: dict[str, Json] = {
        "lease_count": len(dropped.leases),
        "intent_count": len(dropped.intents),
        "leases": [{"lease_id": one.id, **objects(one.provisioned)} for one in dropped.leases[:MOST_NAMED]],
        "intents": [{"intent_id": one.id, **objects(one.provisioned)} for one in dropped.intents[:MOST_NAMED]],
        "damaged": dropped.damaged[:MOST_NAMED],
    }
    return Answer(data=data, warnings=("the objects of the dropped entries remain in Azure",), wake_at=call.now)


@route("retiring/:accessor/config", READ, CONFIG_OF_EITHER)
async def read_config(call: Call) -> Answer:
    """Reads the configuration of a disabled mount."""
    return await _on_config(call, READ)


@route(
    "retiring/:accessor/config",
    WRITE,
    refusals=(Code.NOT_FOUND, Code.LEASES_ALIVE, *PROVIDER),
    form=ConfigForm,
)
async def write_config(call: Call) -> Answer:
    """Changes the configuration of a disabled mount, for example its client secret.

    The removal of the remaining objects is then retried immediately.
    """
    answer = await _on_config(call, WRITE)
    mount, _ = await _found(call)
    await try_at_once(call.context, mount, call.now, call.deadline)
    return replace(answer, wake_at=call.now)


async def _on_config(call: Call, operation: Operation) -> Answer:
    """Run the mount's own route for its configuration."""
    mount, _ = await _found(call)
    found = TABLES[mount.kind].find(CONFIG, operation)
    if isinstance(found, Code):
        raise Refused(found)
    route, _captures = found
    exchange = replace(call.exchange, mount=mount, captures={})
    return await route.program(replace(call, exchange=exchange, given=parse(route.form, call.body)))


async def _found(call: Call) -> tuple[Mount, Remains]:
    table = (await mount_table(call.context.records)).record
    for mount in table.retired.values():
        if mount.accessor == call.captures["accessor"]:
            remains = await what_remains(call.context, mount)
            if remains.count:
                return mount, remains
    raise Refused(Code.NOT_FOUND)


def objects(provisioned: Provisioned) -> dict[str, Json]:
    """Return the objects in Azure by their ids there."""
    members = {
        "application_object_id": provisioned.application_id,
        "application_unique_name": provisioned.unique_name,
        "service_principal_id": provisioned.principal_id,
        "password_application_object_id": provisioned.password_on,
        "password_key_id": provisioned.password_key_id,
        "role_assignments": provisioned.assignments,
        **provisioned.memberships,
        "deleted_items": provisioned.to_purge,
    }
    return {name: value for name, value in members.items() if value}


ROUTES: Final = (list_retiring, read_retiring, drop, read_config, write_config)
