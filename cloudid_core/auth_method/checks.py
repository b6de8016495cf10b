"""The checks of a login: a table in which each of them stands once.

A login is refused with the code of the first check that it does not pass (`decision`). Explanations, audit entries and
tests of roles show the checks that a login meets (`explanation`), and the reference page prints the table. A list
`bound_*` of a role is a field of `Role` and a row here; `roles` does not import with a field that has no row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from attrs import frozen

from ..errors import Code
from ..forms import Json
from ..values import fold, fold_location, folds_to, network, rfc3339
from .decision import NOT_ASKED, Alike, Case, alike

if TYPE_CHECKING:
    from .roles import Role


class Source(IntEnum):
    """What a check rests on, in the order in which a login runs them: those that need no network come first."""

    LOGIN = 0
    """The request, its token, the configuration and the role."""
    CONFIRMATION = 1
    """The provider's word on whether there is such a machine, and whose it is."""
    MACHINE = 2
    """What the provider says of a machine that it knows."""
    GROUPS = 3
    """The directory's word on the groups of the principal."""


class Kind(NamedTuple):
    """What tells, under one role, which checks a login meets, and which facts they need. Few are different."""

    names_machine: bool
    """The token does."""
    is_virtual_machine: bool
    compares_subscription: bool
    """Both the form and the token name one."""
    compares_resource_group: bool
    named_by: str
    """The field of the form that names the machine."""
    groups_overflow: bool
    confirms_machines: bool
    """The provider confirms each machine of a role that binds machines."""


Read: TypeAlias = Callable[[Collection[str]], frozenset[str]]


def folded(entries: Collection[str]) -> frozenset[str]:
    return frozenset(map(fold, entries))


def kinds(entries: Collection[str]) -> frozenset[str]:
    return folded(entries) or frozenset({""})  # without a kind, no token is admitted


def locations(entries: Collection[str]) -> frozenset[str]:
    return frozenset(map(fold_location, entries))


ANY: Final = ("*",)
"""In `bound_service_principal_ids`: any principal of the tenant."""


def principals(entries: Collection[str]) -> frozenset[str]:
    return frozenset() if entries == ANY else folded(entries)


@frozen
class Check:
    """A row of the table: one check of a login. It has either `passes` or `alike`."""

    name: str
    """As explanations and audit entries show it; that of the role's field, if it is about a list of the role."""
    code: Code
    """The code of a refusal by it."""
    found: Callable[[Case], Json]
    """What the login has, to be shown."""
    expected: Callable[[Case], Json] = lambda case: None
    """What the login should have, to be shown; without it, the list of the role."""
    passes: Callable[[Case, frozenset[str]], bool | None] = lambda case, entries: True
    """Whether a login that meets it passes it, given the list of the role. `None`: a fact is not known."""
    alike: Callable[[Alike, frozenset[str], Role], bool] | None = None
    """The same, where it rests on nothing but what the machines of a fleet have in common."""
    bound: Read | None = None
    """How the list of the role is read. An empty list demands nothing, so that no login meets the check."""
    suffices: bool = False
    """A role with that list alone is bound."""
    binds_machine: bool = False
    """The list is about the machine that the token names; without one, `machine_claim` refuses."""
    needs: Source = Source.LOGIN
    asks: Callable[[Kind], bool] = lambda kind: True
    """Which logins need more than `LOGIN` for it."""
    is_met: Callable[[Kind, Role], bool] = lambda kind, role: True
    """Which logins meet it, beside what `bound` and `binds_machine` say."""
    instead: Callable[[Case], Code | None] = lambda case: None
    """A code that says more than `code`, if there is one."""

    def verdict(self, case: Case, alike: Alike, entries: frozenset[str]) -> bool | None:
        """Whether the login passes; `None`: a fact is not known."""
        return self.passes(case, entries) if self.alike is None else self.alike(alike, entries, case.role)


def _comes_from(case: Case, _: frozenset[str]) -> bool | None:
    return None if case.address is None else network.contains(case.role.token_bound_cidrs, case.address)


def _machine(case: Case) -> str | None:
    return case.claims.machine.written if case.claims.machine is not None else None


def _vm_name(case: Case) -> str | None:
    machine = case.claims.machine
    return machine.name if machine is not None and machine.collection.is_virtual_machine else None


def _has_name(case: Case, _: frozenset[str]) -> bool:
    machine = case.claims.machine
    return machine is not None and machine.collection.is_virtual_machine and folds_to(case.form.vm_name, machine.name)


def _is_virtual_machine(case: Case) -> bool:
    return case.claims.machine is not None and case.claims.machine.collection.is_virtual_machine


def _scale_set(case: Case) -> str | None:
    """The scale set of the machine: of a virtual machine the provider says it, "" if it has none."""
    machine = case.claims.machine
    if machine is not None and machine.collection.is_scale_set:
        return machine.name
    return case.known_machine.scale_set if _is_virtual_machine(case) and case.known_machine else None


def _is_in_scale_set(case: Case, names: Collection[str]) -> bool | None:
    machine = case.claims.machine
    if machine is None or not machine.collection.is_virtual_machine:
        return machine is not None and machine.collection.is_scale_set and machine.name in names
    return fold(known.scale_set) in names if (known := case.facts.machine) else None


def _groups(case: Case) -> frozenset[str] | None:
    if not case.claims.groups_overflow:
        return case.claims.groups
    known = case.facts.groups
    return known if isinstance(known, frozenset) else None


def _is_in_group(case: Case, groups: frozenset[str]) -> bool | None:
    found = _groups(case)
    return None if found is None else not groups.isdisjoint(found)


def _sorted(texts: Collection[str] | None) -> Json:
    return None if texts is None else sorted(texts)


PLACE: Final = ("subscription_id", "resource_group_name")
"""What a login says of its machine whichever machine it is."""

CHECKS: Final = (
    Check(
        "token_bound_cidrs",
        Code.SOURCE_ADDRESS_REFUSED,
        bound=frozenset,
        passes=lambda case, _: (
            None if case.address is None else network.contains(case.role.token_bound_cidrs, case.address)
        ),
        found=lambda case: case.address,
    ),
    Check(
        "iss",
        Code.JWT_ISSUER_MISMATCH,
        alike=lambda fleet, _, role: fleet.issuer in fleet.trust.issuers,
        expected=lambda case: sorted(case.trust.issuers),
        found=lambda case: case.claims.issuer,
    ),
    Check(
        "aud",
        Code.JWT_AUDIENCE_MISMATCH,
        alike=lambda fleet, _, role: fleet.trust.audience in fleet.audiences,
        expected=lambda case: case.trust.audience,
        found=lambda case: list(case.claims.audiences),
    ),
    Check(
        "tid",
        Code.JWT_TENANT_MISMATCH,
        alike=lambda fleet, _, role: folds_to(fleet.trust.tenant_id, fleet.tenant_id),
        expected=lambda case: case.trust.tenant_id,
        found=lambda case: case.claims.tenant_id,
    ),
    Check(
        "exp",
        Code.JWT_EXPIRED,
        passes=lambda case, _: case.claims.expires_at > case.now,
        expected=lambda case: f"after {rfc3339.show(case.now)}",
        found=lambda case: rfc3339.show(case.claims.expires_at),
    ),
    Check(
        "nbf",
        Code.JWT_NOT_YET_VALID,
        passes=lambda case, _: case.claims.valid_from <= case.now + case.trust.leeway,
        expected=lambda case: f"not after {rfc3339.show(case.now + case.trust.leeway)}",
        found=lambda case: rfc3339.show(case.claims.valid_from),
    ),
    Check(
        "max_jwt_exp",
        Code.JWT_EXPIRES_TOO_LATE,
        is_met=lambda kind, role: bool(role.max_jwt_exp),
        passes=lambda case, _: case.claims.expires_at <= case.now + case.role.max_jwt_exp,
        expected=lambda case: f"not after {rfc3339.show(case.now + case.role.max_jwt_exp)}",
        found=lambda case: rfc3339.show(case.claims.expires_at),
    ),
    Check(
        "role",
        Code.ROLE_UNBOUND,
        alike=lambda fleet, _, role: not role.bounds.bind_nothing,
        expected=lambda case: "at least one bound",
        found=lambda case: case.role.bound_by,
    ),
    Check(
        "bound_token_types",
        Code.BOUND_TOKEN_TYPE_MISMATCH,
        bound=kinds,
        alike=lambda fleet, types, role: fleet.token_type in types,
        found=lambda case: case.claims.token_type,
    ),
    Check(
        "bound_service_principal_ids",
        Code.BOUND_SERVICE_PRINCIPAL_MISMATCH,
        bound=principals,
        suffices=True,
        passes=lambda case, ids: case.claims.principal_id in ids,
        found=lambda case: case.claims.principal_id,
    ),
    Check(
        "groups",
        Code.GROUPS_UNAVAILABLE,
        needs=Source.GROUPS,
        is_met=lambda kind, role: kind.groups_overflow and bool(role.bound_group_ids),
        passes=lambda case, _: None if case.facts.groups is NOT_ASKED else case.facts.groups is not None,
        expected=lambda case: "the directory knows the groups of the principal",
        found=lambda case: _sorted(_groups(case)),
    ),
    Check(
        "bound_group_ids",
        Code.BOUND_GROUP_MISMATCH,
        bound=folded,
        suffices=True,
        needs=Source.GROUPS,
        asks=lambda kind: kind.groups_overflow,
        passes=_is_in_group,
        found=lambda case: _sorted(_groups(case)),
    ),
    Check(
        "form",
        Code.MACHINE_REQUIRED,
        is_met=lambda kind, role: role.bounds.bind_machines,
        alike=lambda fleet, _, role: bool(fleet.asked_subscription and fleet.asked_resource_group),
        expected=lambda case: list(PLACE),
        found=lambda case: [name for name in PLACE if getattr(case.form, name)],
    ),
    Check(
        "machine_claim",
        Code.MACHINE_CLAIM_MISSING,
        is_met=lambda kind, role: role.bounds.bind_machines,
        alike=lambda fleet, _, role: fleet.names_machine,
        expected=lambda case: "the id of a resource in a resource group",
        found=_machine,
    ),
    Check(
        "subscription_id",
        Code.SUBSCRIPTION_MISMATCH,
        is_met=lambda kind, role: kind.compares_subscription,
        alike=lambda fleet, _, role: folds_to(fleet.asked_subscription, fleet.subscription),
        expected=lambda case: alike(case).subscription,
        found=lambda case: case.form.subscription_id,
    ),
    Check(
        "resource_group_name",
        Code.RESOURCE_GROUP_MISMATCH,
        is_met=lambda kind, role: kind.compares_resource_group,
        alike=lambda fleet, _, role: folds_to(fleet.asked_resource_group, fleet.resource_group),
        expected=lambda case: alike(case).resource_group,
        found=lambda case: case.form.resource_group_name,
    ),
    Check(
        "vmss_name",
        Code.VMSS_NAME_MISMATCH,
        needs=Source.MACHINE,
        asks=lambda kind: kind.is_virtual_machine,
        is_met=lambda kind, role: kind.names_machine and kind.named_by == "vmss_name",
        passes=lambda case, _: _is_in_scale_set(case, (fold(case.form.vmss_name),)),
        expected=_scale_set,
        found=lambda case: case.form.vmss_name,
    ),
    Check(
        "vm_name",
        Code.VM_NAME_MISMATCH,
        is_met=lambda kind, role: kind.names_machine and kind.named_by == "vm_name",
        passes=_has_name,
        expected=_vm_name,
        found=lambda case: case.form.vm_name,
    ),
    Check(
        "resource_id",
        Code.RESOURCE_ID_MISMATCH,
        is_met=lambda kind, role: kind.names_machine and kind.named_by == "resource_id",
        passes=lambda case, _: fold(case.form.resource_id) == (case.claims.machine and case.claims.machine.folded),
        expected=_machine,
        found=lambda case: case.form.resource_id,
    ),
    Check(
        "bound_subscription_ids",
        Code.BOUND_SUBSCRIPTION_MISMATCH,
        bound=folded,
        suffices=True,
        binds_machine=True,
        alike=lambda fleet, ids, role: fleet.subscription in ids,
        found=lambda case: alike(case).subscription,
    ),
    Check(
        "bound_resource_groups",
        Code.BOUND_RESOURCE_GROUP_MISMATCH,
        bound=folded,
        suffices=True,
        binds_machine=True,
        alike=lambda fleet, names, role: fleet.resource_group in names,
        found=lambda case: alike(case).resource_group,
    ),
    Check(
        "machine",
        Code.MACHINE_NOT_FOUND,
        needs=Source.CONFIRMATION,
        passes=lambda case, _: None if case.facts.machine is NOT_ASKED else case.facts.machine is not None,
        expected=lambda case: "the provider knows the machine",
        found=lambda case: _machine(case) if case.known_machine else None,
    ),
    Check(
        "machine_identity",
        Code.MACHINE_IDENTITY_MISMATCH,
        needs=Source.CONFIRMATION,
        passes=lambda case, _: (
            None if (known := case.known_machine) is None else case.claims.principal_id in known.principals
        ),
        expected=lambda case: case.claims.principal_id,
        found=lambda case: sorted(case.known_machine.principals) if case.known_machine else None,
        instead=lambda case: case.known_machine.unread if case.known_machine else None,
    ),
    Check(
        "bound_scale_sets",
        Code.BOUND_SCALE_SET_MISMATCH,
        bound=folded,
        suffices=True,
        binds_machine=True,
        needs=Source.MACHINE,
        asks=lambda kind: kind.is_virtual_machine,
        passes=_is_in_scale_set,
        found=_scale_set,
    ),
    Check(
        "bound_locations",
        Code.BOUND_LOCATION_MISMATCH,
        bound=locations,
        suffices=True,
        binds_machine=True,
        needs=Source.MACHINE,
        passes=lambda case, places: known.location in places if (known := case.facts.machine) else None,
        found=lambda case: case.known_machine.location if case.known_machine else None,
    ),
)
"""In the order in which explanations show them. A login runs them by what they need, and else in this order."""


def require_checks(fields: Iterable[str]) -> None:
    """Raise `TypeError` for a list of a role that no login would be held against."""
    names = {check.name for check in CHECKS if check.bound}
    forgotten = [field for field in fields if "bound_" in field and field not in names]
    if forgotten:
        raise TypeError(f"no check of a login is about {', '.join(forgotten)}")
