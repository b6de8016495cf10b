"""The trace of a decision agrees with the decision."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from cloudid_core.auth_method.decision import NO_FACTS, Facts, Needs, Verified, decide
from cloudid_core.auth_method.trace import FORM, ROLE, trace
from cloudid_core.errors import Refused

from ...cases import bounds, claims, form, machine
from ...minting import GROUP, PRINCIPAL, SUBSCRIPTION
from .test_decision import CONFIRMED, MEMBER, OVERFLOW, PAIRS, PLAIN, Story


def verdicts(story: Story, machine_check: str = "always") -> dict[str, str]:
    return {
        check.name: check.verdict for check in trace(story.claims, story.facts, story.role, story.form, machine_check)
    }


@pytest.mark.parametrize("name", PAIRS)
def test_what_is_admitted_has_passed_and_what_is_refused_has_failed_a_check(name: str) -> None:
    admitted, refused, code = PAIRS[name]
    assert set(verdicts(admitted).values()) <= {"passed"}
    failed = {name for name, verdict in verdicts(refused).items() if verdict == "failed"}
    rows = {row.name for row in (*ROLE, *FORM) if code in row.codes} | {"machine"}
    assert not failed or failed & rows, (failed, code)


@pytest.mark.parametrize("facts", [NO_FACTS, Facts(machine=machine())])
def test_the_decision_is_the_same(facts: Facts) -> None:
    for admitted, refused, _ in PAIRS.values():
        for story in (evolve(admitted, facts=facts), evolve(refused, facts=facts)):
            found = set(verdicts(story).values())
            try:
                verdict = decide(story.claims, story.facts, story.role, story.form, "always")
            except Refused:
                continue
            if isinstance(verdict, Verified):
                assert found <= {"passed"}
            elif isinstance(verdict, Needs):
                assert "failed" not in found


def test_every_bound_is_told_with_what_was_expected() -> None:
    role = bounds(bound_subscription_ids=(SUBSCRIPTION,), bound_service_principal_ids=(PRINCIPAL,))
    told = {check.name: check.expected for check in trace(CONFIRMED.claims, CONFIRMED.facts, role, form(), "always")}
    assert told["bound_subscription_ids"] == role.subscriptions
    assert told["bound_service_principal_ids"] == role.principals
    assert "bound_locations" not in told


def test_all_failures_are_told_not_only_the_first() -> None:
    other = "deadbeef-0000-4000-8000-000000000001"
    role = bounds(bound_subscription_ids=(other,), bound_service_principal_ids=(other,))
    found = verdicts(evolve(PLAIN, role=role))
    assert found["bound_subscription_ids"] == found["bound_service_principal_ids"] == "failed"


@pytest.mark.parametrize(
    "story, names",
    [
        (evolve(CONFIRMED, facts=NO_FACTS), {"machine"}),
        (evolve(MEMBER, facts=NO_FACTS, role=bounds(bound_scale_sets=("fleet",))), {"machine", "bound_scale_sets"}),
        (
            evolve(PLAIN, claims=claims(**OVERFLOW), facts=NO_FACTS, role=bounds(bound_group_ids=(GROUP,))),
            {"bound_group_ids"},
        ),
    ],
)
def test_what_the_provider_was_not_asked_is_not_checked(story: Story, names: set[str]) -> None:
    found: dict[str, Any] = verdicts(story)
    assert {name for name, verdict in found.items() if verdict == "not_checked"} >= names
