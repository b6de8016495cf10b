"""Tokens that gave more than they were made for, or that nobody was told of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from cloudid_core.store import keys
from tests.installation import HOME, Installation
from tests.logins import LOGIN, ROLE, configure_logins, identity, login_form
from tests.tokens import look_up_self, new_token, write_policy

ROOTS: Final = (
    "root",
    "Root",
    "ROOT",
    "rOOt",
    " root",
    "root ",
    " ROOT ",
    "\troot",
    "root\n",
    "root,",
    "root, a",
    "a,RooT",
)
LOOKALIKES: Final = (
    "r\u03bf\u03bft",
    "\uff52\uff4f\uff4f\uff54",
    "root\u200b",
    "root\u0000",
    "ro\u017fot",
    "root/",
    "/root",
)


@pytest.mark.parametrize("name", [*ROOTS, *LOOKALIKES])
def test_no_spelling_of_root_makes_a_root_token(name: str) -> None:
    """Vault CVE-2025-5999, OpenBao CVE-2025-64761: another spelling of `root` was no root where that was refused."""
    world = Installation()
    machine = configure_logins(world)
    write_policy(world, "maker", ("auth/token/*", ["create", "update", "sudo"]), ("auth/cloud/role/*", ["update"]))
    token = new_token(world, policies=["maker"])
    ways: tuple[dict[str, Any], ...] = ({}, {"ttl": "1h"}, {"ttl": "1h", "no_default_policy": True})
    asked = [{"policies": given, **way} for given in (name, [name]) for way in ways]
    made = [world.ask("POST", f"auth/token/{at}", body, token) for at in ("create", "create-orphan") for body in asked]
    for rules in ({"allowed_policies": name}, {"allowed_policies_glob": name}, {"token_policies": name}, {}):
        world.ask("POST", "auth/token/roles/r", rules, token)
        made += [world.ask("POST", "auth/token/create/r", body, token) for body in ({}, *asked)]
    for field in ("token_policies", "policies"):
        world.ask("POST", ROLE, {field: name}, token)
        made.append(world.ask("POST", LOGIN, login_form(world, machine), ""))
    for reply in made:
        given = reply.auth["client_token"] if reply.status == 200 else token
        assert "root" not in look_up_self(world, given)["policies"]
        assert world.ask("GET", "sys/mounts", token=given).status == 403


REFUSED: Final[Mapping[str, tuple[dict[str, Any], dict[str, str]]]] = {
    "a signature that does not hold": ({"jwt": "$forged"}, {}),
    "a signature cut off": ({"jwt": "$cut"}, {}),
    "no signature": ({"jwt": "$unsigned"}, {}),
    "no token at all": ({"jwt": "nonsense"}, {}),
    "another audience": ({"jwt": "$other audience"}, {}),
    "another role": ({"role": "nobody"}, {}),
    "a role that binds others": ({"role": "abroad"}, {}),
    "a role of principals": ({"role": "others"}, {}),
    "another subscription": ({"subscription_id": "deadbeef-0000-4000-8000-000000000001"}, {}),
    "another group": ({"resource_group_name": "other"}, {}),
    "another machine": ({"vm_name": "other"}, {}),
    "another set": ({"vm_name": "", "vmss_name": "other"}, {}),
    "another resource": ({"vm_name": "", "resource_id": "/subscriptions/x"}, {}),
    "no subscription": ({"subscription_id": ""}, {}),
    "a field of another type": ({"vm_name": {"a": 1}}, {}),
    "an address that is not bound": ({"role": "elsewhere"}, {}),
    "a wrapping time that is none": ({}, {"x_vault_wrap_ttl": "soon"}),
    "a wrapping time that is too long": ({}, {"x_vault_wrap_ttl": "3000d"}),
    "a deadline that is none": ({}, {"x_service_deadline": "soon"}),
    "a namespace": ({}, {"x_vault_namespace": "team"}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_no_token_is_made_beside_a_refusal(name: str) -> None:
    """OpenBao CVE-2026-46405: a login was refused, and its token was made all the same and could be found."""
    world = Installation()
    machine = configure_logins(world)
    for role, bound in (
        ("abroad", {"bound_locations": "nowhere"}),
        ("others", {"bound_service_principal_ids": "deadbeef-0000-4000-8000-000000000001"}),
        ("elsewhere", {"bound_locations": machine["location"], "token_bound_cidrs": "10.0.0.0/8"}),
    ):
        world.must("POST", f"auth/cloud/role/{role}", bound)
    good = login_form(world, machine)
    jwt = good["jwt"]
    texts = {
        "$forged": jwt[:-8] + "AAAAAAAA",
        "$cut": jwt[:-8],
        "$unsigned": jwt.rpartition(".")[0] + ".",
        "$other audience": identity(world, machine["name"], "https://vault.azure.net")["access_token"],
    }
    fields, headers = REFUSED[name]
    body = {**good, **{field: texts.get(str(value), value) for field, value in fields.items()}}
    before = made(world)
    reply = world.ask("POST", LOGIN, body, "", HOME, **headers)
    assert (reply.status in (400, 403), set(reply.body)) == (True, {"errors", "codes"})
    assert made(world) == before
    assert world.ask("POST", LOGIN, good, "").status == 200
    assert made(world) != before


def made(world: Installation) -> list[str]:
    """Whatever a login writes."""
    return [key for prefix in (keys.TOKENS, keys.LEASES, keys.DUE, "wrapped/", "child/") for key in world.keys(prefix)]
