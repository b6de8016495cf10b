"""What is mounted, as far as a caller may know."""

from __future__ import annotations

import pytest

from tests.simulation.installation import Installation


@pytest.fixture
def service() -> Installation:
    return Installation()


def test_without_a_token_only_what_was_made_visible_is_seen(service: Installation) -> None:
    assert service.must("GET", "sys/internal/ui/mounts", token="").data == {"secret": {}, "auth": {}}
    service.must("POST", "sys/auth/cloud/tune", {"listing_visibility": "unauth", "description": "West"})
    reply = service.must("GET", "sys/internal/ui/mounts", token="")
    assert reply.data["auth"] == {"cloud/": {"type": "cloud", "description": "West", "options": None}}
    assert reply.body["auth"] is None
    assert reply.body["secret"] == {}


@pytest.mark.parametrize(
    "path, mount", [("cloud/creds/web", "cloud/"), ("auth/cloud", "auth/cloud/"), ("sys/x", "sys/")]
)
def test_the_mount_of_a_path(service: Installation, path: str, mount: str) -> None:
    reply = service.must("GET", f"sys/internal/ui/mounts/{path}")
    assert reply.data["path"] == mount
    assert reply.data["accessor"]
    assert service.ask("GET", f"sys/internal/ui/mounts/{path}", token="").status == 403


def test_where_nothing_is_mounted_nobody_is_told(service: Installation) -> None:
    assert service.ask("GET", "sys/internal/ui/mounts/nowhere/x").status == 403
