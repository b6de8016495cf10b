"""The issuer's roles: for whom tokens of logins are, and what they say."""

from __future__ import annotations

from typing import Final

from attrs import evolve, frozen

from ..context import Context
from ..credentials import LONGEST_TOKEN, SHORTEST_TOKEN
from ..effects import RandomBytes
from ..errors import Code, Refused
from ..forms import IDENTIFIER, lasting, one_of, setting, show, shown_members
from ..messages import NOTHING, Answer
from ..mounts import IDENTITY
from ..routing import Call, capture_name
from ..store import Changes, Found, keys, retry_on_conflict
from .facts import FACTS, TEMPLATE

KEY: Final = "default"
"""The only key there is, by its name."""


@frozen(kw_only=True)
class Role:
    """A service that tokens are for."""

    client_id: str = setting(IDENTIFIER, "", "The audience of its tokens (`aud`). Empty: one is drawn.")
    ttl: int = setting(
        lasting(LONGEST_TOKEN, least=SHORTEST_TOKEN), 3600, "How long a token is valid; never longer than the login."
    )
    template: str = setting(
        TEMPLATE,
        "",
        "The claims of its tokens: a JSON object, plain or in base64, with `{{NAME}}` for a value. Empty: all that is "
        f"proven. Names: {', '.join(f'`{name}`' for name in FACTS)}.",
    )
    key: str = setting(one_of(KEY), KEY, "The key that signs: there is one for all roles.")


MEMBERS: Final = shown_members(Role)


async def find_role(context: Context, name: str) -> Found[Role] | None:
    return await context.records.find(keys.role(IDENTITY.id, name), Role)


@retry_on_conflict
async def write_role(call: Call) -> Answer:
    """Set the given fields. A damaged role is written anew."""
    key = keys.role(IDENTITY.id, capture_name(call))
    found, expects = await call.context.records.find_for_writing(key, Role)
    role = evolve(found.record if found else Role(), **call.given.values)
    if not role.client_id:
        role = evolve(role, client_id=(await RandomBytes(16)).hex())
    await call.context.records.commit(Changes(expects, {key: role}))
    return NOTHING


async def read_role(call: Call) -> Answer:
    found = await find_role(call.context, capture_name(call))
    if found is None:
        raise Refused(Code.NOT_FOUND)
    return Answer(data=show(found.record))


async def list_roles(call: Call) -> Answer:
    return Answer(data={"keys": await call.context.records.names(keys.roles(IDENTITY.id))})


async def delete_role(call: Call) -> Answer:
    """Delete a role; its tokens stay valid until they expire. Does nothing if there is none."""
    await call.context.records.update(keys.role(IDENTITY.id, capture_name(call)), Role, lambda _: None)
    return NOTHING


async def role_exists(call: Call) -> bool:
    return await call.context.records.has(keys.role(IDENTITY.id, capture_name(call)))
