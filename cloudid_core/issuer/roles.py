"""The issuer's roles: for whom tokens of logins are, and what they say."""

from __future__ import annotations

from typing import Final

from attrs import evolve, frozen

from ..context import Context
from ..credentials import LONGEST_TOKEN, SHORTEST_TOKEN
from ..effects import RandomBytes
from ..forms import IDENTIFIER, lasting, one_of, setting, show, shown_members
from ..mounts import IDENTITY
from ..routing import Call, NamedRecords
from ..store import Found, keys
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


async def find_role(context: Context, name: str) -> Found[Role] | None:
    return await context.records.find(keys.role(IDENTITY.id, name), Role)


async def _changed(call: Call, role: Role) -> tuple[Role, tuple[str, ...]]:
    role = evolve(role, **call.given.values)
    return (role if role.client_id else evolve(role, client_id=(await RandomBytes(16)).hex())), ()


ROLES: Final = NamedRecords(
    path="oidc/role", form=Role, changed=_changed, shown=lambda name, role: show(role), members=shown_members(Role)
)
