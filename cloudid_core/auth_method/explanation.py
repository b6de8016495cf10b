"""The explanation of a decision: every check of a login, what it expected, what it found, and its verdict.

The verdicts are those of the decision itself: its checks run to their end and all failures are collected. The table
below only says which checks a login meets, and what to show of each. The first failure is the code that a login with
these claims and facts is refused with. `explain` and tests of roles show all of it; audit entries get a part.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Final

from attrs import frozen

from ..audit import ADMITTED, Decision
from ..audit import Check as RecordedCheck
from ..effects import Instant
from ..errors import Code
from ..forms import Json
from ..provider import Machine
from ..values import network, rfc3339
from .bounds import BOUNDS, Bound
from .claims import Claims, NamedMachine, check_claims, check_lifetime
from .decision import (
    NOT_ASKED,
    Facts,
    Verified,
    check_groups,
    check_machine,
    check_what_is_signed,
    rests_on_groups,
    rests_on_machine,
)
from .form import LoginForm
from .roles import LISTS, Role

PASSED: Final = "passed"
FAILED: Final = "failed"
UNDECIDED: Final = "undecided"
REFUSED: Final = "refused"


@frozen(kw_only=True)
class Trust:
    """What a mount demands of every token: its audience, tenant and issuers."""

    audience: str
    tenant_id: str
    issuers: frozenset[str]
    leeway: float
    machine_check: str = "always"


@frozen(kw_only=True)
class Case:
    """A login to be explained."""

    claims: Claims
    facts: Facts
    role: Role
    form: LoginForm
    trust: Trust
    now: Instant
    address: str | None = None
    """Where the login comes from; `None`: unknown."""
    weight: int = 1
    """What it weighs once it is remembered: bytes of the role's entry."""

    @property
    def machine(self) -> NamedMachine | None:
        return self.claims.machine

    @property
    def known_machine(self) -> Machine | None:
        """What the provider says of the machine, if it was asked and knows it."""
        return None if self.facts.machine is NOT_ASKED else self.facts.machine

    @property
    def known_groups(self) -> frozenset[str] | None:
        """What the directory says of the principal's groups, if it was asked and knows them."""
        return None if self.facts.groups is NOT_ASKED else self.facts.groups

    @property
    def rests_on_machine(self) -> bool:
        return rests_on_machine(self.claims, self.role.bounds, self.form, self.trust.machine_check)

    @property
    def rests_on_groups(self) -> bool:
        return rests_on_groups(self.claims, self.role.bounds)

    @property
    def is_virtual_machine(self) -> bool:
        return self.machine is not None and self.machine.collection.is_virtual_machine


@frozen(kw_only=True)
class Check:
    """One check of an explanation. `code` is that of a refusal by it."""

    name: str
    code: Code
    verdict: str
    expected: Json
    found: Json
    bound: tuple[str, ...] = ()
    """The list of the role that the check is about, if it is about one."""

    @property
    def recorded(self) -> RecordedCheck:
        """What goes on record: of a check that passed nothing that only this login says."""
        return RecordedCheck(self.name, self.verdict, self.bound, self.found if self.verdict == FAILED else None)

    @property
    def described(self) -> dict[str, Json]:
        result = {"check": self.name, "verdict": self.verdict, "code": self.code.wire}
        return {**result, "expected": self.expected, "found": self.found}


@frozen
class Explanation:
    """All checks that a login meets. `failures` are their codes in the order of a login."""

    token_type: str
    checks: tuple[Check, ...]
    failures: tuple[Code, ...]

    @property
    def verdict(self) -> str:
        """`refused`, `admitted`, or `undecided` when a fact is missing that could refuse the login."""
        if self.failures:
            return REFUSED
        return UNDECIDED if any(check.verdict == UNDECIDED for check in self.checks) else ADMITTED

    @property
    def decision(self) -> Decision:
        """The decision as it goes on record."""
        return Decision(self.verdict, self.token_type, tuple(check.recorded for check in self.checks))

    @property
    def described(self) -> dict[str, Json]:
        return {
            "verdict": self.verdict,
            "codes": [code.wire for code in self.failures],
            "checks": [check.described for check in self.checks],
        }


@frozen
class Rule:
    """A row of the table: when a login meets a check, whether it can be decided, and what to show of it.

    Where `bound` says which list of the role the check is about, that list is expected, and must not be empty for a
    login to meet the check.
    """

    name: str
    code: Code
    found: Callable[[Case], Json]
    expected: Callable[[Case], Json] = lambda case: None
    bound: Callable[[Role], Collection[str]] | None = None
    applies: Callable[[Case], bool] = lambda case: True
    is_known: Callable[[Case], bool] = lambda case: True


def explanation_of(case: Case) -> Explanation:
    """Run all checks of a login, and say what each of them found."""
    failures = _failures(case)
    met = [rule for rule in RULES if (rule.bound is None or rule.bound(case.role)) and rule.applies(case)]
    checks = [_check(rule, case, failures) for rule in met]
    return Explanation(case.claims.token_type, tuple(checks), tuple(failures))


def checks_of_token(case: Case) -> tuple[Check, ...]:
    """Return the checks by which a mount accepts a token, without those that depend on a role."""
    failures = _failures(case)
    return tuple(_check(rule, case, failures) for rule in TOKEN_RULES)


def record_key(claims: Claims, form: LoginForm, verified: Verified) -> Hashable:
    """What tells, under one role, which checks a login has met that was admitted. Few are different."""
    other = claims.other
    return (
        claims.token_type,
        bool(form.subscription_id),
        bool(form.resource_group_name),
        form.named_by,
        claims.machine is None,
        verified.machine is None,
        claims.groups_overflow,
        other and (bool(other.subscription), bool(other.resource_group)),
    )


def _failures(case: Case) -> list[Code]:
    """The codes of all checks that fail, in the order of a login."""
    failures: list[Code] = []
    fail, role, trust = failures.append, case.role, case.trust
    check_claims(
        case.claims,
        now=case.now,
        leeway=trust.leeway,
        audience=trust.audience,
        issuers=trust.issuers,
        tenant_id=trust.tenant_id,
        fail=fail,
    )
    if case.address is not None and not network.contains(role.token_bound_cidrs, case.address):
        fail(Code.SOURCE_ADDRESS_REFUSED)
    check_lifetime(case.claims, case.now, role.max_jwt_exp, fail)
    check_what_is_signed(case.claims, role.bounds, case.form, fail)
    if case.rests_on_machine and case.facts.machine is not NOT_ASKED:
        check_machine(case.claims, case.facts.machine, role.bounds, case.form, fail)
    if case.rests_on_groups and case.facts.groups is not NOT_ASKED:
        check_groups(case.facts.groups, role.bounds, fail)
    return failures


def _check(rule: Rule, case: Case, failures: Sequence[Code]) -> Check:
    code = rule.code
    if code is Code.MACHINE_IDENTITY_MISMATCH and case.known_machine and case.known_machine.unread:
        code = case.known_machine.unread  # the identity that is missing may be the one that could not be read
    verdict = FAILED if code in failures else PASSED if rule.is_known(case) else UNDECIDED
    bound = tuple(sorted(rule.bound(case.role))) if rule.bound else ()
    expected = list(bound) if rule.bound else rule.expected(case)
    return Check(name=rule.name, code=code, verdict=verdict, expected=expected, found=rule.found(case), bound=bound)


def _place_rule(name: str, code: Code, member: str) -> Rule:
    """That the form names the place of the machine as the claim does, where both say it."""

    def claimed(case: Case) -> str:
        return getattr(case.claims.place, member, "")

    return Rule(
        name,
        code,
        lambda case: getattr(case.form, name),
        claimed,
        applies=lambda case: bool(getattr(case.form, name) and claimed(case)),
    )


def _name_rule(
    name: str, code: Code, claimed: Callable[[Case], Json], is_known: Callable[[Case], bool] = lambda case: True
) -> Rule:
    """That the form names the machine as the claim or the provider does, where it does so by this field."""
    return Rule(
        name,
        code,
        lambda case: getattr(case.form, name),
        claimed,
        applies=lambda case: case.machine is not None and case.form.named_by == name,
        is_known=is_known,
    )


def _scale_set(case: Case) -> str | None:
    """The scale set of the machine: of a virtual machine the provider says it, "" if it has none."""
    if case.machine is not None and case.machine.collection.is_scale_set:
        return case.machine.name
    return case.known_machine.scale_set if case.is_virtual_machine and case.known_machine else None


def _rules(*, about_machine: bool, by_provider: bool) -> list[Rule]:
    """The rows of bounds, of which the provider may have to tell or never has."""
    wanted = about_machine, by_provider
    return [_rule(bound) for bound in BOUNDS if (bound.about_machine, bool(bound.known)) == wanted]


def _rule(bound: Bound) -> Rule:
    def subject(case: Case) -> Claims | NamedMachine | None:
        return case.machine if bound.about_machine else case.claims

    def known(case: Case) -> Machine | frozenset[str] | None:
        return case.known_machine if bound.about_machine else case.known_groups

    def is_signed(case: Case) -> bool:
        return bound.proven(subject(case), case.role.bounds.lists[bound.name]) is not None

    def found(case: Case) -> Json:
        if is_signed(case):
            return bound.signed_value(subject(case))
        return None if known(case) is None else bound.known_value(known(case))

    return Rule(
        name=bound.name,
        code=bound.code,
        bound=lambda role: role.bounds.lists.get(bound.name, ()),
        applies=lambda case: subject(case) is not None,
        is_known=lambda case: is_signed(case) or known(case) is not None,
        found=found,
    )


PLACE: Final = ("subscription_id", "resource_group_name")
"""What a login says of its machine whichever machine it is."""

TOKEN_RULES: Final = (
    Rule("iss", Code.JWT_ISSUER_MISMATCH, lambda case: case.claims.issuer, lambda case: sorted(case.trust.issuers)),
    Rule("tid", Code.JWT_TENANT_MISMATCH, lambda case: case.claims.tenant_id, lambda case: case.trust.tenant_id),
    Rule("aud", Code.JWT_AUDIENCE_MISMATCH, lambda case: list(case.claims.audiences), lambda case: case.trust.audience),
    Rule(
        "exp",
        Code.JWT_EXPIRED,
        lambda case: rfc3339.show(case.claims.expires_at),
        lambda case: f"after {rfc3339.show(case.now)}",
    ),
    Rule(
        "nbf",
        Code.JWT_NOT_YET_VALID,
        lambda case: rfc3339.show(case.claims.valid_from),
        lambda case: f"not after {rfc3339.show(case.now + case.trust.leeway)}",
    ),
)
"""The checks that a token must pass to be accepted. None of them depends on the role."""

RULES: Final = (
    *TOKEN_RULES,
    Rule(
        "token_bound_cidrs",
        Code.SOURCE_ADDRESS_REFUSED,
        lambda case: case.address,
        bound=lambda role: role.token_bound_cidrs,
        is_known=lambda case: case.address is not None,
    ),
    Rule(
        "max_jwt_exp",
        Code.JWT_EXPIRES_TOO_LATE,
        lambda case: rfc3339.show(case.claims.expires_at),
        lambda case: f"not after {rfc3339.show(case.now + case.role.max_jwt_exp)}",
        applies=lambda case: bool(case.role.max_jwt_exp),
    ),
    Rule(
        "role",
        Code.ROLE_UNBOUND,
        lambda case: [name for name in LISTS if getattr(case.role, name)],
        lambda case: "at least one bound",
    ),
    *_rules(about_machine=False, by_provider=False),
    Rule(
        "groups",
        Code.GROUPS_UNAVAILABLE,
        lambda case: None if case.known_groups is None else sorted(case.known_groups),
        lambda case: "the directory knows the groups of the principal",
        applies=lambda case: case.rests_on_groups,
        is_known=lambda case: case.facts.groups is not NOT_ASKED,
    ),
    *_rules(about_machine=False, by_provider=True),
    Rule(
        "form",
        Code.MACHINE_REQUIRED,
        lambda case: [name for name in PLACE if getattr(case.form, name)],
        lambda case: list(PLACE),
        applies=lambda case: case.role.bounds.bind_machines,
    ),
    Rule(
        "machine_claim",
        Code.MACHINE_CLAIM_MISSING,
        lambda case: case.machine.written if case.machine else None,
        lambda case: "the id of a resource in a resource group",
        applies=lambda case: case.role.bounds.bind_machines,
    ),
    _place_rule("subscription_id", Code.SUBSCRIPTION_MISMATCH, "subscription"),
    _place_rule("resource_group_name", Code.RESOURCE_GROUP_MISMATCH, "resource_group"),
    _name_rule(
        "vmss_name",
        Code.VMSS_NAME_MISMATCH,
        _scale_set,
        is_known=lambda case: not case.is_virtual_machine or case.known_machine is not None,
    ),
    _name_rule(
        "vm_name",
        Code.VM_NAME_MISMATCH,
        lambda case: case.machine.name if case.machine and case.is_virtual_machine else None,
    ),
    _name_rule("resource_id", Code.RESOURCE_ID_MISMATCH, lambda case: case.machine.written if case.machine else None),
    *_rules(about_machine=True, by_provider=False),
    Rule(
        "machine",
        Code.MACHINE_NOT_FOUND,
        lambda case: case.machine.written if case.known_machine and case.machine else None,
        lambda case: "the provider knows the machine",
        applies=lambda case: case.rests_on_machine,
        is_known=lambda case: case.facts.machine is not NOT_ASKED,
    ),
    Rule(
        "machine_identity",
        Code.MACHINE_IDENTITY_MISMATCH,
        lambda case: sorted(case.known_machine.principals) if case.known_machine else None,
        lambda case: case.claims.principal_id,
        applies=lambda case: case.rests_on_machine,
        is_known=lambda case: case.known_machine is not None,
    ),
    *_rules(about_machine=True, by_provider=True),
)
"""The checks of a login. A code stands in one row, whichever half of the decision fails with it."""
