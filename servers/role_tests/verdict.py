"""The verdict on one case, and how it compares with what was expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from cloudid_core.audit.device import ADMITTED
from cloudid_core.auth_method.explanation import FAILED, REFUSED, UNDECIDED

from .cases import Case


@frozen(kw_only=True)
class Verdict:
    """What was decided. `checks` are those that failed or are undecided, as `explain` tells them."""

    verdict: str
    codes: tuple[str, ...]
    checks: tuple[Mapping[str, Any], ...] = ()
    reason: str = ""
    """Why there are no checks."""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Verdict:
        """From the data of an answer of `explain`."""
        checks = tuple(check for check in data["checks"] if check["verdict"] in (FAILED, UNDECIDED))
        return cls(verdict=data["verdict"], codes=tuple(sorted(data["codes"])), checks=checks)

    @classmethod
    def of_refusal(cls, codes: Sequence[str], reason: str) -> Verdict:
        """For a case that cannot be explained, such as one of an unknown role."""
        return cls(verdict=REFUSED, codes=tuple(sorted(set(codes))), reason=reason)

    def meets(self, case: Case) -> bool:
        """Whether all failures are those expected, and nothing is undecided that could refuse an admitted login."""
        return self.codes == case.expected and (bool(self.codes) or self.verdict == ADMITTED)

    @property
    def shown(self) -> str:
        return ", ".join(self.codes) or self.verdict

    @property
    def reasons(self) -> list[str]:
        """A line for each check that failed or is undecided."""
        told = "{check} {verdict}: expected {expected}, found {found}"
        return [*filter(None, [self.reason]), *(told.format_map(check) for check in self.checks)]
