"""The decision: whether a role admits a login, as one pure function of a case.

The checks are the rows of `checks`. Those that need nothing but what the token, the role and the form say come first;
others need facts that only the provider knows. The first check that fails names the refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec

from ..effects import Instant
from ..errors import Code, Refused
from ..provider import Machine
from .claims import Claims
from .form import LoginForm

if TYPE_CHECKING:
    from .checks import Check
    from .roles import Role


class NotAsked(Enum):
    """A fact that nobody has asked for yet. Like `None` it is false."""

    NOT_ASKED = "not asked"

    def __bool__(self) -> Literal[False]:
        return False


NOT_ASKED: Final = NotAsked.NOT_ASKED


class Facts(msgspec.Struct, frozen=True, gc=False):
    """What the provider says. `None`: it does not know the machine, or cannot tell the groups."""

    machine: Machine | NotAsked | None = NOT_ASKED
    groups: frozenset[str] | NotAsked | None = NOT_ASKED
    """Ids of the principal's groups, in lower case."""


NO_FACTS: Final = Facts()


class Trust(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """What a mount demands of every token: its audience, tenant and issuers."""

    audience: str
    tenant_id: str
    issuers: frozenset[str]
    leeway: float
    """Seconds. It forgives a clock that is behind the issuer's; nothing forgives a token that has expired."""
    machine_check: str = "always"
    """`always`: the provider confirms every machine of a role that binds machines. `needed`: only where the token
    cannot prove what is bound.
    """


class Case(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A login to be decided or explained: all that its checks may look at."""

    claims: Claims
    facts: Facts = NO_FACTS
    role: Role
    form: LoginForm
    trust: Trust
    now: Instant
    address: str | None = None
    """Where the login comes from; `None`: unknown."""

    @property
    def known_machine(self) -> Machine | None:
        """What the provider says of the machine, if it was asked and knows it."""
        return self.facts.machine or None


class Needs(msgspec.Struct, frozen=True):
    """The facts that a decision still needs."""

    machine: bool
    groups: bool


class Alike(NamedTuple):
    """What the logins of a fleet have in common: checks that look at nothing else need not run for each machine."""

    trust: Trust
    issuer: str
    audiences: tuple[str, ...]
    tenant_id: str
    token_type: str
    groups_overflow: bool
    names_machine: bool
    """The token does."""
    is_virtual_machine: bool
    subscription: str
    """That of the token, in lower case; empty: it names none."""
    resource_group: str
    asked_subscription: str
    """That of the form, as it was written; empty: it names none."""
    asked_resource_group: str
    named_by: str
    """The field of the form that names the machine."""


def alike(case: Case) -> Alike:
    return Alike._make(_alike(case))


def _alike(case: Case) -> tuple[Any, ...]:
    """The members of `Alike`: as a plain tuple they are cheaper to make."""
    claims, form, machine = case.claims, case.form, case.claims.machine
    place = claims.other if machine is None else machine.collection
    return (
        case.trust,
        claims.issuer,
        claims.audiences,
        claims.tenant_id,
        claims.token_type,
        claims.groups_overflow,
        machine is not None,
        machine is not None and machine.collection.is_virtual_machine,
        "" if place is None else place.subscription,
        "" if place is None else place.resource_group,
        form.subscription_id,
        form.resource_group_name,
        form.named_by,
    )


class Step(NamedTuple):
    """A check that a login meets."""

    check: Check
    entries: frozenset[str]
    """The list of the role that the check is about."""


class Plan(msgspec.Struct, frozen=True, eq=False):
    """The checks that logins of one role and one kind meet."""

    steps: tuple[Step, ...]
    """All of them, as they are shown."""
    near: tuple[Step, ...]
    """Those that need no facts."""
    own: tuple[tuple[Callable[[Case, frozenset[str]], bool | None], frozenset[str], Code], ...]
    """Of those the ones that can come out differently for machines that are alike."""
    far: tuple[Step, ...]
    """Those that need facts, in the order of a login."""
    needs_machine: bool
    needs_groups: bool

    def needs(self, facts: Facts) -> Needs:
        """The facts that are still needed."""
        return Needs(
            machine=self.needs_machine and facts.machine is NOT_ASKED,
            groups=self.needs_groups and facts.groups is NOT_ASKED,
        )


class Verified(msgspec.Struct, frozen=True, gc=False):
    """A login that is admitted, and what was proven on the way."""

    claims: Claims
    machine: Machine | None
    """The provider's word on the machine, if it was asked."""

    @property
    def metadata(self) -> Mapping[str, str]:
        """The facts that the token's signature or the provider proves; nothing that only the form says."""
        named, machine = self.claims.machine, self.machine
        verified = {"jwt_type": self.claims.token_type}
        if self.claims.app_id:
            verified["app_id"] = self.claims.app_id
        if named is not None:
            verified |= named.collection.metadata
            if named.collection.is_virtual_machine:
                verified["vm_name"] = named.written_name
            elif named.collection.is_scale_set:
                verified["vmss_name"] = named.written_name
            else:
                verified["resource_id"] = named.written
            if machine is not None and machine.scale_set and not named.collection.is_scale_set:
                verified["vmss_name"] = machine.scale_set
            if machine is not None and machine.location:
                verified["location"] = machine.location
        return verified


def decide(case: Case) -> Verified | Needs:
    """Admit the login, refuse it with the code of the first check that fails, or tell which facts are needed for that.

    A login that can be refused without facts never needs any, and facts that it does not need have no say.
    """
    bounds, fleet = case.role.bounds, _alike(case)
    plan = bounds.passed.get(fleet)
    if plan is None:
        plan = bounds.plan(Alike._make(fleet))
        for check, entries in plan.near:
            if not check.verdict(case, Alike._make(fleet), entries):
                raise Refused(check.code)
        bounds.remember(fleet, plan)
    else:
        for passes, entries, code in plan.own:
            if not passes(case, entries):
                raise Refused(code)
    if not plan.far:
        return Verified(case.claims, None)
    machine, groups = case.facts.machine, case.facts.groups
    if (machine is NOT_ASKED and plan.needs_machine) or (groups is NOT_ASKED and plan.needs_groups):
        return plan.needs(case.facts)
    for check, entries in plan.far:
        if not check.passes(case, entries):
            raise Refused(check.instead(case) or check.code)
    return Verified(case.claims, (machine or None) if plan.needs_machine else None)
