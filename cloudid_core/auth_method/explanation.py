"""The explanation of a decision: every check of a login, what it expected, what it found, and its verdict.

It runs all the checks that a login meets, where a login stops at the first failure. The first of the failures is the
code that a login with these claims and facts is refused with. `explain` and tests of roles show all of it; audit
entries get a part.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from attrs import frozen

from ..audit import ADMITTED, Decision
from ..audit import Check as RecordedCheck
from ..errors import Code
from ..forms import Json
from .checks import TOKEN_CHECKS, Check
from .decision import Case, plan_of

PASSED: Final = "passed"
FAILED: Final = "failed"
UNDECIDED: Final = "undecided"
REFUSED: Final = "refused"


@frozen(kw_only=True)
class ExplainedCheck:
    """One check of an explanation. `code` is that of a refusal by it."""

    check: Check
    code: Code
    verdict: str
    expected: Json
    found: Json
    bound: tuple[str, ...] = ()
    """The list of the role that the check is about, if it is about one."""

    @property
    def name(self) -> str:
        return self.check.name

    @property
    def recorded(self) -> RecordedCheck:
        """Return the check as it is recorded. For a passed check, nothing specific to this login is recorded."""
        return RecordedCheck(self.name, self.verdict, self.bound, self.found if self.verdict == FAILED else None)

    @property
    def described(self) -> dict[str, Json]:
        result = {"check": self.name, "verdict": self.verdict, "code": self.code.wire}
        return {**result, "expected": self.expected, "found": self.found}


@frozen
class Explanation:
    """All checks that a login meets, in the order in which they are shown."""

    token_type: str
    checks: tuple[ExplainedCheck, ...]

    @property
    def failures(self) -> tuple[Code, ...]:
        """The codes of the checks that fail, in the order of a login."""
        failed = [explained for explained in self.checks if explained.verdict == FAILED]
        return tuple(explained.code for explained in sorted(failed, key=lambda each: each.check.stage))

    @property
    def verdict(self) -> str:
        """`refused`, `admitted`, or `undecided` when a fact is missing that could refuse the login."""
        verdicts = {check.verdict for check in self.checks}
        if FAILED in verdicts:
            return REFUSED
        return UNDECIDED if UNDECIDED in verdicts else ADMITTED

    @property
    def decision(self) -> Decision:
        """The decision as it is recorded."""
        return Decision(self.verdict, self.token_type, tuple(check.recorded for check in self.checks))

    @property
    def described(self) -> dict[str, Json]:
        return {
            "verdict": self.verdict,
            "codes": [code.wire for code in self.failures],
            "checks": [check.described for check in self.checks],
        }


def explanation_of(case: Case) -> Explanation:
    """Run all checks of a login, and say what each of them found."""
    return Explanation(case.claims.token_type, explained(plan_of(case).checks, case))


def checks_of_token(case: Case) -> tuple[ExplainedCheck, ...]:
    """Return the checks by which a mount accepts a token, without those that depend on a role."""
    return explained(TOKEN_CHECKS, case)


def explained(checks: Iterable[Check], case: Case) -> tuple[ExplainedCheck, ...]:
    """Run these checks, whatever comes of each."""
    return tuple(_explained(check, case) for check in checks)


def _explained(check: Check, case: Case) -> ExplainedCheck:
    verdict = UNDECIDED
    if check.is_known(case):
        verdict = PASSED if check.holds(case) else FAILED
    bound = tuple(sorted(check.list_in(case.bounds)))
    return ExplainedCheck(
        check=check,
        code=check.code_of(case),
        verdict=verdict,
        expected=list(bound) if check.compares_with_list else check.expected(case),
        found=check.found(case),
        bound=bound,
    )
