"""The issuer's roles: which services tokens of logins are for."""

from __future__ import annotations

import pytest

from tests.installation import Installation
from tests.tokens import new_token, write_policy

ROLES = "identity/oidc/role"
DEFAULTS = {"ttl": 3600, "template": "", "key": "default"}


def test_a_role_is_written_read_listed_and_deleted() -> None:
    world = Installation()
    assert world.ask("GET", f"{ROLES}/web").status == 404
    assert world.ask("LIST", ROLES).status == 404
    assert world.ask("POST", f"{ROLES}/Web", {"client_id": "https://other"}).status == 204
    assert world.must("GET", f"{ROLES}/web").data == {"client_id": "https://other", **DEFAULTS}
    assert world.must("LIST", ROLES).data == {"keys": ["web"]}
    assert world.ask("POST", f"{ROLES}/web", {"ttl": "10m"}).status == 204
    assert world.must("GET", f"{ROLES}/web").data == {**DEFAULTS, "client_id": "https://other", "ttl": 600}
    assert world.ask("DELETE", f"{ROLES}/WEB").status == 204
    assert world.ask("GET", f"{ROLES}/web").status == 404


def test_a_role_without_a_client_id_gets_one_that_stays() -> None:
    world = Installation()
    drawn = []
    for _ in range(2):
        world.must("POST", f"{ROLES}/web", {})
        drawn.append(world.must("GET", f"{ROLES}/web").data["client_id"])
    assert len(drawn[0]) == 32
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize(
    "field, value",
    [("key", "mine"), ("ttl", "59s"), ("ttl", "25h"), ("template", '{"sub": "plugin-identity:root:auth:x"}')],
)
def test_what_is_not_offered_is_refused_by_name(field: str, value: str) -> None:
    reply = Installation().ask("POST", f"{ROLES}/web", {field: value})
    assert (reply.status, reply.codes) == (400, ["field_invalid"])
    assert f'"{field}"' in reply.body["errors"][0]
    assert value not in reply.body["errors"][0]


def test_policies_tell_create_from_update() -> None:
    world = Installation()
    token = new_token(world, policies=[write_policy(world, "maker", (f"{ROLES}/*", ["create"]))])
    assert world.ask("POST", f"{ROLES}/web", {}, token).status == 204
    assert world.ask("POST", f"{ROLES}/web", {}, token).status == 403
