"""What is mounted, as far as a caller may know."""

from __future__ import annotations

import pytest

from tests.installation import Installation


@pytest.fixture
def service() -> Installation:
    return Installation()


def test_without_a_token_only_what_was_made_visible_is_seen(service: Installation) -> None:
    assert service.must("GET", "sys/internal/ui/mounts", token="").data == {"secret": {}, "auth": {}}
    service.must("POST", "sys/auth/cloud/tune", {"listing_visibility": "unauth", "description": "West"})
    reply = service.must("GET", "sys/internal/ui/mounts", token="")
    assert reply.data["auth"] == {"cloud/": {"type": "cloud", "description": "West", "options": None}}
    assert reply.auth is None
    assert reply.body["secret"] == {}


@pytest.mark.parametrize(
    "path, mount", [("cloud/creds/web", "cloud/"), ("auth/cloud", "auth/cloud/"), ("sys/x", "sys/")]
)
def test_a_look_up_returns_the_mount_of_a_path(service: Installation, path: str, mount: str) -> None:
    reply = service.must("GET", f"sys/internal/ui/mounts/{path}")
    assert reply.data["path"] == mount
    assert reply.data["accessor"]
    assert service.ask("GET", f"sys/internal/ui/mounts/{path}", token="").status == 403


def token_with(service: Installation, policy: str) -> str:
    service.must("PUT", "sys/policies/acl/some", {"policy": policy})
    body = {"policies": ["some"], "no_default_policy": True}
    token: str = service.must("POST", "auth/token/create", body).auth["client_token"]
    return token


@pytest.mark.parametrize(
    "pattern, sees",
    [
        ("cloud/creds/web", True),
        ("cloud/*", True),
        ("clo*", True),
        ("+/creds/web", True),
        ("+/*", True),
        ("cloud", False),
        ("clouds/*", False),
        ("auth/cloud/*", False),
    ],
)
def test_a_token_with_some_access_below_a_mount_sees_it(service: Installation, pattern: str, sees: bool) -> None:
    """No policy for the path of the question itself is needed: agents ask it for every template."""
    token = token_with(service, f'path "{pattern}" {{ capabilities = ["read"] }}')
    status = service.ask("GET", "sys/internal/ui/mounts/cloud/creds/web", token=token).status
    assert status == (200 if sees else 403)
    seen = service.must("GET", "sys/internal/ui/mounts", token=token).data["secret"]
    assert ("cloud/" in seen) is sees


def test_a_denied_mount_is_not_seen(service: Installation) -> None:
    token = token_with(service, 'path "cloud/*" { capabilities = ["deny"] }')
    assert service.ask("GET", "sys/internal/ui/mounts/cloud/creds/web", token=token).status == 403


def test_a_root_token_sees_all_mounts_and_a_bad_one_what_everybody_sees(service: Installation) -> None:
    data = service.must("GET", "sys/internal/ui/mounts").data
    assert (set(data["secret"]), set(data["auth"])) == ({"cloud/", "identity/", "sys/"}, {"cloud/", "token/"})
    assert service.must("GET", "sys/internal/ui/mounts", token="bad").data == {"secret": {}, "auth": {}}


def test_an_unmounted_path_is_denied_alike(service: Installation) -> None:
    assert service.ask("GET", "sys/internal/ui/mounts/nowhere/x").status == 403
