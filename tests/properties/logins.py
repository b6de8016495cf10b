"""Random logins: claims, role, form and cloud from small worlds, so that they nearly fit each other.

A login is a dictionary of plain values; what makes it interesting is that it starts out consistent and is then
disturbed in a few places.
"""

from __future__ import annotations

import json
from copy import deepcopy
from random import Random
from typing import Any, Final

from cloudid_core.auth_method.bounds import Bounds
from cloudid_core.auth_method.claims import read
from cloudid_core.auth_method.decision import NO_FACTS, NOT_ASKED, Facts, Needs
from cloudid_core.auth_method.form import LoginForm
from cloudid_core.auth_method.roles import Role
from cloudid_core.errors import Refused
from cloudid_core.provider.compute import Machine
from cloudid_core.values import resource_id
from cloudid_core.values.folding import fold_location

from ..cases import decide
from ..minting import new_caches, said

SUBSCRIPTIONS: Final = ("50b50000-0000-4000-8000-00000000000a", "50b50000-0000-4000-8000-00000000000b")
PRINCIPALS: Final = ("0b1ec700-0000-4000-8000-00000000000c", "0b1ec700-0000-4000-8000-00000000000d")
GROUP_IDS: Final = tuple(f"9f000000-0000-4000-8000-00000000000{digit}" for digit in "abcd")
RESOURCE_GROUPS: Final = ("prod", "prod-evil", "pro")
NAMES: Final = ("web", "web2", "we", "fleet", "fleet_0", "flee")
LOCATIONS: Final = ("westus2", "West US 2", "westus", "east us")
KINDS: Final = (
    "Microsoft.Compute/virtualMachines",
    "Microsoft.Compute/virtualMachines",
    "Microsoft.Compute/virtualMachineScaleSets",
    "Microsoft.Web/sites",
)
PERSONAL: Final = ("scp", "preferred_username", "upn", "unique_name", "nonce", "at_hash", "c_hash")
IDENTITY: Final = "Microsoft.ManagedIdentity/userAssignedIdentities"
IDENTITIES: Final = tuple(
    f"/subscriptions/{SUBSCRIPTIONS[0]}/resourcegroups/identities/providers/{IDENTITY}/{name}"
    for name in ("worker", "worker2")
)
VM_IDS: Final = ("f0f0f0f0-0000-4000-8000-00000000000a", "f0f0f0f0-0000-4000-8000-00000000000b")
LISTS: Final = {
    "bound_service_principal_ids": PRINCIPALS,
    "bound_group_ids": GROUP_IDS,
    "bound_locations": LOCATIONS,
    "bound_subscription_ids": SUBSCRIPTIONS,
    "bound_resource_groups": RESOURCE_GROUPS,
    "bound_scale_sets": NAMES,
    "bound_identity_ids": IDENTITIES,
    "bound_vm_ids": VM_IDS,
}


def any_case(chance: Random, text: str) -> str:
    return chance.choice((text, text, text.upper(), text.title()))


def resource(chance: Random, subscription: str, group: str, kind: str, name: str) -> str:
    return any_case(chance, f"/subscriptions/{subscription}/resourcegroups/{group}/providers/{kind}/{name}")


def consistent(chance: Random) -> dict[str, Any]:
    """A machine that asks for what it is, of a role that binds some of what it is."""
    subscription, group = chance.choice(SUBSCRIPTIONS), chance.choice(RESOURCE_GROUPS)
    kind, name, scale_set = chance.choice(KINDS), chance.choice(NAMES), chance.choice(NAMES)
    principal, place = chance.choice(PRINCIPALS), chance.choice(LOCATIONS)
    groups, vm_id = chance.sample(GROUP_IDS, 2), chance.choice(VM_IDS)
    own_id = resource(chance, subscription, group, kind, name)
    claims: dict[str, Any] = {"oid": any_case(chance, principal)}
    if chance.random() < 0.5:
        claims["xms_mirid"] = own_id
    else:
        claims["xms_az_rid"] = own_id
        claims["xms_mirid"] = any_case(chance, chance.choice(IDENTITIES))
    if chance.random() < 0.8:
        claims["groups"] = [any_case(chance, group) for group in groups]
    elif chance.random() < 0.8:
        claims["_claim_names"] = {"groups": "src1"}
        if chance.random() < 0.5:
            claims["groups"] = []
    if kind.endswith("Sets"):
        scale_set = name
    elif not kind.endswith("Machines") or chance.random() < 0.3:
        scale_set = ""
    own = {
        "bound_service_principal_ids": principal,
        "bound_group_ids": groups[0],
        "bound_locations": place,
        "bound_subscription_ids": subscription,
        "bound_resource_groups": group,
        "bound_scale_sets": scale_set or name,
        "bound_identity_ids": claims["xms_mirid"] if "xms_az_rid" in claims else IDENTITIES[0],
        "bound_vm_ids": vm_id,
    }
    role: dict[str, Any] = {listed: [] for listed in LISTS}
    for listed in chance.sample(sorted(LISTS), chance.randint(1, 3)):
        role[listed] = [any_case(chance, own[listed]), *chance.sample(LISTS[listed], chance.randint(0, 1))]
    if chance.random() < 0.1:
        role["bound_service_principal_ids"] = ["*"]
    role["bound_token_types"] = ["app"]
    form = {"subscription_id": any_case(chance, subscription), "resource_group_name": any_case(chance, group)}
    form |= {"vm_name": "", "vmss_name": "", "resource_id": ""}
    asked = chance.choice(("vm_name", "vmss_name", "resource_id", ""))
    if asked:
        own_name = {"vm_name": name, "vmss_name": scale_set or name, "resource_id": own_id}[asked]
        form[asked] = any_case(chance, own_name)
    machine = {"location": place, "principals": [any_case(chance, principal), GROUP_IDS[0]], "scale_set": scale_set}
    machine["vm_id"] = vm_id if kind.endswith("virtualMachines") else ""
    cloud = {"machine": machine, "groups": groups}
    return {"claims": claims, "role": role, "form": form, "cloud": cloud, "machine_check": chance.choice(CHECKS)}


CHECKS: Final = ("always", "needed")


def disturb(chance: Random, login: dict[str, Any]) -> None:
    """Change one thing."""
    claims, role, form, cloud = (login[name] for name in ("claims", "role", "form", "cloud"))
    match chance.randint(0, 23):
        case 0:
            claims["oid"] = chance.choice(PRINCIPALS)
        case 1:
            claims["xms_mirid"] = resource(
                chance,
                chance.choice(SUBSCRIPTIONS),
                chance.choice(RESOURCE_GROUPS),
                chance.choice((*KINDS, IDENTITY)),
                chance.choice(NAMES),
            )
        case 2:
            claims.pop("xms_az_rid", None)
        case 3:
            claims.pop("groups", None)
        case 4:
            form["subscription_id"] = chance.choice(SUBSCRIPTIONS)
        case 5:
            form["resource_group_name"] = chance.choice(RESOURCE_GROUPS)
        case 6:
            form[chance.choice(("vm_name", "vmss_name"))] = chance.choice(("", *NAMES))
        case 7 | 8 | 9:
            listed = chance.choice(sorted(LISTS))
            role[listed] = chance.sample(LISTS[listed], chance.randint(0, 2))
        case 10:
            cloud["machine"] = None
        case 11:
            cloud["groups"] = chance.choice((None, [], [GROUP_IDS[3]]))
        case 12 if cloud["machine"]:
            cloud["machine"]["principals"] = chance.sample(PRINCIPALS, chance.randint(0, 1))
        case 13 if cloud["machine"]:
            cloud["machine"]["scale_set"] = chance.choice(("", *NAMES))
        case 22 if cloud["machine"]:
            cloud["machine"]["vm_id"] = chance.choice(("", *VM_IDS))
        case 14 | 19 | 23:
            claims.pop("xms_az_rid", None)
            claims.pop("xms_mirid", None)
        case 15:
            claims[chance.choice(("xms_az_rid", "xms_mirid"))] = no_machine(chance)
        case 16:
            role["bound_token_types"] = chance.choice((["user"], ["app", "user"]))
        case 17:
            claims[chance.choice(PERSONAL)] = chance.choice(("", "x", None))
        case 20 | 21:
            form[chance.choice(("subscription_id", "resource_group_name"))] = ""
        case 18:
            name, values = chance.choice((("idtyp", ("app", "user", "User")), ("sub", (*PRINCIPALS, ""))))
            claims[name] = any_case(chance, chance.choice(values))


def no_machine(chance: Random) -> str:
    """What a machine claim may say that is not the id of a resource in a resource group."""
    subscription = f"/subscriptions/{chance.choice(SUBSCRIPTIONS)}"
    group = f"{subscription}/resourcegroups/{chance.choice(RESOURCE_GROUPS)}"
    machine = f"{group}/providers/{chance.choice(KINDS)}/{chance.choice(NAMES)}"
    policy = "/providers/Microsoft.Authorization/policyAssignments/a"
    management_group = "/providers/Microsoft.Management/managementGroups/corp"
    extended = (each + policy for each in (management_group, subscription, machine))
    return any_case(chance, chance.choice(("", management_group, subscription, group, *extended)))


def random_login(chance: Random) -> dict[str, Any]:
    login = consistent(chance)
    for _ in range(chance.choice((0, 0, 1, 1, 2, 3))):
        disturb(chance, login)
    return login


CACHES: Final = new_caches()
"""One for all logins, so that what is remembered of one is there for the next."""


def bounds_of(role: dict[str, Any]) -> Bounds:
    """Return the bounds of a role, which keep the plans of the logins that they have seen."""
    lists: dict[str, Any] = {name: tuple(entries) for name, entries in role.items()}
    return Role(**lists).bounds


def verdict(login: dict[str, Any], bounds: Bounds | None = None) -> str:
    """Return what the code under test says: "admitted", or the name of the refusal's code. Facts are given as it asks.

    `bounds`: those of the login's role, if other logins are to use them too.
    """
    claims = read(json.dumps(said(**{"xms_mirid": None, "groups": None, **login["claims"]})).encode(), CACHES)
    bounds = bounds or bounds_of(login["role"])
    form = LoginForm(role="web", jwt="jwt", **login["form"])
    try:
        answer = decide(claims, NO_FACTS, bounds, form, login["machine_check"])
        if isinstance(answer, Needs):
            answer = decide(claims, facts_of(login["cloud"], answer), bounds, form, login["machine_check"])
    except Refused as refusal:
        return refusal.code.name
    assert not isinstance(answer, Needs)
    return "admitted"


def facts_of(cloud: dict[str, Any], needs: Needs) -> Facts:
    """The facts that were asked for, as the provider's adapters give them."""
    machine, groups = cloud["machine"], cloud["groups"]
    return Facts(
        machine=(machine and machine_of(machine)) if needs.machine else NOT_ASKED,
        groups=(None if groups is None else frozenset(group.lower() for group in groups))
        if needs.groups
        else NOT_ASKED,
    )


def machine_of(machine: dict[str, Any]) -> Machine:
    return Machine(
        resource_id=resource_id.parse(f"/subscriptions/{SUBSCRIPTIONS[0]}/resourceGroups/a/providers/B/c/d"),
        location=fold_location(machine["location"]),
        principals=frozenset(principal.lower() for principal in machine["principals"]),
        scale_set=machine["scale_set"],
        vm_id=machine["vm_id"].lower(),
    )


def changed(login: dict[str, Any]) -> dict[str, Any]:
    """A copy to change."""
    return deepcopy(login)
