"""Faults: requests that fail on purpose, by rules that the control API sets."""

from __future__ import annotations

import re
from typing import Any, Final

from attrs import asdict, define, frozen

from .requests import Call, Json, Refusal
from .shapes import NOTHING, NUMBER, Shape, bad_request, require_object

RULE: Final[Shape] = {"match": (dict,), "times": (int, NOTHING), "action": (dict,)}
MATCH: Final[Shape] = {"method": (str,), "path": (str,), "family": (str,)}
ACTION: Final[Shape] = {
    "status": (int,),
    **dict.fromkeys(("code", "message"), (str,)),
    **dict.fromkeys(("retry_after", "delay"), NUMBER),
    **dict.fromkeys(("drop", "after_work"), (bool,)),
}

SERVICES: Final = ("login", "arm", "graph", "metadata")
MAX_RULES: Final = 100
MAX_PATTERN: Final = 500
MAX_DELAY: Final = 3600.0


@frozen
class Action:
    """What happens to a request. With a `status` or `drop`, no work is done unless `after_work`."""

    status: int | None = None
    code: str = "InjectedFault"
    message: str = "A fault rule caused this error."
    retry_after: float | None = None
    delay: float = 0.0
    drop: bool = False
    after_work: bool = False

    @property
    def does_work(self) -> bool:
        return self.after_work or (self.status is None and not self.drop)

    def refusal(self) -> Refusal | None:
        """The error that replaces the response, if any."""
        if self.status is None:
            return None
        headers = {} if self.retry_after is None else {"retry-after": f"{self.retry_after:g}"}
        return Refusal(self.status, self.code, self.message, headers)


NO_FAULT: Final = Action()


@define
class Rule:
    """An action, the requests that it applies to (by default all), and how often (`None`: always)."""

    action: Action
    method: str | None = None
    path: re.Pattern[str] | None = None
    family: str | None = None
    times: int | None = None

    def matches(self, service: str, call: Call) -> bool:
        return (
            self.times != 0
            and self.family in (None, service)
            and self.method in (None, call.method)
            and (self.path is None or self.path.match(call.path) is not None)
        )

    def as_json(self) -> Json:
        match = {"method": self.method, "path": self.path and self.path.pattern, "family": self.family}
        return {"match": match, "times": self.times, "action": asdict(self.action)}


def next_fault(rules: list[Rule], service: str, call: Call) -> Action:
    """The action of the first rule that matches and is not used up. Counts as one use of the rule."""
    rule = next((rule for rule in rules if rule.matches(service, call)), None)
    if rule is not None and rule.times is not None:
        rule.times -= 1
    return NO_FAULT if rule is None else rule.action


def read_rules(value: Any) -> list[Rule]:
    """Rules from JSON; `Refusal` 400 says what is wrong with them."""
    if type(value) is not list or len(value) > MAX_RULES:
        raise bad_request(f"The faults must be a list of at most {MAX_RULES} rules.")
    return [_read_rule(item) for item in value]


def _read_rule(value: Any) -> Rule:
    rule = require_object(value, RULE, "a rule")
    match = require_object(rule.get("match", {}), MATCH, "'match'")
    if "action" not in rule:
        raise bad_request("A rule needs an 'action'.")
    if match.get("family", "arm") not in SERVICES:
        raise bad_request(f"'family' must be one of {', '.join(SERVICES)}.")
    times = rule.get("times")
    if times is not None and times < 1:
        raise bad_request("'times' must be at least 1, or null for ever.")
    action = Action(**require_object(rule["action"], ACTION, "'action'"))
    if action == NO_FAULT:
        raise bad_request("'action' needs a 'status', a 'delay' or a 'drop'.")
    if action.status is not None and not 400 <= action.status <= 599:
        raise bad_request("'status' must be an error's, 400 to 599.")
    if not 0 <= action.delay <= MAX_DELAY or (action.retry_after or 0) < 0:
        raise bad_request(f"'delay' must be 0 to {MAX_DELAY:g} seconds, and 'retry_after' not negative.")
    try:
        if len(match.get("path", "")) > MAX_PATTERN:
            raise ValueError("too long")
        path = re.compile(match["path"], re.IGNORECASE) if "path" in match else None
    except (re.error, ValueError) as error:
        raise bad_request(f"'path' is not a regular expression: {error}.") from None
    return Rule(action, match["method"].upper() if "method" in match else None, path, match.get("family"), times)
