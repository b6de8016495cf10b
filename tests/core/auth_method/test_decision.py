"""The decision: for every check a pair of cases that differ only in it; which facts it needs; what it has verified."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve, frozen

from cloudid_core.auth_method.bounds import Bounds
from cloudid_core.auth_method.checks import CHECKS, Stage
from cloudid_core.auth_method.claims import Claims
from cloudid_core.auth_method.decision import (
    NO_FACTS,
    Case,
    Facts,
    Needs,
    Verified,
    plan_of,
)
from cloudid_core.auth_method.form import LoginForm
from cloudid_core.errors import Code

from ...cases import LISTS, bounds, claims, form, machine, outcome
from ...minting import APP, GROUP, IDENTITY, PRINCIPAL, SCALE_SET, SITE, SUBSCRIPTION, TENANT, VM, VM_ID, machine_id

OTHER_ID = "deadbeef-0000-4000-8000-000000000001"
FLEXIBLE = machine_id("Microsoft.Compute/virtualMachines", "fleet_a1b2c3d4")
OVERFLOW: dict[str, Any] = {"groups": None, "_claim_names": {"groups": "src1"}}


@frozen
class Story:
    """A login that is admitted, with its facts at hand."""

    claims: Claims = claims()
    facts: Facts = Facts(machine=machine(), groups=frozenset())
    role: Bounds = bounds(bound_service_principal_ids=(PRINCIPAL,))
    form: LoginForm = form()

    def ends(self, machine_check: str = "always") -> object:
        verdict = outcome(self.claims, self.facts, role=self.role, login=self.form, machine_check=machine_check)
        return "admitted" if isinstance(verdict, Verified) else verdict


PLAIN = Story()
PERSONS = bounds(bound_service_principal_ids=(PRINCIPAL,), bound_token_types=("user",))
CONFIRMED = evolve(PLAIN, role=bounds(bound_subscription_ids=(SUBSCRIPTION,)))
UNIFORM = evolve(PLAIN, claims=claims(xms_mirid=SCALE_SET), facts=Facts(machine=machine(scale_set="fleet")))
MEMBER = evolve(PLAIN, claims=claims(xms_mirid=FLEXIBLE), facts=Facts(machine=machine(scale_set="Fleet")))
ASSIGNED = evolve(PLAIN, claims=claims(xms_az_rid=VM, xms_mirid=IDENTITY))
NO_PLACE = form(subscription_id="", resource_group_name="")

PAIRS = {
    "a role that binds nothing admits nobody": (
        PLAIN,
        evolve(PLAIN, role=bounds()),
        Code.ROLE_UNBOUND,
    ),
    "a bound that needs a machine, and no subscription": (
        CONFIRMED,
        evolve(CONFIRMED, form=form(subscription_id="")),
        Code.MACHINE_REQUIRED,
    ),
    "a bound that needs a machine, and no resource group": (
        evolve(PLAIN, form=form(resource_group_name="")),
        evolve(CONFIRMED, form=form(resource_group_name="")),
        Code.MACHINE_REQUIRED,
    ),
    "a token of another kind": (
        evolve(PLAIN, role=bounds(bound_service_principal_ids=("*",), bound_token_types=("App", "User"))),
        evolve(PLAIN, role=bounds(bound_service_principal_ids=("*",), bound_token_types=("User",))),
        Code.BOUND_TOKEN_TYPE_MISMATCH,
    ),
    "a person's token, unless the role says otherwise": (
        evolve(PLAIN, claims=claims(scp="user_impersonation"), role=PERSONS),
        evolve(PLAIN, claims=claims(scp="user_impersonation")),
        Code.BOUND_TOKEN_TYPE_MISMATCH,
    ),
    "another principal": (
        PLAIN,
        evolve(PLAIN, role=bounds(bound_service_principal_ids=(OTHER_ID,))),
        Code.BOUND_SERVICE_PRINCIPAL_MISMATCH,
    ),
    "an asterisk among others is none": (
        evolve(PLAIN, role=bounds(bound_service_principal_ids=("*",))),
        evolve(PLAIN, role=bounds(bound_service_principal_ids=("*", OTHER_ID))),
        Code.BOUND_SERVICE_PRINCIPAL_MISMATCH,
    ),
    "another group": (
        evolve(PLAIN, role=bounds(bound_group_ids=(OTHER_ID, GROUP))),
        evolve(PLAIN, role=bounds(bound_group_ids=(OTHER_ID,))),
        Code.BOUND_GROUP_MISMATCH,
    ),
    "no group at all": (
        evolve(PLAIN, role=bounds(bound_group_ids=(GROUP,))),
        evolve(PLAIN, role=bounds(bound_group_ids=(GROUP,)), claims=claims(groups=None)),
        Code.BOUND_GROUP_MISMATCH,
    ),
    "another group, says the directory": (
        evolve(
            PLAIN,
            role=bounds(bound_group_ids=(GROUP,)),
            claims=claims(**OVERFLOW),
            facts=Facts(groups=frozenset({GROUP})),
        ),
        evolve(
            PLAIN,
            role=bounds(bound_group_ids=(GROUP,)),
            claims=claims(**OVERFLOW),
            facts=Facts(groups=frozenset({OTHER_ID})),
        ),
        Code.BOUND_GROUP_MISMATCH,
    ),
    "groups that the directory cannot tell": (
        evolve(PLAIN, role=bounds(bound_group_ids=(GROUP,)), facts=Facts(groups=None)),
        evolve(PLAIN, role=bounds(bound_group_ids=(GROUP,)), facts=Facts(groups=None), claims=claims(**OVERFLOW)),
        Code.GROUPS_UNAVAILABLE,
    ),
    "no machine where resources are bound": (
        evolve(PLAIN, claims=claims(xms_mirid=None)),
        evolve(PLAIN, claims=claims(xms_mirid=None), role=bounds(bound_subscription_ids=(SUBSCRIPTION,))),
        Code.MACHINE_CLAIM_MISSING,
    ),
    "an identity is no machine": (
        evolve(PLAIN, claims=claims(xms_az_rid=VM, xms_mirid=IDENTITY), role=bounds(bound_resource_groups=("prod",))),
        evolve(PLAIN, claims=claims(xms_mirid=IDENTITY), role=bounds(bound_resource_groups=("prod",))),
        Code.MACHINE_CLAIM_MISSING,
    ),
    "another subscription is asked for": (
        PLAIN,
        evolve(PLAIN, form=form(subscription_id=OTHER_ID)),
        Code.SUBSCRIPTION_MISMATCH,
    ),
    "another resource group is asked for": (
        evolve(PLAIN, form=form(resource_group_name="PROD")),
        evolve(PLAIN, form=form(resource_group_name="prod-evil")),
        Code.RESOURCE_GROUP_MISMATCH,
    ),
    "another virtual machine is asked for": (
        evolve(PLAIN, form=form(vm_name="WEB")),
        evolve(PLAIN, form=form(vm_name="web2")),
        Code.VM_NAME_MISMATCH,
    ),
    "a scale set is no virtual machine": (
        UNIFORM,
        evolve(UNIFORM, form=form(vm_name="fleet")),
        Code.VM_NAME_MISMATCH,
    ),
    "another uniform set is asked for": (
        evolve(UNIFORM, form=form(vmss_name="FLEET")),
        evolve(UNIFORM, form=form(vmss_name="flee")),
        Code.VMSS_NAME_MISMATCH,
    ),
    "another flexible set is asked for": (
        evolve(MEMBER, form=form(vmss_name="FLEET")),
        evolve(MEMBER, form=form(vmss_name="flee")),
        Code.VMSS_NAME_MISMATCH,
    ),
    "a virtual machine of no set": (
        evolve(MEMBER, form=form(vmss_name="fleet")),
        evolve(MEMBER, form=form(vmss_name="fleet"), facts=Facts(machine=machine())),
        Code.VMSS_NAME_MISMATCH,
    ),
    "something else is in no set": (
        evolve(PLAIN, claims=claims(xms_mirid=SITE), form=form(resource_id=SITE)),
        evolve(PLAIN, claims=claims(xms_mirid=SITE), form=form(vmss_name="shop")),
        Code.VMSS_NAME_MISMATCH,
    ),
    "an instance of a uniform set is not asked for by name": (
        evolve(PLAIN, claims=claims(xms_mirid=f"{SCALE_SET}/virtualMachines/0")),
        evolve(PLAIN, claims=claims(xms_mirid=f"{SCALE_SET}/virtualMachines/0"), form=form(vm_name="0")),
        Code.VM_NAME_MISMATCH,
    ),
    "another resource is asked for": (
        evolve(PLAIN, claims=claims(xms_mirid=SITE), form=form(resource_id=SITE.upper())),
        evolve(PLAIN, claims=claims(xms_mirid=SITE), form=form(resource_id=SITE + "2")),
        Code.RESOURCE_ID_MISMATCH,
    ),
    "a child of the resource is asked for": (
        evolve(PLAIN, form=form(resource_id=VM)),
        evolve(PLAIN, form=form(resource_id=VM + "/extensions/x")),
        Code.RESOURCE_ID_MISMATCH,
    ),
    "a subscription that is not bound": (
        evolve(PLAIN, role=bounds(bound_subscription_ids=(SUBSCRIPTION.upper(),))),
        evolve(PLAIN, role=bounds(bound_subscription_ids=(OTHER_ID,))),
        Code.BOUND_SUBSCRIPTION_MISMATCH,
    ),
    "a resource group that is not bound": (
        evolve(PLAIN, role=bounds(bound_resource_groups=("x", "pROD"))),
        evolve(PLAIN, role=bounds(bound_resource_groups=("x", "pro"))),
        Code.BOUND_RESOURCE_GROUP_MISMATCH,
    ),
    "a uniform set that is not bound": (
        evolve(UNIFORM, role=bounds(bound_scale_sets=("Fleet",))),
        evolve(UNIFORM, role=bounds(bound_scale_sets=("Fleet2",))),
        Code.BOUND_SCALE_SET_MISMATCH,
    ),
    "a flexible set that is not bound": (
        evolve(MEMBER, role=bounds(bound_scale_sets=("fleet",))),
        evolve(MEMBER, role=bounds(bound_scale_sets=("flee",))),
        Code.BOUND_SCALE_SET_MISMATCH,
    ),
    "a machine outside any set": (
        evolve(MEMBER, role=bounds(bound_scale_sets=("fleet",)), form=form(vm_name="fleet_a1b2c3d4")),
        evolve(PLAIN, role=bounds(bound_scale_sets=("fleet",))),
        Code.BOUND_SCALE_SET_MISMATCH,
    ),
    "a resource of a set's name": (
        evolve(UNIFORM, role=bounds(bound_scale_sets=("fleet", "shop"))),
        evolve(PLAIN, claims=claims(xms_mirid=SITE), role=bounds(bound_scale_sets=("fleet", "shop"))),
        Code.BOUND_SCALE_SET_MISMATCH,
    ),
    "an identity that is not bound, beside its machine": (
        evolve(ASSIGNED, role=bounds(bound_identity_ids=(IDENTITY.upper(),))),
        evolve(ASSIGNED, role=bounds(bound_identity_ids=(f"{IDENTITY}2", IDENTITY[:-1]))),
        Code.BOUND_IDENTITY_MISMATCH,
    ),
    "an identity of another resource group": (
        evolve(PLAIN, claims=claims(xms_mirid=IDENTITY), role=bounds(bound_identity_ids=(IDENTITY,))),
        evolve(
            PLAIN,
            claims=claims(xms_mirid=IDENTITY.replace("/identities/", "/identities2/")),
            role=bounds(bound_identity_ids=(IDENTITY,)),
        ),
        Code.BOUND_IDENTITY_MISMATCH,
    ),
    "the machine's own identity": (
        evolve(PLAIN, claims=claims(xms_mirid=IDENTITY), role=bounds(bound_identity_ids=(IDENTITY,)), form=NO_PLACE),
        evolve(PLAIN, role=bounds(bound_identity_ids=(IDENTITY,)), form=NO_PLACE),
        Code.BOUND_IDENTITY_MISMATCH,
    ),
    "an identity where the machine should be": (
        evolve(PLAIN, claims=claims(xms_mirid=IDENTITY), role=bounds(bound_identity_ids=(IDENTITY,))),
        evolve(PLAIN, claims=claims(xms_az_rid=IDENTITY), role=bounds(bound_identity_ids=(IDENTITY,))),
        Code.BOUND_IDENTITY_MISMATCH,
    ),
    "a virtual machine that was made anew": (
        evolve(PLAIN, role=bounds(bound_vm_ids=(OTHER_ID, VM_ID.upper())), facts=Facts(machine=machine(vm_id=VM_ID))),
        evolve(PLAIN, role=bounds(bound_vm_ids=(VM_ID,)), facts=Facts(machine=machine(vm_id=OTHER_ID))),
        Code.BOUND_VM_ID_MISMATCH,
    ),
    "a virtual machine whose id the provider does not tell": (
        evolve(PLAIN, role=bounds(bound_vm_ids=(VM_ID,)), facts=Facts(machine=machine(vm_id=VM_ID))),
        evolve(PLAIN, role=bounds(bound_vm_ids=(VM_ID,)), facts=Facts(machine=machine())),
        Code.BOUND_VM_ID_MISMATCH,
    ),
    "what is no virtual machine has none of its ids": (
        evolve(PLAIN, role=bounds(bound_vm_ids=(VM_ID,)), facts=Facts(machine=machine(vm_id=VM_ID))),
        evolve(UNIFORM, role=bounds(bound_vm_ids=(VM_ID,)), facts=Facts(machine=machine(vm_id=VM_ID))),
        Code.BOUND_VM_ID_MISMATCH,
    ),
    "a machine that the provider does not know": (
        CONFIRMED,
        evolve(CONFIRMED, facts=Facts(machine=None)),
        Code.MACHINE_NOT_FOUND,
    ),
    "a machine that carries another identity": (
        evolve(CONFIRMED, facts=Facts(machine=machine(principals=(OTHER_ID, PRINCIPAL.upper())))),
        evolve(CONFIRMED, facts=Facts(machine=machine(principals=(OTHER_ID,)))),
        Code.MACHINE_IDENTITY_MISMATCH,
    ),
    "a machine without identities": (
        CONFIRMED,
        evolve(CONFIRMED, facts=Facts(machine=machine(principals=()))),
        Code.MACHINE_IDENTITY_MISMATCH,
    ),
    "a location that is not bound": (
        evolve(PLAIN, role=bounds(bound_locations=("eastus", "WEST us2"))),
        evolve(PLAIN, role=bounds(bound_locations=("eastus", "westus"))),
        Code.BOUND_LOCATION_MISMATCH,
    ),
    "no location": (
        evolve(PLAIN, role=bounds(bound_locations=("westus2",))),
        evolve(PLAIN, role=bounds(bound_locations=("westus2",)), facts=Facts(machine=machine(at=""))),
        Code.BOUND_LOCATION_MISMATCH,
    ),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_a_pair_of_cases_that_differ_in_one_check(pair: tuple[Story, Story, Code]) -> None:
    admitted, refused, code = pair
    assert admitted.ends() == "admitted"
    assert refused.ends() is code


def test_an_identity_that_could_not_be_read_matters_only_if_the_tokens_is_not_among_the_others() -> None:
    partial = evolve(machine(), unread=Code.PROVIDER_PERMISSION_DENIED)
    assert evolve(CONFIRMED, facts=Facts(machine=partial)).ends() == "admitted"
    lacking = evolve(machine(principals=(OTHER_ID,)), unread=Code.PROVIDER_PERMISSION_DENIED)
    assert evolve(CONFIRMED, facts=Facts(machine=lacking)).ends() is Code.PROVIDER_PERMISSION_DENIED


def test_every_code_of_the_decision_has_a_pair() -> None:
    assert {code for _, _, code in PAIRS.values()} == {check.code for check in CHECKS if check.stage > Stage.SOURCE}


def test_every_list_must_match() -> None:
    every = {
        "bound_service_principal_ids": (PRINCIPAL,),
        "bound_group_ids": (GROUP,),
        "bound_locations": ("westus2",),
        "bound_subscription_ids": (SUBSCRIPTION,),
        "bound_resource_groups": ("prod",),
        "bound_scale_sets": ("fleet",),
        "bound_identity_ids": (IDENTITY,),
        "bound_vm_ids": (VM_ID,),
    }
    assert every.keys() == set(LISTS)
    known = Facts(machine=machine(scale_set="Fleet", vm_id=VM_ID))
    member = evolve(MEMBER, claims=claims(xms_az_rid=FLEXIBLE, xms_mirid=IDENTITY), facts=known)
    assert evolve(member, role=bounds(**every)).ends() == "admitted"
    for name in every:
        assert isinstance(evolve(member, role=bounds(**{**every, name: (OTHER_ID,)})).ends(), Code)


@pytest.mark.parametrize(
    "names, counts",
    [
        ({"vmss_name": "fleet", "vm_name": "nonsense", "resource_id": SITE}, "vmss_name"),
        ({"vm_name": "fleet_a1b2c3d4", "resource_id": SITE}, "vm_name"),
        ({"resource_id": FLEXIBLE}, "resource_id"),
        ({}, "the claim"),
    ],
)
def test_the_first_name_that_is_given_counts(names: dict[str, str], counts: str) -> None:
    assert evolve(MEMBER, form=form(**names)).ends() == "admitted", counts


POLICY = "/providers/Microsoft.Authorization/policyAssignments/a1b2c3"
ELSEWHERE = {
    "nothing": ("", None, None),
    "a management group": ("/providers/Microsoft.Management/managementGroups/corp", None, None),
    "a subscription": (f"/subscriptions/{SUBSCRIPTION}{POLICY}", Code.SUBSCRIPTION_MISMATCH, None),
    "an extension resource": (f"{VM}{POLICY}", Code.SUBSCRIPTION_MISMATCH, Code.RESOURCE_GROUP_MISMATCH),
}


@pytest.mark.parametrize("value, subscription, group", ELSEWHERE.values(), ids=ELSEWHERE)
def test_a_claim_that_is_no_machines_id_is_as_none_but_may_contradict_the_form(
    value: str, subscription: Code | None, group: Code | None
) -> None:
    story = evolve(PLAIN, claims=claims(xms_az_rid=value, xms_mirid=VM), form=form(vm_name="other", vmss_name="other"))
    assert story.ends() == "admitted"
    assert evolve(story, form=form(subscription_id=OTHER_ID)).ends() == (subscription or "admitted")
    assert evolve(story, form=form(resource_group_name="other")).ends() == (group or "admitted")
    bound = evolve(story, role=bounds(bound_subscription_ids=(SUBSCRIPTION,)))
    assert bound.ends() is Code.MACHINE_CLAIM_MISSING
    verdict = outcome(story.claims, role=PLAIN.role, login=story.form, machine_check="always")
    assert isinstance(verdict, Verified)
    assert dict(verdict.metadata("web")) == {"role": "web", "jwt_type": "app", "tenant_id": TENANT, "app_id": APP}


def test_without_a_machine_claim_nothing_that_is_asked_for_can_be_checked() -> None:
    """And so it is not among what was verified."""
    login = form(subscription_id=OTHER_ID, vm_name="other", vmss_name="other")
    verdict = outcome(
        claims(xms_mirid=None), role=bounds(bound_service_principal_ids=("*",)), login=login, machine_check="always"
    )
    assert isinstance(verdict, Verified)
    assert verdict.metadata("web") == {"role": "web", "jwt_type": "app", "tenant_id": TENANT, "app_id": APP}


MACHINE = Needs(machine=True, groups=False)
NEEDS = {
    "principal": ("bound_service_principal_ids", PRINCIPAL, VM, None, None),
    "any principal": ("bound_service_principal_ids", "*", VM, None, None),
    "group": ("bound_group_ids", GROUP, VM, None, None),
    "subscription": ("bound_subscription_ids", SUBSCRIPTION, VM, MACHINE, None),
    "resource group": ("bound_resource_groups", "prod", VM, MACHINE, None),
    "uniform set": ("bound_scale_sets", "fleet", SCALE_SET, MACHINE, None),
    "flexible set": ("bound_scale_sets", "fleet", VM, MACHINE, MACHINE),
    "location": ("bound_locations", "westus2", VM, MACHINE, MACHINE),
    "identity": ("bound_identity_ids", IDENTITY, IDENTITY, None, None),
    "id of a virtual machine": ("bound_vm_ids", VM_ID, VM, MACHINE, MACHINE),
    "location of a set": ("bound_locations", "westus2", SCALE_SET, MACHINE, MACHINE),
}


@pytest.mark.parametrize("row", NEEDS.values(), ids=NEEDS)
def test_facts_are_asked_for_where_they_are_needed(row: tuple[str, str, str, Needs | None, Needs | None]) -> None:
    name, value, mirid, always, needed = row
    role = bounds(**{name: (value,)})
    for machine_check, wanted in (("always", always), ("needed", needed)):
        verdict = outcome(claims(xms_mirid=mirid), role=role, login=form(), machine_check=machine_check)
        assert verdict == wanted if wanted else isinstance(verdict, Verified)


@pytest.mark.parametrize("machine_check", ["always", "needed"])
def test_a_flexible_set_that_is_asked_for_needs_the_provider_whatever_is_bound(machine_check: str) -> None:
    role, login = bounds(bound_service_principal_ids=("*",)), form(vmss_name="fleet")
    assert outcome(claims(), role=role, login=login, machine_check=machine_check) == MACHINE
    uniform = outcome(claims(xms_mirid=SCALE_SET), role=role, login=login, machine_check=machine_check)
    assert isinstance(uniform, Verified)


def test_groups_are_asked_for_when_they_are_bound_and_too_many() -> None:
    many = claims(**OVERFLOW)
    assert outcome(many, role=bounds(bound_group_ids=(GROUP,)), login=form()) == Needs(machine=False, groups=True)
    assert isinstance(outcome(many, role=bounds(bound_service_principal_ids=("*",)), login=form()), Verified)


def test_all_facts_are_asked_for_at_once_and_each_only_once() -> None:
    role = bounds(bound_group_ids=(GROUP,), bound_locations=("westus2",))
    many = claims(**OVERFLOW)
    assert outcome(many, role=role, login=form()) == Needs(machine=True, groups=True)
    assert outcome(many, Facts(machine=machine()), role=role, login=form()) == Needs(machine=False, groups=True)
    assert outcome(many, Facts(groups=frozenset({GROUP})), role=role, login=form()) == MACHINE


@pytest.mark.parametrize(
    "facts", [Facts(machine=None, groups=None), Facts(machine=machine(principals=()), groups=frozenset())]
)
def test_facts_that_are_not_needed_have_no_say(facts: Facts) -> None:
    """What happens to be at hand changes no decision."""
    without, given = evolve(PLAIN, facts=NO_FACTS), evolve(PLAIN, facts=facts)
    assert outcome(given.claims, given.facts, role=given.role, login=given.form) == outcome(
        without.claims, without.facts, role=without.role, login=without.form
    )


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_what_can_be_refused_without_facts_never_needs_them(pair: tuple[Story, Story, Code]) -> None:
    """Checks that need no network come first, in whatever order the facts come."""
    _, refused, code = pair
    first = evolve(refused, facts=NO_FACTS).ends()
    assert first is code or isinstance(first, Needs)
    if first is code:
        for facts in (Facts(machine=None, groups=None), Facts(machine=machine(principals=()))):
            assert evolve(refused, facts=facts).ends() is code


def test_all_failures_can_be_collected() -> None:
    """A caller that explains goes on where the decision stops."""
    role = bounds(
        bound_service_principal_ids=(OTHER_ID,), bound_group_ids=(OTHER_ID,), bound_resource_groups=("other",)
    )
    login = form(subscription_id=OTHER_ID, vm_name="web2")
    case = Case(claims(), bounds=role, form=login)
    assert [check.code for check in plan_of(case).by_token if not check.holds(case)] == [
        Code.BOUND_SERVICE_PRINCIPAL_MISMATCH,
        Code.BOUND_GROUP_MISMATCH,
        Code.SUBSCRIPTION_MISMATCH,
        Code.VM_NAME_MISMATCH,
        Code.BOUND_RESOURCE_GROUP_MISMATCH,
    ]


LOCATED = bounds(bound_locations=("westus2",))


@pytest.mark.parametrize(
    "story, verified",
    [
        (evolve(PLAIN, facts=NO_FACTS), {"vm_name": "web"}),
        (evolve(PLAIN, role=LOCATED), {"vm_name": "web", "location": "westus2"}),
        (
            evolve(MEMBER, role=LOCATED),
            {"vm_name": "fleet_a1b2c3d4", "vmss_name": "Fleet", "location": "westus2"},
        ),
        (evolve(UNIFORM, facts=NO_FACTS), {"vmss_name": "fleet"}),
        (evolve(UNIFORM, role=LOCATED), {"vmss_name": "fleet", "location": "westus2"}),
        (evolve(PLAIN, claims=claims(xms_mirid=SITE), facts=NO_FACTS), {"resource_id": SITE}),
    ],
)
def test_what_was_verified_comes_from_the_claim_and_the_provider(story: Story, verified: dict[str, str]) -> None:
    verdict = outcome(story.claims, story.facts, role=story.role, login=form(resource_group_name="PROD"))
    assert isinstance(verdict, Verified)
    always = {
        "role": "web",
        "jwt_type": "app",
        "tenant_id": TENANT,
        "app_id": APP,
        "subscription_id": SUBSCRIPTION,
        "resource_group_name": "Prod",
    }
    assert verdict.metadata("web") == {**always, **verified}
