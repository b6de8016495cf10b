"""Faults: requests that fail on purpose, by rules that the control API sets."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from .requests import Call, Refusal
from .shapes import Amount, Form, Text, bad_request, read

SERVICES: Final = ("login", "arm", "graph", "metadata")
MAX_RULES: Final = 100


class Action(Form, frozen=True):
    """What happens to a request. With a `status` or `drop`, no work is done unless `after_work`."""

    status: Annotated[int, Meta(ge=400, le=599)] | None = None
    code: Text = "InjectedFault"
    message: Text = "A fault rule caused this error."
    retry_after: Amount | None = None
    delay: Annotated[float, Meta(ge=0, le=3600)] = 0.0
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


class Match(Form, frozen=True):
    """The requests that a rule applies to; by default all."""

    method: Text | None = None
    path: Annotated[str, Meta(max_length=500)] | None = None
    """A regular expression that matches from the start of the path."""
    family: Text | None = None

    def has(self, service: str, call: Call) -> bool:
        return (
            self.family in (None, service)
            and (self.method is None or self.method.upper() == call.method)
            and (self.path is None or re.match(self.path, call.path, re.IGNORECASE) is not None)
        )


class Rule(msgspec.Struct, forbid_unknown_fields=True):
    """An action, the requests that it applies to, and how often (`None`: always)."""

    action: Action
    match: Match = Match()
    times: Annotated[int, Meta(ge=1)] | None = None


def next_fault(rules: list[Rule], service: str, call: Call) -> Action:
    """The action of the first rule that matches and is not used up. Counts as one use of the rule."""
    rule = next((rule for rule in rules if rule.times != 0 and rule.match.has(service, call)), None)
    if rule is not None and rule.times is not None:
        rule.times -= 1
    return NO_FAULT if rule is None else rule.action


def read_rules(value: Any) -> list[Rule]:
    """Rules from JSON; `Refusal` 400 says what is wrong with them."""
    rules = read(value, list[Rule], "the faults")
    if len(rules) > MAX_RULES:
        raise bad_request(f"The faults must be a list of at most {MAX_RULES} rules.")
    for rule in rules:
        if rule.match.family not in (None, *SERVICES):
            raise bad_request(f"'family' must be one of {', '.join(SERVICES)}.")
        if rule.action == NO_FAULT:
            raise bad_request("'action' needs a 'status', a 'delay' or a 'drop'.")
        try:
            re.compile(rule.match.path or "")
        except (re.error, OverflowError) as error:
            raise bad_request(f"'path' is not a regular expression: {error}.") from None
    return rules
