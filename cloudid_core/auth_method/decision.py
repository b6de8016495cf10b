"""The decision: whether a role admits a login, as one pure function over (claims, facts, role, form).

It is a list of checks in two halves: what holds for every role stands here, the bounds that a role may set are rows of
`bounds`. The first half needs nothing but what the token, the role and the form say; the second also needs facts that
only the provider knows. The first check that fails names the refusal. (What a check does with its failure is its
caller's choice: `decide` raises, another caller may go on and collect all of them.)
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

import msgspec
from attrs import frozen

from ..errors import Code
from ..provider import Machine
from ..values import USER_ASSIGNED_IDENTITY, fold, folds_to
from .bounds import Bounds
from .claims import Claims, Fail, OtherClaim, refuse
from .form import LoginForm


class NotAsked(Enum):
    NOT_ASKED = "not asked"


NOT_ASKED: Final = NotAsked.NOT_ASKED
_IDENTITIES: Final = fold(f"/{USER_ASSIGNED_IDENTITY}/")


class Facts(msgspec.Struct, frozen=True):
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

    def metadata(self, role: str) -> Mapping[str, str]:
        """The role, and what the token's signature or the provider proves; nothing that only the form says."""
        claims, machine = self.claims, self.machine
        named = claims.machine
        verified = {"role": role, "jwt_type": claims.token_type, "tenant_id": claims.tenant_id}
        if claims.app_id:
            verified["app_id"] = claims.app_id
        if claims.identity and _IDENTITIES in fold(claims.identity):
            verified["identity_id"] = claims.identity
        if named is not None:
            collection = named.collection
            verified |= collection.metadata
            if collection.is_virtual_machine:
                verified["vm_name"] = named.written_name
            elif collection.is_scale_set:
                verified["vmss_name"] = named.written_name
            else:
                verified["resource_id"] = named.written
            if machine is not None and machine.scale_set and not collection.is_scale_set:
                verified["vmss_name"] = machine.scale_set
            if machine is not None and machine.location:
                verified["location"] = machine.location
        return verified


def decide(claims: Claims, facts: Facts, bounds: Bounds, form: LoginForm, machine_check: str) -> Verified | Needs:
    """Admit the login, refuse it with the code of the first check that fails, or tell which facts are needed for that.

    A login that can be refused without facts never needs any, and facts that it does not need have no say.
    `machine_check` is "always" (the provider confirms every machine of a role that binds resources) or "needed" (only
    where the token cannot prove what is bound). Time, audience and issuer of the token are `check_claims`'s.
    """
    check_what_is_signed(claims, bounds, form, refuse)
    needs_machine = rests_on_machine(claims, bounds, form, machine_check)
    needs_groups = rests_on_groups(claims, bounds)
    if not (needs_machine or needs_groups):
        return Verified(claims, None)
    machine = facts.machine if needs_machine else None
    groups = facts.groups if needs_groups else None
    if machine is NOT_ASKED or groups is NOT_ASKED:
        return Needs(machine is NOT_ASKED, groups is NOT_ASKED)
    if needs_machine:
        check_machine(claims, machine, bounds, form, refuse)
    if needs_groups:
        check_groups(groups, bounds, refuse)
    return Verified(claims, machine)


def rests_on_machine(claims: Claims, bounds: Bounds, form: LoginForm, machine_check: str) -> bool:
    """Whether the provider has to say something about the machine; see `decide`."""
    named = claims.machine
    if named is None:
        return False
    if bounds.bind_machines and machine_check == "always":
        return True
    if form.vmss_name and named.collection.is_virtual_machine:
        return True
    if not bounds.known_machine:
        return False
    return any(bound.proven(named, entries) is None for _, entries, bound in bounds.known_machine)


def rests_on_groups(claims: Claims, bounds: Bounds) -> bool:
    """Whether the directory has to tell the principal's groups, since the token does not."""
    return claims.groups_overflow and bool(bounds.known_principal)


def check_what_is_signed(claims: Claims, bounds: Bounds, form: LoginForm, fail: Fail) -> None:
    """All that the claims can tell; where only the provider can, nothing is said yet."""
    if bounds.bind_nothing:
        fail(Code.ROLE_UNBOUND)
    for signed, entries, bound in bounds.signed_principal:
        if not (proven := signed(claims, entries)) and (
            proven is False or not (bound.known and claims.groups_overflow)
        ):
            fail(bound.code)
    if bounds.bind_machines and not (form.subscription_id and form.resource_group_name):
        fail(Code.MACHINE_REQUIRED)
    named = claims.machine
    if named is None:
        if bounds.bind_machines:
            fail(Code.MACHINE_CLAIM_MISSING)
        if claims.other is not None:
            check_other_claim(claims.other, form, fail)
        return
    collection = named.collection
    if form.subscription_id and not folds_to(form.subscription_id, collection.subscription):
        fail(Code.SUBSCRIPTION_MISMATCH)
    if form.resource_group_name and not folds_to(form.resource_group_name, collection.resource_group):
        fail(Code.RESOURCE_GROUP_MISMATCH)
    if form.vmss_name:
        if not (collection.is_virtual_machine or (collection.is_scale_set and fold(form.vmss_name) == named.name)):
            fail(Code.VMSS_NAME_MISMATCH)
    elif form.vm_name:
        if not collection.is_virtual_machine or not folds_to(form.vm_name, named.name):
            fail(Code.VM_NAME_MISMATCH)
    elif form.resource_id and fold(form.resource_id) != named.folded:
        fail(Code.RESOURCE_ID_MISMATCH)
    for signed, entries, bound in bounds.signed_machine:
        if not (proven := signed(named, entries)) and (proven is False or not bound.known):
            fail(bound.code)


def check_other_claim(other: OtherClaim, form: LoginForm, fail: Fail) -> None:
    """That the form does not contradict a claim that names something, though no machine."""
    if form.subscription_id and other.subscription and not folds_to(form.subscription_id, other.subscription):
        fail(Code.SUBSCRIPTION_MISMATCH)
    group = form.resource_group_name
    if group and other.resource_group and not folds_to(group, other.resource_group):
        fail(Code.RESOURCE_GROUP_MISMATCH)


def check_machine(claims: Claims, machine: Machine | None, bounds: Bounds, form: LoginForm, fail: Fail) -> None:
    """All that rests on what the provider says of the machine; `None`: that there is none."""
    if machine is None:
        fail(Code.MACHINE_NOT_FOUND)
        return
    if claims.principal_id not in machine.principals:
        fail(machine.unread or Code.MACHINE_IDENTITY_MISMATCH)
    named = claims.machine
    if named is None:
        return
    if form.vmss_name and named.collection.is_virtual_machine and fold(form.vmss_name) != fold(machine.scale_set):
        fail(Code.VMSS_NAME_MISMATCH)
    for known, entries, bound in bounds.known_machine:
        if not known(machine, entries) and bound.proven(named, entries) is None:
            fail(bound.code)


def check_groups(groups: frozenset[str] | None, bounds: Bounds, fail: Fail) -> None:
    """What rests on the directory's word on the principal's groups; `None`: it cannot tell them."""
    if groups is None:
        fail(Code.GROUPS_UNAVAILABLE)
        return
    for known, entries, bound in bounds.known_principal:
        if not known(groups, entries):
            fail(bound.code)
