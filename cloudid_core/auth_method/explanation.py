"""The explanation of a decision: every check of a login, what it expected, what it found, and its verdict.

All checks that the login meets are run to their end. The first failure is the code that a login with these claims and
facts is refused with. `explain` and tests of roles show all of it; audit entries get a part.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ..audit import ADMITTED, Decision
from ..audit import Check as RecordedCheck
from ..errors import Code
from ..forms import Json
from .decision import Alike, Case, Step, alike

PASSED: Final = "passed"
FAILED: Final = "failed"
UNDECIDED: Final = "undecided"
REFUSED: Final = "refused"
VERDICTS: Final = {True: PASSED, False: FAILED, None: UNDECIDED}


@frozen(kw_only=True)
class Result:
    """What came of one check. `code` is that of a refusal by it."""

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
        return {
            "check": self.name,
            "verdict": self.verdict,
            "code": self.code.wire,
            "expected": self.expected,
            "found": self.found,
        }


@frozen
class Explanation:
    """All checks that a login meets. `failures` are their codes in the order of a login."""

    token_type: str
    checks: tuple[Result, ...]
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


def explanation_of(case: Case) -> Explanation:
    """Run all checks that a login meets, and say what each of them found."""
    fleet = alike(case)
    plan = case.role.bounds.plan(fleet)
    results = {step.check.name: _result(step, case, fleet) for step in plan.steps}
    in_order = [results[step.check.name] for step in plan.near + plan.far]
    failures = tuple(result.code for result in in_order if result.verdict == FAILED)
    return Explanation(case.claims.token_type, tuple(results.values()), failures)


def _result(step: Step, case: Case, fleet: Alike) -> Result:
    check = step.check
    bound = tuple(sorted(step.entries))
    return Result(
        name=check.name,
        code=check.instead(case) or check.code,
        verdict=VERDICTS[check.verdict(case, fleet, step.entries)],
        expected=list(bound) if check.bound else check.expected(case),
        found=check.found(case),
        bound=bound,
    )
