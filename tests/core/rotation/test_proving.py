"""Mounts prove their credentials in the background."""

from __future__ import annotations

from tests.core.system.test_provider_health import problems, refuse_at_login, upkeep
from tests.engines import SecretsEngine
from tests.installation import Installation
from tests.logins import configure_logins


def test_an_idle_mount_with_a_dead_secret_is_noticed_within_five_minutes() -> None:
    world = Installation()
    configure_logins(world)
    upkeep(world, 0)
    refuse_at_login(7000222)(world)
    upkeep(world, 300)
    assert "client secret of auth/cloud" in problems(world)["credential_refused"]
    assert "logins of new machines" in problems(world)["credential_refused"]


def test_a_mount_without_a_credential_of_its_own_is_not_asked_to_prove_one() -> None:
    """Logins that need nothing of Azure but its keys take no credential."""
    world = Installation()
    world.must("POST", "auth/cloud/config", {"tenant_id": world.scene["tenant"], "resource": "https://r.test"})
    since = len(world.trace)
    upkeep(world, 600)
    assert world.calls(since) == []
    assert problems(world) == {}


def test_a_mount_proves_its_credential_no_more_often_than_it_must() -> None:
    world = SecretsEngine()
    world.must("POST", "cloud/config", world.config)
    since = len(world.trace)
    upkeep(world, 3600)
    assert 11 <= len(world.calls(since)) <= 16
