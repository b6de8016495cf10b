"""The roles of an authentication method: which logins they admit, and what tokens they give."""

from __future__ import annotations

from functools import cached_property
from typing import Final

from attrs import frozen

from ..context import Context
from ..effects import give_way
from ..errors import Code, Problem, Refused
from ..forms import (
    BOOLEAN,
    GUIDS,
    IDENTIFIERS,
    IDENTITY_IDS,
    SECONDS,
    Json,
    Terms,
    fields_of,
    schemas,
    setting,
    show,
    shown_members,
    some_of,
)
from ..mounts import Mount
from ..routing import Call, NamedRecords
from ..store import Found, keys
from ..tokens import TokenSettings, merged
from ..tokens import check as check_token_settings
from ..values import fold
from . import bounds
from .bounds import Bounds, require_rows
from .checks import ANY
from .claims import APP, TOKEN_TYPES


@frozen(kw_only=True, slots=False)  # slots and cached properties take a `__getattr__`, which slows all down
class Role(TokenSettings):
    """Every list that is set must match; within a list any one entry. Case never matters."""

    bound_service_principal_ids: tuple[str, ...] = setting(
        IDENTIFIERS,
        (),
        'Object ids of service principals. `"*"` as the only entry: any service principal of the tenant.',
    )
    bound_group_ids: tuple[str, ...] = setting(IDENTIFIERS, (), "Object ids of groups.")
    bound_identity_ids: tuple[str, ...] = setting(
        IDENTITY_IDS, (), "Resource ids of user-assigned identities, as in the token's claim `xms_mirid`."
    )
    bound_locations: tuple[str, ...] = setting(IDENTIFIERS, (), "Locations. Spaces are ignored.")
    bound_subscription_ids: tuple[str, ...] = setting(IDENTIFIERS, (), "Subscription ids.")
    bound_vm_ids: tuple[str, ...] = setting(
        GUIDS,
        (),
        "The `vmId` (a GUID) of virtual machines. A machine that is deleted and recreated has a different one.",
    )
    bound_resource_groups: tuple[str, ...] = setting(IDENTIFIERS, (), "Names of resource groups.")
    bound_scale_sets: tuple[str, ...] = setting(IDENTIFIERS, (), "Names of scale sets.")
    bound_token_types: tuple[str, ...] = setting(
        some_of(*TOKEN_TYPES),
        (APP,),
        "Types of JWTs: of workloads (`app`) or people (`user`). This does not count as a bound constraint by itself.",
    )
    max_jwt_exp: int = setting(SECONDS, 0, "Maximum remaining lifetime of a JWT (its `exp`). 0: no limit.")

    recheck_on_renewal: bool = setting(
        BOOLEAN,
        False,
        "Renew a token only while the machine exists, has the identity and matches the bounds. If this "
        "cannot be determined, the token is renewed.",
    )

    unknown_bounds: tuple[str, ...] = ()
    """The bounds of the stored role that a later version made and this one does not know. It cannot judge a login then,
    nor write the role without losing them."""

    @cached_property
    def bounds(self) -> Bounds:
        return Bounds.of(self)


require_rows(Role)
MEMBERS: Final = schemas.joined(shown_members(Role, old_names=True), schemas.members(INTEGER="max_ttl"))
LISTS: Final = tuple(
    field.name for field in fields_of(Role) if field.name in bounds.LISTS and bounds.LISTS[field.name].suffices
)
"""The names of all lists of which a role needs at least one."""


MOST_EXAMINED: Final = 1000
"""How many roles are read to find the subscriptions that they bind."""

MOST_BOUND: Final = 10_000
"""After so many subscriptions no further role is read."""


def check(role: Role) -> None:
    """Refuse a role that admits every login by accident, or that has a wildcard where none is known."""
    lists: dict[str, tuple[str, ...]] = {name: getattr(role, name) for name in LISTS}
    wrong = [f'"{name}" must not hold empty entries' for name, entries in lists.items() if not all(entries)]
    for name, entries in lists.items():
        is_any = name == "bound_service_principal_ids" and entries == ANY
        if not is_any and any("*" in entry for entry in entries):
            wrong.append(f'"{name}": "*" is allowed only as the single entry')
    problems = [Problem(Code.FIELD_INVALID, detail) for detail in wrong]
    if not any(lists.values()):
        problems.append(Problem(Code.ROLE_UNBOUND))
    if problems:
        raise Refused.because(problems)


async def find_role(context: Context, mount: Mount, name: str) -> Found[Role] | None:
    """Return a role in its normal form."""
    found = await context.records.find(keys.role(mount.id, name), Role)
    return found.with_record(found.record.normal) if found else None


async def _changed(call: Call, role: Role) -> tuple[Role, tuple[str, ...]]:
    if role.unknown_bounds:
        raise Refused(Code.ROLE_NEWER_THAN_NODE)
    role = merged(role, call.given)
    check(role)
    return role, check_token_settings(role, call.mount, call.context.settings)


def _shown(name: str, role: Role) -> dict[str, Json]:
    shown = show(role, spelled_old=role.spelled_old)
    return {**shown, "max_ttl": shown["token_max_ttl"]}


ROLES: Final = NamedRecords(path="role", form=Role, changed=_changed, shown=_shown, members=MEMBERS)


async def bound_scopes(call: Call) -> set[str]:
    """Return the subscriptions that roles bind, as scopes."""
    scopes: set[str] = set()
    for name in (await call.context.records.names(keys.roles(call.mount.id)))[:MOST_EXAMINED]:
        for role in await call.context.records.find_undamaged([keys.role(call.mount.id, name)], Role):
            scopes.update(f"/subscriptions/{fold(each)}" for each in role.record.bound_subscription_ids)
        if len(scopes) > MOST_BOUND:
            break
        await give_way()
    return scopes


async def token_terms(context: Context, mount: Mount, role: str) -> Found[Terms] | None:
    """Return the current limits of the tokens of a role. `None`: the role was deleted."""
    found = await find_role(context, mount, role)
    return found.with_record(found.record.terms(mount, context.settings)) if found else None
