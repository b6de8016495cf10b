"""The explanation: it says of every login what the decision says, and names every check that fails."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from attrs import evolve
from msgspec.structs import replace

from cloudid_core.audit.device import ADMITTED, Decision
from cloudid_core.auth_method.claims import TOKEN_TYPES, Claims
from cloudid_core.auth_method.decision import NO_FACTS, Case, Facts, Needs, Trust, Verified, admit, plan_of
from cloudid_core.auth_method.explanation import FAILED, REFUSED, UNDECIDED, explanation_of
from cloudid_core.auth_method.form import LoginForm
from cloudid_core.auth_method.roles import Role
from cloudid_core.errors import Code, Refused

from ... import cases
from ...minting import AUDIENCE, GROUP, IDENTITY, ISSUER, NOW, PRINCIPAL, SCALE_SET, SUBSCRIPTION, TENANT, VM, VM_ID

TRUST = Trust(audience=AUDIENCE, tenant_id=TENANT, issuers=frozenset({ISSUER}), leeway=60.0)
NO_MACHINE: dict[str, Any] = {"xms_mirid": None}
OVERFLOW: dict[str, Any] = {"groups": None, "_claim_names": {"groups": "src1"}}


def case(
    role: Role | None = None, claims: Claims | None = None, facts: Facts = NO_FACTS, form: LoginForm | None = None
) -> Case:
    return Case(
        claims=claims or cases.claims(),
        facts=facts,
        bounds=(role or Role(bound_service_principal_ids=(PRINCIPAL,))).bounds,
        form=form or cases.form(),
        trust=TRUST,
        now=NOW,
    )


def failed(explained: Case) -> list[str]:
    return [check.name for check in explanation_of(explained).checks if check.verdict == FAILED]


def undecided(explained: Case) -> list[str]:
    return [check.name for check in explanation_of(explained).checks if check.verdict == UNDECIDED]


def test_all_failures_are_named_rather_than_the_first() -> None:
    role = Role(
        bound_service_principal_ids=("another",),
        bound_group_ids=("another",),
        bound_subscription_ids=("another",),
        bound_resource_groups=("another",),
        bound_locations=("elsewhere",),
        max_jwt_exp=60,
        token_bound_cidrs=("10.0.0.0/8",),
    )
    told = cases.claims(iss="https://elsewhere", aud="another", tid="another")
    login = cases.form(subscription_id="another", resource_group_name="another", vm_name="another")
    explained = replace(case(role, told, Facts(machine=cases.machine(("another",))), login), address="192.0.2.1")
    assert failed(explained) == [
        "iss",
        "tid",
        "aud",
        "token_bound_cidrs",
        "max_jwt_exp",
        "bound_service_principal_ids",
        "bound_group_ids",
        "subscription_id",
        "resource_group_name",
        "vm_name",
        "bound_subscription_ids",
        "bound_resource_groups",
        "machine_identity",
        "bound_locations",
    ]
    assert explanation_of(explained).verdict == REFUSED


def test_a_check_shows_what_it_expected_and_what_it_found() -> None:
    role = Role(bound_subscription_ids=("Another", "third"))
    (check,) = [check for check in explanation_of(case(role)).checks if check.name == "bound_subscription_ids"]
    assert check.described == {
        "check": "bound_subscription_ids",
        "verdict": "failed",
        "code": "bound_subscription_mismatch",
        "expected": ["another", "third"],
        "found": SUBSCRIPTION,
    }


def test_what_rests_on_missing_facts_is_undecided() -> None:
    role = Role(bound_locations=("westus2",), bound_scale_sets=("fleet",))
    assert undecided(case(role)) == ["machine", "machine_identity", "bound_scale_sets", "bound_locations"]
    assert explanation_of(case(role)).verdict == UNDECIDED
    known = Facts(machine=cases.machine(scale_set="fleet"))
    assert explanation_of(case(role, facts=known)).verdict == ADMITTED


def test_nothing_is_decided_of_a_machine_that_the_provider_does_not_know() -> None:
    role = Role(bound_locations=("westus2",))
    explained = case(role, facts=Facts(machine=None))
    assert failed(explained) == ["machine"]
    assert undecided(explained) == ["machine_identity", "bound_locations"]


def test_groups_that_overflow_are_those_of_the_directory() -> None:
    role, told = Role(bound_group_ids=(GROUP,)), cases.claims(**OVERFLOW)
    assert undecided(case(role, told)) == ["groups", "bound_group_ids"]
    assert failed(case(role, told, Facts(groups=None))) == ["groups"]
    assert failed(case(role, told, Facts(groups=frozenset()))) == ["bound_group_ids"]
    assert explanation_of(case(role, told, Facts(groups=frozenset({GROUP})))).verdict == ADMITTED


def test_an_unknown_address_is_undecided() -> None:
    role = Role(bound_service_principal_ids=("*",), token_bound_cidrs=("10.0.0.0/8",))
    assert undecided(case(role)) == ["token_bound_cidrs"]
    assert failed(replace(case(role), address="192.0.2.1")) == ["token_bound_cidrs"]
    assert explanation_of(replace(case(role), address="10.1.2.3")).verdict == ADMITTED


def test_an_identity_that_could_not_be_read_fails_with_its_own_code() -> None:
    role = Role(bound_subscription_ids=(SUBSCRIPTION,))
    unread = evolve(cases.machine(("somebody",)), unread=Code.PROVIDER_PERMISSION_DENIED)
    told = explanation_of(case(role, facts=Facts(machine=unread)))
    assert told.failures == (Code.PROVIDER_PERMISSION_DENIED,)
    assert [check.name for check in told.checks if check.verdict == FAILED] == ["machine_identity"]


SUBSCRIPTIONS = (SUBSCRIPTION, "50b50000-0000-4000-8000-00000000000b")


def random_case(chance: Random) -> Case:
    def some(*choices: tuple[str, ...]) -> tuple[str, ...]:
        return chance.choice(((), (), *choices))

    role = Role(
        bound_service_principal_ids=some((PRINCIPAL,), ("another",), ("*",)),
        bound_group_ids=some((GROUP,), ("another",)),
        bound_locations=some(("West US 2",), ("elsewhere",)),
        bound_subscription_ids=some((SUBSCRIPTION,), ("another",)),
        bound_resource_groups=some(("prod",), ("another",)),
        bound_scale_sets=some(("fleet",), ("another",)),
        bound_identity_ids=some((IDENTITY,), (f"{IDENTITY}2",)),
        bound_vm_ids=some((VM_ID,), ("another",)),
    )
    claims = cases.claims(
        xms_mirid=chance.choice((VM, VM, SCALE_SET, None, f"/subscriptions/{SUBSCRIPTION}", "nonsense", IDENTITY)),
        xms_az_rid=chance.choice((None, None, VM, SCALE_SET)),
        **chance.choice(({}, OVERFLOW)),
    )
    machine = cases.machine(
        chance.choice(((PRINCIPAL,), ("another",))),
        scale_set=chance.choice(("", "fleet", "other")),
        vm_id=chance.choice(("", VM_ID)),
    )
    facts = Facts(
        machine=chance.choice((machine, machine, None, NO_FACTS.machine)),
        groups=chance.choice((frozenset({GROUP}), frozenset({"another"}), None, NO_FACTS.groups)),
    )
    form = cases.form(
        subscription_id=chance.choice(SUBSCRIPTIONS),
        vm_name=chance.choice(("", "web", "another")),
        vmss_name=chance.choice(("", "", "fleet")),
        resource_id=chance.choice(("", VM)),
    )
    return case(role, claims, facts, form)


@pytest.mark.parametrize("seed", range(20))
def test_the_verdict_is_that_of_the_decision(seed: int) -> None:
    """The first failure is the code of the refusal, and what the decision still needs is undecided."""
    chance = Random(seed)
    for _ in range(200):
        explained = random_case(chance)
        told = explanation_of(explained)
        decided = cases.outcome(
            explained.claims, explained.facts, role=explained.bounds, login=explained.form, machine_check="always"
        )
        shown = {check.code for check in told.checks if check.verdict == FAILED}
        assert shown == set(told.failures), "every failure has a row"
        if isinstance(decided, Verified):
            assert told.verdict == ADMITTED
        elif isinstance(decided, Needs):
            missing = {check.name for check in told.checks if check.verdict == UNDECIDED}
            assert (decided.machine, decided.groups) == ("machine" in missing, "groups" in missing)
        else:
            assert told.failures[0] is decided


def test_what_goes_on_record_has_the_lists_of_the_role_and_what_a_failed_check_found() -> None:
    role = Role(bound_subscription_ids=("Third", "another"), bound_service_principal_ids=(PRINCIPAL,))
    decision = explanation_of(case(role, facts=Facts(machine=cases.machine()))).decision
    recorded = {check.name: (check.verdict, check.expected, check.found) for check in decision.checks}
    assert decision.verdict == REFUSED
    assert recorded["bound_subscription_ids"] == ("failed", ("another", "third"), SUBSCRIPTION)
    assert recorded["bound_service_principal_ids"] == ("passed", (PRINCIPAL,), None)
    assert recorded["iss"] == ("passed", (), None)


def test_admitted_logins_of_one_role_and_one_shape_have_one_record() -> None:
    """So that the record can be remembered by them."""
    chance, recorded = Random(0), dict[object, Decision]()
    admitted = 0
    while admitted < 400:
        login = random_case(chance)
        plan = plan_of(login)
        try:
            verified = admit(plan, login)
        except Refused:
            continue
        if isinstance(verified, Verified):
            admitted += 1
            decision = explanation_of(login).decision
            lists = tuple(sorted((name, tuple(sorted(each))) for name, each in login.bounds.lists.items()))
            known = recorded.setdefault((lists, login.bounds.set_lists, plan.checks), decision)
            assert decision == known
    assert admitted > 1.5 * len(recorded)


def test_logins_of_two_token_types_do_not_share_a_record() -> None:
    """The record, which one login leaves for the others of its kind, names the type."""
    role = Role(bound_service_principal_ids=(PRINCIPAL,), bound_token_types=TOKEN_TYPES)
    logins = [case(role, replace(cases.claims(), token_type=token_type)) for token_type in TOKEN_TYPES]
    first, second = map(plan_of, logins)
    assert first is not second
    assert [explanation_of(login).decision.jwt_type for login in logins] == [*TOKEN_TYPES]
