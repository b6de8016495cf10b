"""Cases for the decision: claims, facts, bounds and forms that fit each other, to be changed one by one."""

from __future__ import annotations

import json
from typing import Any, Final

from cloudid_core.auth_method.bounds import Bounds
from cloudid_core.auth_method.checks import TOKEN_CHECKS
from cloudid_core.auth_method.claims import Claims, read
from cloudid_core.auth_method.decision import NO_FACTS, Case, Facts, Needs, Trust, Verified, admit, plan_of, run
from cloudid_core.auth_method.form import LoginForm
from cloudid_core.auth_method.roles import Role
from cloudid_core.errors import Code, Refused
from cloudid_core.provider.compute import Machine
from cloudid_core.values import resource_id
from cloudid_core.values.folding import fold_location

from .minting import PRINCIPAL, RESOURCE_GROUP, SUBSCRIPTION, VM, new_caches, said

LISTS: Final = (
    "bound_service_principal_ids",
    "bound_group_ids",
    "bound_identity_ids",
    "bound_locations",
    "bound_subscription_ids",
    "bound_resource_groups",
    "bound_scale_sets",
    "bound_vm_ids",
)


def bounds(**lists: Any) -> Bounds:
    return Role(**lists).bounds


def claims(**changes: Any) -> Claims:
    return read(json.dumps(said(**changes)).encode(), new_caches())


def form(**changes: str) -> LoginForm:
    given = {"role": "web", "jwt": "jwt", "subscription_id": SUBSCRIPTION, "resource_group_name": RESOURCE_GROUP}
    return LoginForm(**{**given, **changes})


def machine(
    principals: tuple[str, ...] = (PRINCIPAL,),
    at: str = "West US 2",
    scale_set: str = "",
    named: str = VM,
    vm_id: str = "",
) -> Machine:
    """What the provider says of a machine, in the shape that its adapter gives it."""
    return Machine(
        resource_id=resource_id.parse(named),
        location=fold_location(at),
        principals=frozenset(principal.lower() for principal in principals),
        scale_set=scale_set,
        vm_id=vm_id,
    )


def decide(
    claims: Claims, facts: Facts, bounds: Bounds, form: LoginForm, machine_check: str = "always"
) -> Verified | Needs:
    """What is decided of a login whose token is accepted."""
    case = Case(claims, Trust("", "", frozenset(), 0.0, machine_check), bounds=bounds, form=form, facts=facts)
    return admit(plan_of(case), case)


def check_claims(
    claims: Claims, *, now: float, leeway: float, audience: str, issuers: frozenset[str], tenant_id: str
) -> None:
    """Refuse a token that a mount does not accept."""
    run(TOKEN_CHECKS, Case(claims, Trust(audience, tenant_id, issuers, leeway), now))


def check_lifetime(claims: Claims, now: float, max_jwt_exp: float) -> None:
    """Refuse a token that is valid for longer than a role allows."""
    case = Case(claims, now=now, bounds=bounds(max_jwt_exp=max_jwt_exp))
    run(plan_of(case).by_source, case)


def outcome(
    claims: Claims, facts: Facts = NO_FACTS, *, role: Bounds, login: LoginForm, machine_check: str = "always"
) -> Verified | Needs | Code:
    """What is decided, or the code of the refusal."""
    try:
        return decide(claims, facts, role, login, machine_check)
    except Refused as refusal:
        return refusal.code
