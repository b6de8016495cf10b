"""Statuses: one row for each condition that a client can bring about."""

from __future__ import annotations

import pytest

from tests.installation import Installation
from tests.wire.raw import NOT_HERE, codes, send, token_with, told

DENIED = {"errors": ["permission denied"], "codes": ["permission_denied"]}


@pytest.mark.parametrize(
    "method, target, body",
    [
        ("POST", "auth/cloud/config", b'{"client_id": "c"}'),
        ("POST", "auth/cloud/role/web", b"{}"),
        ("DELETE", "auth/cloud/role/web", b""),
        ("DELETE", "auth/cloud/role/nobody", b""),
        ("DELETE", "auth/cloud/config", b""),
        ("PUT", "sys/policies/acl/app", b'{"policy": ""}'),
        ("DELETE", "sys/policies/acl/app", b""),
        ("POST", "sys/auth/new", b'{"type": "cloud"}'),
        ("DELETE", "sys/auth/cloud", b""),
        ("POST", "sys/auth/cloud/tune", b'{"max_lease_ttl": "1h"}'),
        ("PUT", "sys/leases/revoke", b'{"lease_id": "unknown"}'),
        ("POST", "auth/token/revoke-self", b""),
    ],
)
def test_a_change_that_leaves_nothing_to_say_has_no_body(
    furnished: Installation, method: str, target: str, body: bytes
) -> None:
    response = send(furnished, method, target, body)
    assert (response.status, response.body) == (204, b"")
    assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "method, target, body",
    [
        ("POST", "auth/cloud/role/web", b'{"token_tll": 5}'),
        ("PUT", "sys/policies/acl/App", b'{"policy": ""}'),
        ("POST", "sys/auth/new", b'{"type": "cloud", "config": {"x": 1}}'),
    ],
)
def test_a_change_with_warnings_has_the_envelope(
    furnished: Installation, method: str, target: str, body: bytes
) -> None:
    response = send(furnished, method, target, body)
    assert response.status == 200
    assert (len(told(response)["warnings"]), told(response)["data"]) == (1, None)


@pytest.mark.parametrize(
    "method, target",
    [
        ("GET", "auth/cloud/config"),
        ("GET", "auth/cloud/role/nobody"),
        ("LIST", "auth/cloud/role"),
        ("GET", "auth/cloud/role?list=true"),
        ("LIST", "cloud/roles"),
        ("GET", "cloud/roles/nobody"),
        ("GET", "sys/policies/acl/nobody"),
        ("LIST", "sys/leases/lookup"),
        ("GET", "sys/remount/status/unknown"),
    ],
)
def test_where_nothing_is_no_error_is_told(service: Installation, method: str, target: str) -> None:
    """An empty list is one of these cases."""
    response = send(service, method, target)
    assert (response.status, told(response)) == (404, NOT_HERE)


@pytest.mark.parametrize(
    "method, target, status, code",
    [
        ("GET", "nowhere/x", 404, "no_handler"),
        ("GET", "auth/nowhere/login", 404, "no_handler"),
        ("GET", "auth", 404, "no_handler"),
        ("POST", "nowhere", 404, "no_handler"),
        ("GET", "auth/cloud/nothing", 404, "unsupported_path"),
        ("GET", "sys/nothing", 404, "unsupported_path"),
        ("GET", "auth/cloud/login", 405, "unsupported_operation"),
        ("DELETE", "auth/cloud/login", 405, "unsupported_operation"),
        ("LIST", "auth/cloud/config", 405, "unsupported_operation"),
        ("POST", "auth/cloud/role", 405, "unsupported_operation"),
        ("DELETE", "sys/health", 405, "unsupported_operation"),
    ],
)
def test_what_is_not_offered_is_told_to_those_who_may_ask(
    service: Installation, method: str, target: str, status: int, code: str
) -> None:
    """Without a good token, or against the policies, every path answers alike."""
    response = send(service, method, target)
    assert (response.status, codes(response)) == (status, [code])
    nobody = token_with(service, "")
    for token in (None, "", "wrong", "cs.wrong", nobody):
        response = send(service, method, target, token=token)
        assert (response.status, told(response)) == (403, DENIED)


@pytest.mark.parametrize("target", ["auth/cloud/config", "auth/cloud/role/web", "sys/auth", "auth/token/lookup-self"])
@pytest.mark.parametrize("token", [None, "", "wrong", "root2", "x" * 20_000, "ü", "two words"])
def test_without_a_good_token_everything_is_denied(furnished: Installation, target: str, token: str | None) -> None:
    response = send(furnished, "GET", target, token=token)
    assert (response.status, told(response)) == (403, DENIED)


def test_a_policy_decides_by_capability(furnished: Installation) -> None:
    """To create needs another capability than to update, where a thing may exist already."""
    token = token_with(furnished, 'path "auth/cloud/role/*" { capabilities = ["create"] }')
    body = b'{"bound_locations": "westus2"}'
    assert send(furnished, "POST", "auth/cloud/role/new", body, token=token).status == 204
    assert send(furnished, "POST", "auth/cloud/role/new", body, token=token).status == 403
    assert send(furnished, "GET", "auth/cloud/role/new", token=token).status == 403


def test_a_list_is_asked_about_with_a_final_slash(furnished: Installation) -> None:
    """A rule for the path with the slash decides before one for the path without."""
    allowed = token_with(furnished, 'path "auth/cloud/role/" { capabilities = ["list"] }')
    assert send(furnished, "LIST", "auth/cloud/role", token=allowed).status == 200
    assert send(furnished, "GET", "auth/cloud/role/?list=true", token=allowed).status == 200
    denied = token_with(
        furnished,
        'path "auth/cloud/role" { capabilities = ["list"] }\npath "auth/cloud/role/" { capabilities = ["deny"] }',
    )
    assert send(furnished, "LIST", "auth/cloud/role", token=denied).status == 403


def test_a_list_is_denied_by_an_exact_rule_whatever_wildcards_grant(furnished: Installation) -> None:
    """The rule has no slash at its end, as most people write it."""
    granted = 'path "auth/*" { capabilities = ["read", "list"] }\n'
    token = token_with(furnished, granted + 'path "auth/cloud/role" { capabilities = ["deny"] }')
    for method, target in (("LIST", ""), ("LIST", "/"), ("GET", "?list=true"), ("GET", "/?list=true")):
        assert send(furnished, method, f"auth/cloud/role{target}", token=token).status == 403
    assert send(furnished, "GET", "auth/cloud/role/web", token=token).status == 200


@pytest.mark.parametrize(
    "target, status",
    [("health", 200), ("health?activecode=218", 218), ("health?activecode=junk", 400), ("health?activecode=99", 400)],
)
def test_the_status_of_health_can_be_chosen(service: Installation, target: str, status: int) -> None:
    assert send(service, "GET", f"sys/{target}", token=None).status == status


def test_all_problems_of_a_request_are_told_at_once(service: Installation) -> None:
    body = b'{"token_ttl": "soon", "token_num_uses": "many"}'
    response = send(service, "POST", "auth/cloud/role/web", body)
    assert response.status == 400
    assert codes(response) == ["field_invalid", "field_invalid"]
    assert len(told(response)["errors"]) == 2


@pytest.mark.parametrize(
    "target, body",
    [
        ("auth/cloud/role/web", b'{"token_ttl": "canary"}'),
        ("auth/cloud/role/web", b'{"token_bound_cidrs": ["canary"]}'),
        ("auth/cloud/config", b'{"environment": "canary", "client_secret": ["canary"]}'),
        ("auth/cloud/login", b'{"role": "canary", "jwt": "canary", "subscription_id": "canary"}'),
        ("sys/policies/acl/app", b'{"policy": "canary {"}'),
        ("sys/auth/new", b'{"type": "canary"}'),
        ("sys/auth/cloud/tune", b'{"token_type": "canary"}'),
        ("sys/remount", b'{"from": "canary", "to": "canary/../x"}'),
        ("sys/capabilities", b'{"token": "canary", "paths": "x"}'),
        ("auth/cloud/role/web", b'{"canary'),
    ],
)
def test_no_error_repeats_what_was_sent(service: Installation, target: str, body: bytes) -> None:
    response = send(service, "POST", target, body)
    assert 400 <= response.status < 500
    assert b"canary" not in response.body
