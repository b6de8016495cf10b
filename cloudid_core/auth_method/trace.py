"""The trace of a decision: every constraint that a role and a form put on a login, and how it came out.

It runs the same checks as `decide`, but goes on after the first that fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import frozen

from ..audit.device import Check
from ..errors import Code
from .bounds import Bounds
from .claims import Claims
from .decision import (
    Facts,
    NotAsked,
    Verified,
    check_groups,
    check_machine,
    check_what_is_signed,
    rests_on_groups,
    rests_on_machine,
)
from .form import LoginForm

PASSED: Final = "passed"
FAILED: Final = "failed"
NOT_CHECKED: Final = "not_checked"


@frozen
class Constraint:
    """One row: the role's list or the form's field, the codes of its failure, and what a role expects."""

    name: str
    codes: frozenset[Code]
    expected: Callable[[Bounds], frozenset[str]] | None = None
    """Of a field of the form: nothing, since the token says what it must be."""


ROLE: Final = (
    Constraint(
        "bound_service_principal_ids",
        frozenset({Code.BOUND_SERVICE_PRINCIPAL_MISMATCH}),
        lambda bounds: bounds.principals,
    ),
    Constraint(
        "bound_group_ids",
        frozenset({Code.BOUND_GROUP_MISMATCH, Code.GROUPS_UNAVAILABLE}),
        lambda bounds: bounds.groups,
    ),
    Constraint(
        "bound_subscription_ids",
        frozenset({Code.BOUND_SUBSCRIPTION_MISMATCH, Code.MACHINE_CLAIM_MISSING}),
        lambda bounds: bounds.subscriptions,
    ),
    Constraint(
        "bound_resource_groups",
        frozenset({Code.BOUND_RESOURCE_GROUP_MISMATCH, Code.MACHINE_CLAIM_MISSING}),
        lambda bounds: bounds.resource_groups,
    ),
    Constraint(
        "bound_scale_sets",
        frozenset({Code.BOUND_SCALE_SET_MISMATCH, Code.MACHINE_CLAIM_MISSING}),
        lambda bounds: bounds.scale_sets,
    ),
    Constraint(
        "bound_locations",
        frozenset({Code.BOUND_LOCATION_MISMATCH, Code.MACHINE_CLAIM_MISSING}),
        lambda bounds: bounds.locations,
    ),
)
FORM: Final = (
    Constraint("subscription_id", frozenset({Code.SUBSCRIPTION_MISMATCH})),
    Constraint("resource_group_name", frozenset({Code.RESOURCE_GROUP_MISMATCH})),
    Constraint("vmss_name", frozenset({Code.VMSS_NAME_MISMATCH})),
    Constraint("vm_name", frozenset({Code.VM_NAME_MISMATCH})),
    Constraint("resource_id", frozenset({Code.RESOURCE_ID_MISMATCH})),
)
MACHINE: Final = frozenset({Code.MACHINE_NOT_FOUND, Code.MACHINE_IDENTITY_MISMATCH})
"""The codes of the check that the provider knows the machine, and that it carries the identity of the token."""


def trace(claims: Claims, facts: Facts, bounds: Bounds, form: LoginForm, machine_check: str) -> tuple[Check, ...]:
    """The checks of a login, in the order of the tables. See `decide` for the arguments."""
    failed: set[Code] = set()
    check_what_is_signed(claims, bounds, form, failed.add)
    waits_for_machine = rests_on_machine(claims, bounds, form, machine_check)
    waits_for_groups = rests_on_groups(claims, bounds)
    machine, groups = facts.machine, facts.groups
    if waits_for_machine and not isinstance(machine, NotAsked):
        check_machine(claims, machine, bounds, form, failed.add)
        waits_for_machine, knows_machine = machine is None, True
    else:
        knows_machine = False
    if waits_for_groups and not isinstance(groups, NotAsked):
        check_groups(groups, bounds, failed.add)
        waits_for_groups = False
    is_virtual_machine = claims.machine is not None and claims.machine.collection.is_virtual_machine
    waiting = {
        "bound_group_ids": waits_for_groups,
        "bound_locations": waits_for_machine,
        "bound_scale_sets": waits_for_machine and is_virtual_machine,
        "vmss_name": waits_for_machine and is_virtual_machine,
    }

    def verdict(constraint: Constraint) -> str:
        if not failed.isdisjoint(constraint.codes):
            return FAILED
        return NOT_CHECKED if waiting.get(constraint.name) else PASSED

    checks = _checks(bounds, _given(claims, form), verdict)
    if knows_machine:
        return (*checks, Check("machine", PASSED if failed.isdisjoint(MACHINE) else FAILED))
    return (*checks, Check("machine", NOT_CHECKED)) if waits_for_machine else checks


def trace_of_admitted(verified: Verified, bounds: Bounds, form: LoginForm) -> tuple[Check, ...]:
    """The checks of a login that was admitted: all have passed. Few are different, so the role remembers them."""
    given, knows_machine = _given(verified.claims, form), verified.machine is not None
    checks = bounds.traces.get((given, knows_machine))
    if checks is None:
        checks = _checks(bounds, given, lambda constraint: PASSED)
        if knows_machine:
            checks = (*checks, Check("machine", PASSED))
        bounds.traces[given, knows_machine] = checks
    return checks


def _given(claims: Claims, form: LoginForm) -> str:
    """The field of the form that names the machine, if the token names one to compare it with."""
    if claims.machine is None:
        return ""
    return "vmss_name" if form.vmss_name else "vm_name" if form.vm_name else "resource_id"


def _checks(bounds: Bounds, given: str, verdict: Callable[[Constraint], str]) -> tuple[Check, ...]:
    """The role's lists that are not empty, and the fields of the form that are compared with the token."""
    checks = [
        Check(row.name, verdict(row), expected)
        for row in ROLE
        if row.expected is not None and (expected := row.expected(bounds))
    ]
    if given:
        names = ("subscription_id", "resource_group_name", given)
        checks += [Check(row.name, verdict(row)) for row in FORM if row.name in names]
    return tuple(checks)
