"""The checks of a login: a table in which each check is defined once, for all its users.

A login runs the rows that it meets, stage by stage, up to the first that fails, or to the facts that it still needs.
Explanations of a login (`explain`, recent logins, audit entries, role tests) run all of them; a renewal runs those
after `SOURCE`; `verify` those of its token and its bounds. The reference page of checks is printed from the same rows.

The rows that a login meets follow only from its role and its *kind*. There are few kinds, so their rows are picked once
(`bounds.Plan`), and a login runs no other check.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

import msgspec
from attrs import frozen

from ..errors import Code
from ..forms import Json
from ..values import fold, fold_location, folds_to, network, rfc3339
from .claims import VIRTUAL_MACHINE

if TYPE_CHECKING:
    from .bounds import Bounds

ANY: Final = ("*",)
"""In `bound_service_principal_ids`: any service principal of the tenant."""
PLACE: Final = ("subscription_id", "resource_group_name")
"""The fields of a login that every kind of machine has."""

ALWAYS: Final = "always"
NEEDED: Final = "needed"
EACH: Final = "each"
"""When Azure confirms a machine.

Either under every role that binds machines, or only if the token does not prove what is bound, or whatever the role
binds, as for a renewal.
"""


class Stage(IntEnum):
    """When a login runs a check. A later stage is reached only after the earlier ones have passed."""

    TOKEN = 1, "the token: issuer, tenant, audience, times"
    """Nothing depends on the role yet."""
    SOURCE = 2, "the source address, and how long the token is valid"
    PRINCIPAL = 3, "the principal, by the token"
    MACHINE_CLAIM = 4, "the machine, by the token"
    MACHINE = 5, "Azure knows the machine with the principal"
    """This stage and the later ones need facts."""
    MACHINE_FACTS = 6, "the machine, by what Azure returns"
    GROUPS = 7, "the principal, by its groups in Microsoft Entra ID"

    doc: str

    def __new__(cls, number: int, doc: str) -> Stage:
        stage = int.__new__(cls, number)
        stage._value_, stage.doc = number, doc
        return stage

    @property
    def needs_facts(self) -> bool:
        return self >= Stage.MACHINE


class Kind(msgspec.Struct, frozen=True):
    """The properties of a login that decide which checks it meets."""

    token_type: str
    """No check applies by it, but the decision that is recorded for the kind names it."""
    has_overflow: bool
    """The token does not list the groups, so Entra ID has to."""
    machine: str
    """The kind of the machine, `Collection.kind`. Empty: the token does not name one."""
    compares_subscription: bool
    compares_resource_group: bool
    """Both the token and the form have it."""
    named_by: str
    """The field of the form that names the machine."""
    machine_check: str

    @property
    def has_machine(self) -> bool:
        return self.machine != ""

    @property
    def is_virtual_machine(self) -> bool:
        return self.machine == VIRTUAL_MACHINE

    @property
    def names_scale_set(self) -> bool:
        return self.has_machine and self.named_by == "vmss_name"


def _folded(entries: Collection[str]) -> frozenset[str]:
    return frozenset(map(fold, entries))


@frozen(kw_only=True)
class BoundList:
    """How a list `bound_…` of a role is read."""

    about_machine: bool = False
    reads: Callable[[tuple[str, ...]], frozenset[str] | None] = lambda entries: _folded(entries) or None
    """Returns the entries, ready for comparison. `None`: the list requires nothing."""
    suffices: bool = True
    """A role with no other bound counts as bound."""


@frozen(kw_only=True, eq=False, slots=False)
class Check:
    """A row of the table.

    Its functions get a `Case`, and read only the parts that `applies` and `is_known` guarantee.
    """

    name: str
    code: Code
    """The code of a refusal by it."""
    stage: Stage
    applies: Callable[[Kind, Bounds], bool] = lambda kind, bounds: True
    """Whether a login meets it. A bound also needs its list in the role, and a machine if the list is of machines."""
    is_known: Callable[[Any], bool] = lambda case: True
    """Whether the facts that it needs are known."""
    found: Callable[[Any], Json]
    """The checked value, for explanations."""
    expected: Callable[[Any], Json] = lambda case: None
    """What the value is compared with, for explanations. For a list of the role, its entries."""
    holds: Callable[[Any], bool]
    is_settled: Callable[[Kind], bool] = lambda kind: False
    """Whether the kind and the role decide it. Then a login that passes it does not run it."""
    claims: tuple[str, ...] = ()
    """The fields of `Claims` that it reads."""
    bound: BoundList | None = None
    """How to read the list `name` of a role with which it compares."""
    demanded: Callable[[Bounds], Collection[str]] | None = None
    """The list of the role with which it compares, if that is not a bound."""
    code_in: Callable[[Any], Code] | None = None
    """The code, if it depends on the case."""

    def is_met_by(self, kind: Kind, bounds: Bounds) -> bool:
        """Return whether a login of this kind meets the check under these bounds."""
        if self.bound is not None:
            is_missing = self.bound.about_machine and not kind.has_machine
            return self.name in bounds.lists and not is_missing and self.applies(kind, bounds)
        return self.applies(kind, bounds)

    @property
    def compares_with_list(self) -> bool:
        """Return whether it compares with a list of the role."""
        return self.bound is not None or self.demanded is not None

    def list_in(self, bounds: Bounds) -> Collection[str]:
        """Return the entries of the role with which it compares. Empty if it does not compare with a list."""
        if self.demanded is not None:
            return self.demanded(bounds)
        return bounds.lists[self.name] if self.bound is not None else ()

    def code_of(self, case: object) -> Code:
        """Return the code of a refusal of this login."""
        return self.code_in(case) if self.code_in is not None else self.code


def _identity_code(case: Any) -> Code:
    """Return the code of a missing identity, which may be the one that could not be read."""
    unread: Code | None = case.known_machine.unread if case.known_machine else None
    return unread or Code.MACHINE_IDENTITY_MISMATCH


def _rests_on_machine(kind: Kind, bounds: Bounds) -> bool:
    """Return whether Azure has to confirm the machine.

    Azure confirms every machine about which it has to return something.
    """
    if not kind.has_machine:
        return False
    if kind.machine_check == EACH or (bounds.bind_machines and kind.machine_check == ALWAYS):
        return True
    return any(check.stage is Stage.MACHINE_FACTS and check.is_met_by(kind, bounds) for check in CHECKS)


def _rests_on_groups(kind: Kind, bounds: Bounds) -> bool:
    """Return whether Entra ID has to list the principal's groups, because the token does not."""
    return kind.has_overflow and "bound_group_ids" in bounds.lists


def _binds_machines(kind: Kind, bounds: Bounds) -> bool:
    return bounds.bind_machines


def _is_virtual_machine(kind: Kind, bounds: Bounds) -> bool:
    return kind.is_virtual_machine


def _is_no_virtual_machine(kind: Kind, bounds: Bounds) -> bool:
    return not kind.is_virtual_machine


def _is_named_by(field: str) -> Callable[[Kind, Bounds], bool]:
    """Return whether the form names the machine of the claim with this field."""
    return lambda kind, bounds: kind.has_machine and kind.named_by == field


def _knows_machine(case: Any) -> bool:
    return case.known_machine is not None


def _knows_groups(case: Any) -> bool:
    return case.known_groups is not None


_OF_MACHINES: Final = BoundList(about_machine=True)
_GROUP_IDS: Final = BoundList()

TOKEN_CHECKS: Final = (
    Check(
        name="iss",
        code=Code.JWT_ISSUER_MISMATCH,
        stage=Stage.TOKEN,
        claims=("issuer",),
        found=lambda case: case.claims.issuer,
        expected=lambda case: sorted(case.trust.issuers),
        holds=lambda case: case.claims.issuer in case.trust.issuers,
    ),
    Check(
        name="tid",
        code=Code.JWT_TENANT_MISMATCH,
        stage=Stage.TOKEN,
        claims=("tenant_id",),
        found=lambda case: case.claims.tenant_id,
        expected=lambda case: case.trust.tenant_id,
        holds=lambda case: folds_to(case.trust.tenant_id, case.claims.tenant_id),
    ),
    Check(
        name="aud",
        code=Code.JWT_AUDIENCE_MISMATCH,
        stage=Stage.TOKEN,
        claims=("audiences",),
        found=lambda case: list(case.claims.audiences),
        expected=lambda case: case.trust.audience,
        holds=lambda case: case.trust.audience in case.claims.audiences,
    ),
    Check(
        name="exp",
        code=Code.JWT_EXPIRED,
        stage=Stage.TOKEN,
        claims=("expires_at",),
        found=lambda case: rfc3339.show(case.claims.expires_at),
        expected=lambda case: f"after {rfc3339.show(case.now)}",
        holds=lambda case: case.claims.expires_at > case.now,  # no leeway: the issuer has let go of the token
    ),
    Check(
        name="nbf",
        code=Code.JWT_NOT_YET_VALID,
        stage=Stage.TOKEN,
        claims=("valid_from",),
        found=lambda case: rfc3339.show(case.claims.valid_from),
        expected=lambda case: f"not after {rfc3339.show(case.now + case.trust.leeway)}",
        holds=lambda case: case.claims.valid_from <= case.now + case.trust.leeway,
    ),
)
"""The checks that a token must pass to be accepted. None of them depends on the role.

Azure signs the tokens of all tenants with the same keys, so a verified signature alone does not show who sent a token.
"""

CHECKS: Final = (
    *TOKEN_CHECKS,
    Check(
        name="token_bound_cidrs",
        code=Code.SOURCE_ADDRESS_REFUSED,
        stage=Stage.SOURCE,
        applies=lambda kind, bounds: bool(bounds.cidrs),
        is_known=lambda case: case.address is not None,
        demanded=lambda bounds: bounds.cidrs,
        found=lambda case: case.address,
        holds=lambda case: network.contains(case.bounds.cidrs, case.address),
    ),
    Check(
        name="max_jwt_exp",
        code=Code.JWT_EXPIRES_TOO_LATE,
        stage=Stage.SOURCE,
        applies=lambda kind, bounds: bounds.max_jwt_exp > 0,
        found=lambda case: rfc3339.show(case.claims.expires_at),
        expected=lambda case: f"not after {rfc3339.show(case.now + case.bounds.max_jwt_exp)}",
        holds=lambda case: case.claims.expires_at <= case.now + case.bounds.max_jwt_exp,
    ),
    Check(
        name="role",
        code=Code.ROLE_UNBOUND,
        stage=Stage.PRINCIPAL,
        found=lambda case: list(case.bounds.set_lists),
        expected=lambda case: "at least one bound",
        is_settled=lambda kind: True,
        holds=lambda case: case.bounds.set_lists,
    ),
    Check(
        name="bound_token_types",
        code=Code.BOUND_TOKEN_TYPE_MISMATCH,
        stage=Stage.PRINCIPAL,
        bound=BoundList(reads=_folded, suffices=False),  # without a type, no token is admitted
        claims=("token_type",),
        found=lambda case: case.claims.token_type,
        holds=lambda case: case.claims.token_type in case.bounds.lists["bound_token_types"],
    ),
    Check(
        name="bound_service_principal_ids",
        code=Code.BOUND_SERVICE_PRINCIPAL_MISMATCH,
        stage=Stage.PRINCIPAL,
        bound=BoundList(reads=lambda entries: None if entries == ANY else _folded(entries) or None),
        claims=("principal_id",),
        found=lambda case: case.claims.principal_id,
        holds=lambda case: case.claims.principal_id in case.bounds.lists["bound_service_principal_ids"],
    ),
    Check(
        name="bound_identity_ids",
        code=Code.BOUND_IDENTITY_MISMATCH,
        stage=Stage.MACHINE_CLAIM,  # after the groups: the claim is that of the machine
        bound=BoundList(),
        claims=("identity",),
        found=lambda case: case.claims.identity or None,
        holds=lambda case: fold(case.claims.identity) in case.bounds.lists["bound_identity_ids"],
    ),
    Check(
        name="groups",
        code=Code.GROUPS_UNAVAILABLE,
        stage=Stage.GROUPS,
        applies=_rests_on_groups,
        is_known=lambda case: case.knows_of_groups,
        claims=("groups_overflow",),
        found=lambda case: None if case.known_groups is None else sorted(case.known_groups),
        expected=lambda case: "Microsoft Entra ID knows the groups of the principal",
        holds=lambda case: case.facts.groups is not None,
    ),
    Check(
        name="bound_group_ids",
        code=Code.BOUND_GROUP_MISMATCH,
        stage=Stage.PRINCIPAL,
        bound=_GROUP_IDS,
        applies=lambda kind, bounds: not kind.has_overflow,
        claims=("groups",),
        found=lambda case: sorted(case.claims.groups),
        holds=lambda case: not case.bounds.lists["bound_group_ids"].isdisjoint(case.claims.groups),
    ),
    Check(
        name="bound_group_ids",
        code=Code.BOUND_GROUP_MISMATCH,
        stage=Stage.GROUPS,
        bound=_GROUP_IDS,
        applies=lambda kind, bounds: kind.has_overflow,
        is_known=_knows_groups,
        found=lambda case: None if case.known_groups is None else sorted(case.known_groups),
        holds=lambda case: not case.bounds.lists["bound_group_ids"].isdisjoint(case.facts.groups),
    ),
    Check(
        name="form",
        code=Code.MACHINE_REQUIRED,
        stage=Stage.MACHINE_CLAIM,
        applies=_binds_machines,
        found=lambda case: [name for name in PLACE if getattr(case.form, name)],
        expected=lambda case: list(PLACE),
        is_settled=lambda kind: kind.has_machine,  # which says both, so that they are compared if the form does
        holds=lambda case: case.form.subscription_id and case.form.resource_group_name,
    ),
    Check(
        name="machine_claim",
        code=Code.MACHINE_CLAIM_MISSING,
        stage=Stage.MACHINE_CLAIM,
        applies=_binds_machines,
        claims=("machine",),
        found=lambda case: case.claims.machine.written if case.claims.machine else None,
        expected=lambda case: "the id of a resource in a resource group",
        is_settled=lambda kind: True,
        holds=lambda case: case.claims.machine is not None,
    ),
    Check(
        name="subscription_id",
        code=Code.SUBSCRIPTION_MISMATCH,
        stage=Stage.MACHINE_CLAIM,
        applies=lambda kind, bounds: kind.compares_subscription,
        claims=("machine", "other"),
        found=lambda case: case.form.subscription_id,
        expected=lambda case: case.place.subscription,
        holds=lambda case: folds_to(case.form.subscription_id, case.place.subscription),
    ),
    Check(
        name="resource_group_name",
        code=Code.RESOURCE_GROUP_MISMATCH,
        stage=Stage.MACHINE_CLAIM,
        applies=lambda kind, bounds: kind.compares_resource_group,
        claims=("machine", "other"),
        found=lambda case: case.form.resource_group_name,
        expected=lambda case: case.place.resource_group,
        holds=lambda case: folds_to(case.form.resource_group_name, case.place.resource_group),
    ),
    Check(
        name="vmss_name",
        code=Code.VMSS_NAME_MISMATCH,
        stage=Stage.MACHINE_CLAIM,
        applies=lambda kind, bounds: kind.names_scale_set and not kind.is_virtual_machine,
        found=lambda case: case.form.vmss_name,
        expected=lambda case: case.claims.machine.name if case.place.is_scale_set else None,
        holds=lambda case: case.place.is_scale_set and fold(case.form.vmss_name) == case.claims.machine.name,
    ),
    Check(
        name="vmss_name",
        code=Code.VMSS_NAME_MISMATCH,
        stage=Stage.MACHINE_FACTS,
        applies=lambda kind, bounds: kind.names_scale_set and kind.is_virtual_machine,
        is_known=_knows_machine,
        found=lambda case: case.form.vmss_name,
        expected=lambda case: case.known_machine.scale_set if case.known_machine else None,
        holds=lambda case: fold(case.form.vmss_name) == fold(case.facts.machine.scale_set),
    ),
    Check(
        name="vm_name",
        code=Code.VM_NAME_MISMATCH,
        stage=Stage.MACHINE_CLAIM,
        applies=_is_named_by("vm_name"),
        claims=("machine",),
        found=lambda case: case.form.vm_name,
        expected=lambda case: case.claims.machine.name if case.place.is_virtual_machine else None,
        holds=lambda case: case.place.is_virtual_machine and folds_to(case.form.vm_name, case.claims.machine.name),
    ),
    Check(
        name="resource_id",
        code=Code.RESOURCE_ID_MISMATCH,
        stage=Stage.MACHINE_CLAIM,
        applies=_is_named_by("resource_id"),
        claims=("machine",),
        found=lambda case: case.form.resource_id,
        expected=lambda case: case.claims.machine.written,
        holds=lambda case: fold(case.form.resource_id) == case.claims.machine.folded,
    ),
    Check(
        name="bound_subscription_ids",
        code=Code.BOUND_SUBSCRIPTION_MISMATCH,
        stage=Stage.MACHINE_CLAIM,
        bound=_OF_MACHINES,
        claims=("machine",),
        found=lambda case: case.place.subscription,
        holds=lambda case: case.place.subscription in case.bounds.lists["bound_subscription_ids"],
    ),
    Check(
        name="bound_resource_groups",
        code=Code.BOUND_RESOURCE_GROUP_MISMATCH,
        stage=Stage.MACHINE_CLAIM,
        bound=_OF_MACHINES,
        claims=("machine",),
        found=lambda case: case.place.resource_group,
        holds=lambda case: case.place.resource_group in case.bounds.lists["bound_resource_groups"],
    ),
    Check(
        name="machine",
        code=Code.MACHINE_NOT_FOUND,
        stage=Stage.MACHINE,
        applies=_rests_on_machine,
        is_known=lambda case: case.knows_of_machine,
        claims=("machine",),
        found=lambda case: case.claims.machine.written if case.known_machine else None,
        expected=lambda case: "Azure knows the machine",
        holds=lambda case: case.facts.machine is not None,
    ),
    Check(
        name="machine_identity",
        code=Code.MACHINE_IDENTITY_MISMATCH,
        stage=Stage.MACHINE,
        applies=_rests_on_machine,
        is_known=_knows_machine,
        claims=("principal_id",),
        found=lambda case: sorted(case.known_machine.principals) if case.known_machine else None,
        expected=lambda case: case.claims.principal_id,
        holds=lambda case: case.claims.principal_id in case.facts.machine.principals,
        code_in=_identity_code,
    ),
    Check(
        name="bound_scale_sets",
        code=Code.BOUND_SCALE_SET_MISMATCH,
        stage=Stage.MACHINE_CLAIM,
        bound=_OF_MACHINES,
        applies=_is_no_virtual_machine,
        claims=("machine",),
        found=lambda case: case.claims.machine.name if case.place.is_scale_set else None,
        holds=lambda case: (
            case.place.is_scale_set and case.claims.machine.name in case.bounds.lists["bound_scale_sets"]
        ),
    ),
    Check(
        name="bound_scale_sets",
        code=Code.BOUND_SCALE_SET_MISMATCH,
        stage=Stage.MACHINE_FACTS,
        bound=_OF_MACHINES,
        applies=_is_virtual_machine,
        is_known=_knows_machine,
        found=lambda case: case.known_machine and case.known_machine.scale_set,
        holds=lambda case: fold(case.facts.machine.scale_set) in case.bounds.lists["bound_scale_sets"],
    ),
    Check(
        name="bound_locations",
        code=Code.BOUND_LOCATION_MISMATCH,
        stage=Stage.MACHINE_FACTS,
        bound=BoundList(about_machine=True, reads=lambda entries: frozenset(map(fold_location, entries)) or None),
        is_known=_knows_machine,
        found=lambda case: case.known_machine and case.known_machine.location,
        holds=lambda case: case.facts.machine.location in case.bounds.lists["bound_locations"],
    ),
    Check(
        name="bound_vm_ids",
        code=Code.BOUND_VM_ID_MISMATCH,
        stage=Stage.MACHINE_CLAIM,
        bound=_OF_MACHINES,
        applies=_is_no_virtual_machine,
        found=lambda case: None,
        holds=lambda case: False,  # only a virtual machine has one
    ),
    Check(
        name="bound_vm_ids",
        code=Code.BOUND_VM_ID_MISMATCH,
        stage=Stage.MACHINE_FACTS,
        bound=_OF_MACHINES,
        applies=_is_virtual_machine,
        is_known=_knows_machine,
        found=lambda case: (case.known_machine and case.known_machine.vm_id) or None,
        holds=lambda case: case.facts.machine.vm_id in case.bounds.lists["bound_vm_ids"],
    ),
)
"""The checks in the order in which they are shown.

A login runs them by their stages, and within a stage in this order. A check that Azure decides only if the token does
not has two rows, of which a login meets one.

Similar rows are written out, because every login runs them: functions from a common helper would cost it more calls.
"""
