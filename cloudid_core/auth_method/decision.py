"""The decision: whether a mount accepts a token and a role admits its login, by the rows of `checks`.

It is pure. A login runs the rows that it meets up to the first that fails, which defines the refusal, or to the facts
that it needs from Azure. A login that can be refused without facts never needs any, and facts that it does not need
have no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final

import msgspec
from attrs import frozen

from ..effects import Instant
from ..errors import Refused
from ..provider import Machine
from ..values import USER_ASSIGNED_IDENTITY, fold
from .bounds import NO_BOUNDS, Bounds, Plan, make_plan
from .checks import ALWAYS, Check, Kind
from .claims import NOWHERE, Claims, Collection, OtherClaim
from .form import LoginForm


class NotAsked(Enum):
    NOT_ASKED = "not asked"


NOT_ASKED: Final = NotAsked.NOT_ASKED
_IDENTITIES: Final = fold(f"/{USER_ASSIGNED_IDENTITY}/")


class Facts(msgspec.Struct, frozen=True):
    """What Azure returns. `None`: it does not know the machine, or cannot list the groups."""

    machine: Machine | NotAsked | None = NOT_ASKED
    groups: frozenset[str] | NotAsked | None = NOT_ASKED
    """Ids of the principal's groups, in lower case."""


NO_FACTS: Final = Facts()


class Trust(msgspec.Struct, frozen=True):
    """What a mount requires of every token: its audience, tenant and issuers."""

    audience: str
    tenant_id: str
    issuers: frozenset[str]
    leeway: float
    """Seconds by which a clock may be behind the issuer's."""
    machine_check: str = ALWAYS


_NO_TRUST: Final = Trust("", "", frozenset(), 0.0)
_NO_FORM: Final = LoginForm()


class Case(msgspec.Struct):
    """A login as the checks read it. Before the mount has accepted the token, it has nothing of role and form."""

    claims: Claims
    trust: Trust = _NO_TRUST
    now: Instant = 0.0
    address: str | None = None
    """Source address of the login. `None`: unknown."""
    bounds: Bounds = NO_BOUNDS
    form: LoginForm = _NO_FORM
    facts: Facts = NO_FACTS
    place: Collection | OtherClaim = NOWHERE
    """The place of the machine, as far as it is in the token: `Claims.place`."""

    def __post_init__(self) -> None:
        self.place = self.claims.place or NOWHERE

    @property
    def known_machine(self) -> Machine | None:
        """Return Azure's facts about the machine, if it was looked up and exists."""
        return None if self.facts.machine is NOT_ASKED else self.facts.machine

    @property
    def known_groups(self) -> frozenset[str] | None:
        """Return the principal's groups from Entra ID, if they were looked up and exist."""
        return None if self.facts.groups is NOT_ASKED else self.facts.groups

    @property
    def knows_of_machine(self) -> bool:
        """Return whether the machine was looked up."""
        return self.facts.machine is not NOT_ASKED

    @property
    def knows_of_groups(self) -> bool:
        """Return whether the groups were looked up."""
        return self.facts.groups is not NOT_ASKED


@frozen
class Needs:
    """The facts that a decision still needs."""

    machine: bool
    groups: bool


class Verified(msgspec.Struct, frozen=True, gc=False):
    """An admitted login, and what it has proven."""

    claims: Claims
    machine: Machine | None
    """Azure's facts about the machine, if it was looked up."""

    def metadata(self, role: str) -> Mapping[str, str]:
        """Return the role, and what the token's signature or Azure proves, but nothing that is only in the form."""
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


def plan_of(case: Case) -> Plan:
    """Return the checks that a login meets. They follow from its role and its kind."""
    claims, place, form = case.claims, case.place, case.form
    kind = Kind(
        claims.token_type,
        claims.groups_overflow,
        place.kind,
        "" not in (form.subscription_id, place.subscription),
        "" not in (form.resource_group_name, place.resource_group),
        form.named_by,
        case.trust.machine_check,
    )
    plan = case.bounds.plans.get(kind)
    if plan is None:
        plan = case.bounds.plans[kind] = make_plan(case.bounds, kind, case)
    return plan


def run(checks: Iterable[Check], case: Case) -> None:
    """Refuse with the code of the first check that fails."""
    for check in checks:
        if not check.holds(case):
            raise Refused(check.code_of(case))


def lacking(plan: Plan, facts: Facts) -> Needs | None:
    """Return the facts that a login needs and that are unknown."""
    machine = plan.needs_machine and facts.machine is NOT_ASKED
    groups = plan.needs_groups and facts.groups is NOT_ASKED
    return Needs(machine, groups) if machine or groups else None


def admit(plan: Plan, case: Case) -> Verified | Needs:
    """Admit the login, refuse it with the code of the first check that fails, or return the facts that it needs."""
    needs = lacking(plan, case.facts)
    run(plan.by_token if needs else plan.by_role, case)
    if needs:
        return needs
    machine: Any = case.facts.machine  # known, if it is needed
    return Verified(case.claims, machine if plan.needs_machine else None)
