"""An oracle for the login decision: written from its description in words, naive, and sharing no code with it.

It knows texts, lists and dictionaries only. It tells *all* reasons against a login, in two sets: those that follow from
the token, the role and the form alone, and those that also need what the provider knows.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Reasons: TypeAlias = set[str]
Record: TypeAlias = dict[str, Any]


def low(text: str) -> str:
    return "".join(chr(ord(letter) + 32) if "A" <= letter <= "Z" else letter for letter in text)


def listed(text: str, entries: list[str]) -> bool:
    return any(low(text) == low(entry) for entry in entries)


def no_blanks(text: str) -> str:
    return text.replace(" ", "")


def machine_claim(claims: Record) -> str | None:
    """What `xms_az_rid` says, or else `xms_mirid`."""
    text: str | None = claims["xms_az_rid"] if "xms_az_rid" in claims else claims.get("xms_mirid")
    return text


def is_resource_of_a_group(pieces: list[str]) -> bool:
    """Whether it is /subscriptions/a/resourcegroups/b/providers/c/d/e, with further pairs, none of them "providers"."""
    words = [low(piece) for piece in pieces]
    starts = words[:2] == ["", "subscriptions"] and words[3:4] == ["resourcegroups"] and words[5:6] == ["providers"]
    return starts and len(words) >= 9 and len(words) % 2 == 1 and "providers" not in words[7::2]


def named_machine(claims: Record) -> Record | None:
    """What the machine claim names, unless it is an identity or not the id of a resource in a resource group."""
    text = machine_claim(claims)
    if text is None or not is_resource_of_a_group(text.split("/")):
        return None
    pieces = text.split("/")
    kind = low("/".join([pieces[6]] + [pieces[n] for n in range(7, len(pieces), 2)]))
    if kind == "microsoft.managedidentity/userassignedidentities":
        return None
    return {
        "id": text,
        "subscription": pieces[2],
        "group": pieces[4],
        "kind": kind,
        "name": pieces[-1],
        "is_vm": kind == "microsoft.compute/virtualmachines",
        "is_set": kind == "microsoft.compute/virtualmachinescalesets",
    }


def names_identity(claims: Record, entries: list[str]) -> bool:
    """Whether `xms_mirid` is one of these ids, and that of a user-assigned identity."""
    text = claims.get("xms_mirid") or ""
    pieces = low(text).split("/")
    is_identity = is_resource_of_a_group(pieces) and len(pieces) == 9
    is_identity = is_identity and pieces[6:8] == ["microsoft.managedidentity", "userassignedidentities"]
    return is_identity and listed(text, entries)


def kind_of(claims: Record) -> str:
    """Whose token it is: a person's, if it says so, or is about somebody else than its object, or shows a person."""
    subject = claims["oid"] if claims.get("sub") is None else claims["sub"]
    if low(claims.get("idtyp") or "") == "user" or low(subject) != low(claims["oid"]):
        return "user"
    signs = ["scp", "preferred_username", "upn", "unique_name", "nonce", "at_hash", "c_hash"]
    return "user" if any(claims.get(sign) is not None for sign in signs) else "app"


def judge(claims: Record, role: Record, form: Record, cloud: Record, machine_check: str) -> tuple[Reasons, Reasons]:
    """All reasons against a login: first those that need no network, then those that do.

    `cloud` is what the provider would say: `machine`, a record with `location`, `principals`, `scale_set` and `vm_id`,
    or None; `groups`, a list, or None when it cannot tell.
    """
    near, far = set(), set()
    machine = named_machine(claims)
    place_lists = ["bound_locations", "bound_subscription_ids", "bound_resource_groups"]
    binds_resources = any(role[name] for name in [*place_lists, "bound_scale_sets", "bound_vm_ids"])
    binds_principals = role["bound_service_principal_ids"] or role["bound_group_ids"] or role["bound_identity_ids"]

    # A role must bind something.
    if not binds_resources and not binds_principals:
        near.add("ROLE_UNBOUND")

    # The token is of a kind that the role admits.
    if kind_of(claims) not in role["bound_token_types"]:
        near.add("BOUND_TOKEN_TYPE_MISMATCH")

    # The principal is among the bound ones; "*" alone says that any will do.
    principals = role["bound_service_principal_ids"]
    if principals and principals != ["*"] and not listed(claims["oid"], principals):
        near.add("BOUND_SERVICE_PRINCIPAL_MISMATCH")

    # The user-assigned identity is bound by its id; a machine's own identity is none.
    if role["bound_identity_ids"] and not names_identity(claims, role["bound_identity_ids"]):
        near.add("BOUND_IDENTITY_MISMATCH")

    # One of the groups is bound; where the token cannot hold all groups, the directory says.
    if role["bound_group_ids"]:
        if not claims.get("groups") and "groups" in claims.get("_claim_names", {}):
            if cloud["groups"] is None:
                far.add("GROUPS_UNAVAILABLE")
            elif not any(listed(group, role["bound_group_ids"]) for group in cloud["groups"]):
                far.add("BOUND_GROUP_MISMATCH")
        elif not any(listed(group, role["bound_group_ids"]) for group in claims.get("groups", [])):
            near.add("BOUND_GROUP_MISMATCH")

    # Where machines are bound, the form says in which subscription and group the machine is. Elsewhere it need not.
    if binds_resources and not (form["subscription_id"] and form["resource_group_name"]):
        near.add("MACHINE_REQUIRED")

    # Without a machine nothing that concerns one can be satisfied. A claim that names something else must not
    # contradict what is asked for; an identity's group is its own, and says nothing of the machine.
    if machine is None:
        if binds_resources:
            near.add("MACHINE_CLAIM_MISSING")
        pieces = (machine_claim(claims) or "").split("/")
        is_elsewhere = not is_resource_of_a_group(pieces) and low("/".join(pieces[:2])) == "/subscriptions"
        if is_elsewhere and form["subscription_id"] and low(form["subscription_id"]) != low(pieces[2]):
            near.add("SUBSCRIPTION_MISMATCH")
        names_group = is_elsewhere and low("".join(pieces[3:4])) == "resourcegroups"
        if names_group and form["resource_group_name"] and low(form["resource_group_name"]) != low(pieces[4]):
            near.add("RESOURCE_GROUP_MISMATCH")
        return near, far

    # What is asked for, as far as anything is, is what the token names.
    if form["subscription_id"] and low(form["subscription_id"]) != low(machine["subscription"]):
        near.add("SUBSCRIPTION_MISMATCH")
    if form["resource_group_name"] and low(form["resource_group_name"]) != low(machine["group"]):
        near.add("RESOURCE_GROUP_MISMATCH")
    provider_names_set = False
    if form["vmss_name"]:
        if machine["is_vm"]:
            provider_names_set = True
        elif not machine["is_set"] or low(form["vmss_name"]) != low(machine["name"]):
            near.add("VMSS_NAME_MISMATCH")
    elif form["vm_name"]:
        if not machine["is_vm"] or low(form["vm_name"]) != low(machine["name"]):
            near.add("VM_NAME_MISMATCH")
    elif form["resource_id"] and low(form["resource_id"]) != low(machine["id"]):
        near.add("RESOURCE_ID_MISMATCH")

    # The bounds that the token itself can prove.
    if role["bound_subscription_ids"] and not listed(machine["subscription"], role["bound_subscription_ids"]):
        near.add("BOUND_SUBSCRIPTION_MISMATCH")
    if role["bound_resource_groups"] and not listed(machine["group"], role["bound_resource_groups"]):
        near.add("BOUND_RESOURCE_GROUP_MISMATCH")
    provider_binds_set = False
    if role["bound_scale_sets"]:
        if machine["is_vm"]:
            provider_binds_set = True
        elif not machine["is_set"] or not listed(machine["name"], role["bound_scale_sets"]):
            near.add("BOUND_SCALE_SET_MISMATCH")

    # Only virtual machines have such an id, and only the provider tells it.
    provider_tells_id = bool(role["bound_vm_ids"]) and machine["is_vm"]
    if role["bound_vm_ids"] and not machine["is_vm"]:
        near.add("BOUND_VM_ID_MISMATCH")

    # The provider is asked where only it can tell, and by default about every machine of a role that binds resources.
    only_it_can_tell = bool(role["bound_locations"]) or provider_names_set or provider_binds_set or provider_tells_id
    if only_it_can_tell or (binds_resources and machine_check == "always"):
        known = cloud["machine"]
        if known is None:
            far.add("MACHINE_NOT_FOUND")
            return near, far
        if not listed(claims["oid"], known["principals"]):
            far.add("MACHINE_IDENTITY_MISMATCH")
        if provider_names_set and low(known["scale_set"]) != low(form["vmss_name"]):
            far.add("VMSS_NAME_MISMATCH")
        if provider_binds_set and not (known["scale_set"] and listed(known["scale_set"], role["bound_scale_sets"])):
            far.add("BOUND_SCALE_SET_MISMATCH")
        if provider_tells_id and not listed(known["vm_id"], role["bound_vm_ids"]):
            far.add("BOUND_VM_ID_MISMATCH")
        places = [no_blanks(entry) for entry in role["bound_locations"]]
        if places and not listed(no_blanks(known["location"]), places):
            far.add("BOUND_LOCATION_MISMATCH")
    return near, far
