"""Requests by which policies were evaded, and endpoints that asked nobody who they are."""

from __future__ import annotations

from base64 import b64encode
from typing import Final

import pytest

from cloudid_core.effects import CallProvider
from tests.installation import Installation, Reply
from tests.logins import CONFIG, LOGIN, configure_logins, login_form
from tests.tokens import new_token, write_policy

CANARY: Final = "c4n4ry-of-a-header"


def configured() -> Installation:
    world = Installation()
    configure_logins(world)
    return world


def told(world: Installation, method: str, path: str, token: str) -> str:
    """All that an answer tells its client."""
    reply = world.ask(method, path, token=token)
    return f"{dict(reply.response.headers)} {reply.response.body.decode()}"


ROUNDABOUT: Final = (
    "auth/cloud/role/../config",
    "auth/cloud/role/x/../../config",
    "auth/cloud/role/%2e%2e/config",
    "auth/cloud/role/%2E./config",
    "auth/cloud/role/..%2fconfig",
    "auth/cloud/role/..%2Fconfig",
    "auth/cloud/role/%252e%252e/config",
    "auth/cloud/role/..%252fconfig",
    "auth/cloud/role//../config",
    "auth/cloud/role/..;/config",
    "auth/cloud/role/..\\config",
    "auth/cloud/role/.././config",
    "auth/cloud/role/\uff0e\uff0e/config",
    "AUTH/cloud/config",
)
"""Spellings of one path below another."""


@pytest.mark.parametrize("token", ["of a glob", "root"])
def test_no_spelling_of_a_path_leaves_what_a_glob_grants(token: str) -> None:
    """Vault CVE-2026-3605, HCSEC-2026-05: `..` behind a path that a glob grants led to what was denied."""
    world = configured()
    write_policy(world, "roles", ("auth/cloud/role/*", ["create", "read", "update", "delete", "list"]))
    text = new_token(world, policies=["roles"]) if token == "of a glob" else "root"
    secret = world.must("GET", CONFIG).data["client_secret"]
    before = dict(world.store.read_all(tuple(world.keys("mount/"))))
    for path in ROUNDABOUT:
        for method in ("GET", "HEAD", "POST", "DELETE"):
            reply = world.ask(method, path, {} if method == "POST" else None, text)
            absent = method == "DELETE" and reply.status == 204
            assert absent or reply.status in (400, 403, 404), (method, path, reply.status)
            assert secret not in str(reply.response.body)
    assert dict(world.store.read_all(tuple(world.keys("mount/")))) == before


LISTS: Final = (
    ("LIST", "auth/cloud/role"),
    ("LIST", "auth/cloud/role/"),
    ("GET", "auth/cloud/role?list=true"),
    ("GET", "auth/cloud/role?list=1"),
    ("GET", "auth/cloud/role?list=True"),
    ("GET", "auth/cloud/role/?list=true"),
    ("GET", "auth/cloud/role/?list=t"),
    ("HEAD", "auth/cloud/role?list=true"),
    ("LIST", "Auth/Cloud/Role"),
    ("LIST", "auth/cloud/role?list=false"),
)


@pytest.mark.parametrize("denied", ["auth/cloud/role", "auth/cloud/role/", "auth/cloud/role*", "auth/+/role/"])
def test_a_list_that_is_denied_is_denied_in_every_form(denied: str) -> None:
    """OpenBao GHSA-xp3c: LIST with another slash or as a GET passed a rule that denied it."""
    world = configured()
    write_policy(world, "all", ("auth/*", ["read", "list", "update"]), (denied, ["deny"]))
    token = new_token(world, policies=["all"])
    for method, path in LISTS:
        assert world.ask(method, path, token=token).status in (403, 404), (method, path)
        assert '"dev"' not in told(world, method, path, token)
    assert world.must("LIST", "auth/cloud/role").data == {"keys": ["dev"]}


@pytest.mark.parametrize("method", ["RENEW", "REVOKE", "ROLLBACK", "SCAN", "RECOVER", "HEADER", "ALIAS-LOOKAHEAD"])
def test_no_verb_asks_for_work_that_only_the_service_gives_itself(method: str) -> None:
    """OpenBao GHSA-rh46: what the core asks of its own backends could be asked for from outside."""
    world = configured()
    for path in ("auth/cloud/role/dev", "cloud/creds/web", "sys/leases/renew", LOGIN):
        assert world.refused(method, path, {}) == (405, "unsupported_operation")
        for header in ("x_http_method_override", "x_http_method", "x_method_override"):
            reply = world.ask("GET", "auth/cloud/role/dev", **{header: method})
            assert reply.body == {
                **world.must("GET", "auth/cloud/role/dev").body,
                "request_id": reply.body["request_id"],
            }
    assert world.must("GET", "auth/cloud/role/dev", x_http_method_override="DELETE").data
    assert world.must("GET", "auth/cloud/role/dev").data, "no header stood for the verb"


KEYS_TO_ALL: Final = (
    *(f"rekey{kind}/{step}" for kind in ("", "-recovery-key") for step in ("init", "update", "verify", "backup")),
    *(f"generate-{what}/{step}" for what in ("root", "recovery-token") for step in ("attempt", "update")),
    *("rotate/root/init", "rotate/recovery/init", "decode-token", "unseal", "seal", "raw/core/keyring"),
)


@pytest.mark.parametrize("path", KEYS_TO_ALL)
def test_nobody_asks_for_the_master_key_or_a_root_token_by_a_request(path: str) -> None:
    """Vault CVE-2026-5807: rekey and generate-root answered, and kept busy, whoever asked."""
    world = Installation()
    before = world.store.copy()
    for method in ("GET", "PUT", "POST", "DELETE"):
        body = {"nonce": "a", "key": "b", "otp": "c", "secret_shares": 1, "secret_threshold": 1}
        assert world.refused(method, f"sys/{path}", body, token="") == (403, "permission_denied")
        assert world.ask(method, f"sys/{path}", body).status == 404
    assert world.keys("") == list(before.list("", "", 1000))


@pytest.mark.parametrize("pattern", ["secret/{{identity.entity.name}}/*", "{{identity.entity.id}}", "a/{{ x }}/+"])
def test_no_text_of_a_caller_becomes_a_part_of_a_policy(pattern: str) -> None:
    """Vault CVE-2026-5006, OpenBao GHSA-59w7: names with `/`, `*` and `+` got into paths by way of templates.

    There are no templates: a policy that asks for one is refused, in every form of its text.
    """
    world = Installation()
    hcl = f'path "{pattern}" {{ capabilities = ["read"] }}'
    for text in (hcl, f'{{"path": {{"{pattern}": {{"capabilities": ["read"]}}}}}}', b64encode(hcl.encode()).decode()):
        assert world.refused("PUT", "sys/policies/acl/p", {"policy": text})[0] == 400
    assert world.ask("GET", "sys/policies/acl/p").status == 404


def test_no_header_of_a_client_reaches_the_provider() -> None:
    """Vault CVE-2026-4525: the client's `Authorization` was passed on to what stood behind a mount."""
    world = Installation()
    machine = configure_logins(world, bound_locations="westus2")
    tuned = {"passthrough_request_headers": ["Authorization", "X-Vault-Token", "Cookie", "X-One"]}
    world.must("POST", "sys/auth/cloud/tune", tuned)
    headers = dict.fromkeys(("authorization", "cookie", "x_one", "x_vault_token", "user_agent"), CANARY)
    reply: Reply = world.must("POST", LOGIN, login_form(world, machine), token="", **headers)
    assert reply.auth["client_token"]
    sent = [effect.request for _, effect in world.trace if isinstance(effect, CallProvider)]
    assert sent, "the machine's place was asked for"
    assert [one.url for one in sent if CANARY in f"{one.url} {dict(one.headers)} {one.body!r}"] == []
