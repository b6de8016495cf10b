"""The decision: whether a role admits a login, as one pure function over (claims, facts, role, form).

It is a list of checks in two halves. The first needs nothing but what the token, the role and the form say; the second
also needs facts that only the provider knows. The first check that fails names the refusal. (What a check does with its
failure is its caller's choice: `decide` raises, another caller may go on and collect all of them.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NoReturn, TypeAlias

import msgspec
from attrs import frozen

from ..errors import Code, Refused
from ..provider.compute import Machine
from ..values.folding import fold
from .bounds import Bounds
from .claims import Claims
from .form import LoginForm


class NotAsked(Enum):
    NOT_ASKED = "not asked"


NOT_ASKED: Final = NotAsked.NOT_ASKED


@frozen
class Facts:
    """What the provider says. `None`: it does not know the machine, or cannot tell the groups."""

    machine: Machine | NotAsked | None = NOT_ASKED
    groups: frozenset[str] | NotAsked | None = NOT_ASKED
    """Ids of the principal's groups, in lower case."""


NO_FACTS: Final = Facts()


@frozen
class Needs:
    """The facts that a decision still needs."""

    machine: bool
    groups: bool


class Verified(msgspec.Struct, frozen=True, gc=False):
    """A login that is admitted, and what was proven on the way."""

    claims: Claims
    machine: Machine | None
    """The provider's word on the machine, if it was asked."""

    @property
    def metadata(self) -> Mapping[str, str]:
        """The facts that the token's signature or the provider vouches for; nothing that the form alone says."""
        claims, machine = self.claims, self.machine
        verified = {"app_id": claims.app_id}
        if claims.machine_id:
            _, _, subscription, _, resource_group, *_, name = claims.machine_id.split("/")
            is_other = not (claims.is_virtual_machine or claims.is_scale_set)
            verified |= {
                "subscription_id": subscription,
                "resource_group_name": resource_group,
                "vm_name": name if claims.is_virtual_machine else "",
                "vmss_name": name if claims.is_scale_set else machine.scale_set if machine else "",
                "resource_id": claims.machine_id if is_other else "",
                "location": machine.location if machine else "",
            }
        return {name: value for name, value in verified.items() if value}


def decide(claims: Claims, facts: Facts, bounds: Bounds, form: LoginForm, machine_check: str) -> Verified | Needs:
    """Admit the login, refuse it with the code of the first check that fails, or tell which facts are needed for that.

    A login that can be refused without facts never needs any. `machine_check` is "always" (the provider confirms every
    machine of a role that binds resources) or "needed" (only where the token cannot prove what is bound). Time,
    audience and issuer of the token are `check_claims`'s.
    """
    check_what_is_signed(claims, bounds, form, _refuse)
    machine = facts.machine
    needs_machine = machine is NOT_ASKED and _rests_on_machine(claims, bounds, form, machine_check)
    needs_groups = claims.groups_overflow and facts.groups is NOT_ASKED and bool(bounds.groups)
    if needs_machine or needs_groups:
        return Needs(needs_machine, needs_groups)
    check_what_the_provider_says(claims, facts, bounds, form, _refuse)
    return Verified(claims, None if machine is NOT_ASKED else machine)


def _refuse(code: Code) -> NoReturn:
    raise Refused(code)


Fail: TypeAlias = Callable[[Code], None]


def check_what_is_signed(claims: Claims, bounds: Bounds, form: LoginForm, fail: Fail) -> None:
    """All that the claims can tell; where only the provider can, nothing is said yet."""
    if bounds.bind_nothing:
        fail(Code.ROLE_UNBOUND)
    if bounds.principals and claims.principal_id not in bounds.principals:
        fail(Code.BOUND_SERVICE_PRINCIPAL_MISMATCH)
    if bounds.groups and not claims.groups_overflow and not _meet(claims.groups, bounds.groups):
        fail(Code.BOUND_GROUP_MISMATCH)
    if not claims.machine_id:
        if bounds.bind_resources:
            fail(Code.MACHINE_CLAIM_MISSING)
        return
    if form.subscription_id != claims.subscription != fold(form.subscription_id):
        fail(Code.SUBSCRIPTION_MISMATCH)
    if form.resource_group_name != claims.resource_group != fold(form.resource_group_name):
        fail(Code.RESOURCE_GROUP_MISMATCH)
    if form.vmss_name:
        if not (claims.is_virtual_machine or (claims.is_scale_set and _same(form.vmss_name, claims.machine_name))):
            fail(Code.VMSS_NAME_MISMATCH)
    elif form.vm_name:
        if not (claims.is_virtual_machine and _same(form.vm_name, claims.machine_name)):
            fail(Code.VM_NAME_MISMATCH)
    elif form.resource_id and not _same(form.resource_id, fold(claims.machine_id)):
        fail(Code.RESOURCE_ID_MISMATCH)
    if bounds.subscriptions and claims.subscription not in bounds.subscriptions:
        fail(Code.BOUND_SUBSCRIPTION_MISMATCH)
    if bounds.resource_groups and claims.resource_group not in bounds.resource_groups:
        fail(Code.BOUND_RESOURCE_GROUP_MISMATCH)
    is_admitted_set = claims.is_scale_set and claims.machine_name in bounds.scale_sets
    if bounds.scale_sets and not (claims.is_virtual_machine or is_admitted_set):
        fail(Code.BOUND_SCALE_SET_MISMATCH)


def check_what_the_provider_says(claims: Claims, facts: Facts, bounds: Bounds, form: LoginForm, fail: Fail) -> None:
    """All that rests on facts which are known by now."""
    machine = facts.machine
    if machine is None:
        fail(Code.MACHINE_NOT_FOUND)
    elif machine is not NOT_ASKED:
        if claims.principal_id not in machine.principals:
            fail(Code.MACHINE_IDENTITY_MISMATCH)
        if claims.is_virtual_machine:
            if form.vmss_name and not _same(form.vmss_name, fold(machine.scale_set)):
                fail(Code.VMSS_NAME_MISMATCH)
            if bounds.scale_sets and fold(machine.scale_set) not in bounds.scale_sets:
                fail(Code.BOUND_SCALE_SET_MISMATCH)
        if bounds.locations and machine.location not in bounds.locations:
            fail(Code.BOUND_LOCATION_MISMATCH)
    if claims.groups_overflow and bounds.groups:
        if not isinstance(facts.groups, frozenset):
            fail(Code.GROUPS_UNAVAILABLE)
        elif bounds.groups.isdisjoint(facts.groups):
            fail(Code.BOUND_GROUP_MISMATCH)


def _rests_on_machine(claims: Claims, bounds: Bounds, form: LoginForm, machine_check: str) -> bool:
    """Whether the provider has to be asked about the machine."""
    if not claims.machine_id:
        return False
    if bounds.locations or (bounds.bind_resources and machine_check == "always"):
        return True
    return claims.is_virtual_machine and bool(bounds.scale_sets or form.vmss_name)


def _same(given: str, folded: str) -> bool:
    """Whether a text of the form is, apart from its case, one that is in lower case already."""
    return given == folded or fold(given) == folded


def _meet(groups: frozenset[str], admitted: frozenset[str]) -> bool:
    """Whether one of the groups is admitted. Most are in lower case already: that is tried first."""
    return not (admitted.isdisjoint(groups) and admitted.isdisjoint(map(fold, groups)))
