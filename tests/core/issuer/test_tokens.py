"""Tokens of logins: what they say of whom, for how long, and who gets none."""

from __future__ import annotations

from typing import Any

import jwt
import pytest

from cloudid_core.issuer.facts import RESERVED
from tests.installation import ISSUER, Installation
from tests.logins import configure_logins, log_in, login_form
from tests.tokens import new_token, write_policy

ROLE, TOKEN = "identity/oidc/role/other", "identity/oidc/token/other"
AUDIENCE = "https://other.example"


def logged_in(world: Installation, **role: object) -> str:
    """The token of a machine that may ask for tokens, and a role for these."""
    policy = write_policy(world, "asks", ("identity/oidc/token/*", ["read"]), ("auth/token/create", ["update"]))
    machine = configure_logins(world, **{"token_policies": policy, **role})
    world.must("POST", ROLE, {"client_id": AUDIENCE})
    text: str = log_in(world, machine)["client_token"]
    return text


def claims(world: Installation, text: str) -> Any:
    """What a token says, once the published keys have verified it."""
    keys = jwt.PyJWKSet.from_dict(world.must("GET", "identity/oidc/.well-known/keys", token="").body)
    key = keys[jwt.get_unverified_header(text)["kid"]]
    return jwt.decode(
        text,
        key,
        ["RS256"],
        audience=AUDIENCE,
        issuer=f"{ISSUER}/v1/identity/oidc",
        options={"verify_exp": False, "verify_iat": False, "verify_nbf": False},
    )


def test_a_machine_gets_what_its_login_has_proven_signed() -> None:
    world = Installation()
    token = logged_in(world)
    machine, accessor = world.scene["machines"][0], world.mount("auth/cloud").accessor
    (principal,) = machine["principals"]
    started = int(world.clock)
    world.advance(60)
    data = world.must("GET", TOKEN, token=token).data
    assert {**data, "token": ""} == {"client_id": AUDIENCE, "token": "", "ttl": 3600}
    said = claims(world, data["token"])
    assert len(said.pop("jti")) == 32
    assert said.pop("app_id")
    assert said == {
        "iss": f"{ISSUER}/v1/identity/oidc",
        "sub": f"{accessor}:{principal}",
        "aud": AUDIENCE,
        "iat": int(world.clock),
        "nbf": int(world.clock),
        "exp": int(world.clock) + 3600,
        "auth_time": started,
        "oid": principal,
        "tenant_id": world.scene["tenant"],
        "jwt_type": "app",
        "subscription_id": machine["subscription"],
        "resource_group_name": machine["resource_group"],
        "vm_name": machine["name"],
        "location": machine["location"],
        "role": "dev",
        "mount_accessor": accessor,
    }


def test_a_template_chooses_what_is_said_and_nothing_of_who_it_is() -> None:
    world = Installation()
    token = logged_in(world)
    world.must("POST", ROLE, {"template": '{"vm": {{vm_name}}, "set": {{vmss_name}}, "share": 1.50}'})
    said = claims(world, world.must("GET", TOKEN, token=token).data["token"])
    assert said.keys() - RESERVED == {"vm", "set", "share"}
    assert (said["vm"], said["set"], said["share"]) == (world.scene["machines"][0]["name"], "", 1.5)
    assert said["sub"].startswith("auth_")


def test_a_token_ends_with_the_login() -> None:
    world = Installation()
    token = logged_in(world, token_ttl="10m")
    world.advance(400)
    data = world.must("GET", TOKEN, token=token).data
    assert data["ttl"] == 200
    assert claims(world, data["token"])["exp"] == int(world.clock) + 200


def test_a_batch_token_of_a_login_is_one_of_a_login() -> None:
    world = Installation()
    token = logged_in(world, token_type="batch")
    assert claims(world, world.must("GET", TOKEN, token=token).data["token"])["role"] == "dev"


@pytest.mark.parametrize("of", ["root", "child"])
def test_a_token_that_no_login_gave_proves_nothing(of: str) -> None:
    world = Installation()
    token = logged_in(world)
    made = new_token(world, token, meta={"role": "dev", "vm_name": "web"}) if of == "child" else "root"
    reply = world.ask("GET", TOKEN, token=made)
    assert (reply.status, reply.codes) == (403, ["login_required"])


def test_a_token_needs_a_policy_a_role_and_an_issuer() -> None:
    world = Installation()
    token = logged_in(world)
    world.must("POST", "sys/policies/acl/nothing", {"policy": ""})
    machine = world.scene["machines"][0]
    world.must(
        "POST",
        "auth/cloud/role/other",
        {"bound_locations": machine["location"], "token_policies": "nothing"},
    )
    body = login_form(world, machine, role="other")
    without = world.must("POST", "auth/cloud/login", body, "").auth["client_token"]
    assert world.ask("GET", TOKEN, token=without).codes == ["permission_denied"]
    assert world.ask("GET", "identity/oidc/token/unknown", token=token).codes == ["role_not_found"]
    world.restart(issuer="")
    assert world.ask("GET", TOKEN, token=token).codes == ["issuer_missing"]


def test_a_key_that_an_operator_asks_for_is_published_and_signs_one_period_later() -> None:
    world = Installation()
    token = logged_in(world, token_period="10d")
    before = jwt.get_unverified_header(world.must("GET", TOKEN, token=token).data["token"])["kid"]
    world.must("POST", "identity/oidc/key/default/rotate")
    published = [key["kid"] for key in world.must("GET", "identity/oidc/.well-known/keys").body["keys"]]
    assert published[0] == before
    for seconds, kid in ((0, before), (86_400, published[1])):
        world.advance(seconds)
        data = world.must("GET", TOKEN, token=token).data
        assert jwt.get_unverified_header(data["token"])["kid"] == kid
