"""The success envelope: all members always, in exact types, whatever was asked."""

from __future__ import annotations

import re

import pytest

from tests.installation import Installation
from tests.simulation.operations import copy_of, with_leases
from tests.wire.raw import send, told

MEMBERS = [
    "request_id",
    "lease_id",
    "renewable",
    "lease_duration",
    "data",
    "wrap_info",
    "warnings",
    "auth",
    "mount_type",
]
HEADERS = {"content-type": "application/json", "cache-control": "no-store"}
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


@pytest.mark.parametrize(
    "method, target, body, mount_type",
    [
        ("GET", "auth/cloud/config", b"", "cloud"),
        ("LIST", "auth/cloud/role", b"", "cloud"),
        ("POST", "auth/cloud/role/web", b'{"unknown": 1}', "cloud"),
        ("GET", "auth/token/lookup-self", b"", "token"),
        ("POST", "auth/token/create", b"{}", "token"),
        ("GET", "sys/policies/acl/default", b"", "system"),
        ("GET", "cloud/config", b"", "cloud"),
    ],
)
def test_every_answer_has_all_members_in_one_order(
    furnished: Installation, method: str, target: str, body: bytes, mount_type: str
) -> None:
    response = send(furnished, method, target, body)
    answer = told(response)
    assert (response.status, response.headers) == (200, HEADERS)
    assert list(answer) == MEMBERS
    assert re.fullmatch(UUID, answer["request_id"])
    assert answer["mount_type"] == mount_type
    assert (answer["wrap_info"], answer["lease_id"]) == (None, "")
    assert response.body.endswith(b"}\n")


def test_what_does_not_apply_is_empty(furnished: Installation) -> None:
    answer = told(send(furnished, "GET", "auth/cloud/role/web"))
    assert (answer["renewable"], answer["lease_duration"], answer["warnings"], answer["auth"]) == (False, 0, None, None)


def test_a_token_is_in_auth_and_nothing_is_in_data(service: Installation) -> None:
    answer = told(send(service, "POST", "auth/token/create", b'{"ttl": "1h", "meta": {"team": "west"}}'))
    assert answer["data"] is None
    auth = answer["auth"]
    assert isinstance(auth.pop("client_token"), str)
    assert isinstance(auth.pop("accessor"), str)
    assert auth == {
        "policies": ["root"],
        "token_policies": ["root"],
        "metadata": {"team": "west"},
        "lease_duration": 3600,
        "renewable": True,
        "entity_id": "",
        "token_type": "service",
        "orphan": False,
        "mfa_requirement": None,
        "num_uses": 0,
    }


def test_lifetimes_are_integers() -> None:
    """Exact numbers: `3600`, and never `3600.0`."""
    service = copy_of(with_leases())
    lease_id = next(iter(service.answered))
    response = send(service, "PUT", "sys/leases/renew", b'{"lease_id": "%s", "increment": "10m"}' % lease_id.encode())
    assert b'"lease_duration":600,' in response.body
    answer = told(response)
    assert (answer["lease_id"], answer["renewable"], answer["data"]) == (lease_id, True, None)


def test_a_lease_is_told_beside_its_data() -> None:
    service = copy_of(with_leases())
    answer = told(send(service, "GET", "cloud/creds/existing"))
    assert answer["lease_id"].startswith("cloud/creds/existing/")
    assert (answer["lease_duration"], answer["renewable"]) == (3600, True)
    assert set(answer["data"]) == {"client_id", "client_secret", "tenant_id", "subscription_id"}


def test_times_are_rfc_3339(service: Installation) -> None:
    token = told(send(service, "POST", "auth/token/create", b'{"ttl": "1h"}'))["auth"]["client_token"]
    data = told(send(service, "GET", "auth/token/lookup-self", token=token))["data"]
    for name in ("issue_time", "expire_time"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", data[name])
    assert all(type(data[name]) is int for name in ("ttl", "creation_ttl", "creation_time"))


@pytest.mark.parametrize(
    "target, members",
    [
        ("sys/health", {"initialized", "sealed", "version", "standby"}),
        ("sys/seal-status", {"initialized", "sealed", "t", "n", "version"}),
        ("sys/leader", {"ha_enabled", "is_self", "leader_address"}),
        ("sys/init", {"initialized"}),
    ],
)
def test_the_state_of_the_service_is_plain_and_needs_no_token(
    service: Installation, target: str, members: set[str]
) -> None:
    response = send(service, "GET", target, token=None)
    assert (response.status, response.headers) == (200, HEADERS)
    assert members <= set(told(response))
    assert "request_id" not in told(response)


@pytest.mark.parametrize(
    "method, target, body",
    [
        ("GET", "sys/auth", b""),
        ("GET", "sys/auth/cloud", b""),
        ("GET", "sys/auth/cloud/tune", b""),
        ("GET", "sys/mounts", b""),
        ("GET", "sys/mounts/auth/cloud/tune", b""),
        ("GET", "sys/policy", b""),
        ("GET", "sys/policy/default", b""),
        ("POST", "sys/capabilities-self", b'{"paths": ["x", "y"]}'),
        ("POST", "sys/remount", b'{"from": "cloud", "to": "other"}'),
    ],
)
def test_old_clients_find_the_data_beside_the_envelope_too(
    service: Installation, method: str, target: str, body: bytes
) -> None:
    answer = told(send(service, method, target, body))
    assert answer["data"]
    assert {name: answer[name] for name in answer["data"]} == answer["data"]


def test_elsewhere_there_are_no_copies(furnished: Installation) -> None:
    assert list(told(send(furnished, "GET", "auth/cloud/role/web"))) == MEMBERS
