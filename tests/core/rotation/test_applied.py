"""Client secrets out of folders: written when they are new, and never over a secret that the service made."""

from __future__ import annotations

import pytest

from tests.engines import engine_config

from .rotating import Rotating, rotating, with_auth_method

both = pytest.mark.parametrize("mount", ["cloud", "auth/cloud"])


def applied(mount: str) -> tuple[Rotating, str]:
    """A world whose root secret was applied to a mount, and nowhere else."""
    world = rotating() if mount == "cloud" else with_auth_method(rotating())
    if mount != "cloud":
        world.must("POST", "cloud/config", world.promoted_application())
    secret = engine_config(world)["client_secret"]
    assert compared(world, mount, secret) == "other"
    world.must("POST", f"{mount}/config", {"client_secret": secret, "applied": True})
    return world, secret


def compared(world: Rotating, mount: str, secret: str) -> str:
    answer: str = world.must("POST", f"{mount}/config/applied", {"client_secret": secret}).data["client_secret"]
    return answer


@both
def test_what_was_applied_is_known_also_after_a_rotation(mount: str) -> None:
    world, secret = applied(mount)
    assert (compared(world, mount, secret), compared(world, mount, "new")) == ("same", "other")
    assert world.rotate(mount) == 204
    world.restart()
    assert (compared(world, mount, secret), compared(world, mount, "new")) == ("same", "made_here")


@both
def test_a_secret_of_the_service_is_replaced_only_by_who_insists(mount: str) -> None:
    world, secret = applied(mount)
    assert world.rotate(mount) == 204
    ours = world.configured(mount)
    write = {"client_secret": world.add_secret(), "applied": True}
    assert world.refused("POST", f"{mount}/config", write) == (409, "root_secret_made_here")
    assert world.configured(mount) == ours != secret
    world.must("POST", f"{mount}/config", {**write, "replace_root_secret": True})
    assert world.configured(mount) == write["client_secret"]
    assert compared(world, mount, write["client_secret"]) == "same"


def test_a_configuration_without_a_secret_gets_one() -> None:
    world, secret = applied("cloud")
    world.must("POST", "cloud/config", {"client_secret": ""})
    assert compared(world, "cloud", secret) == "other"


def test_nothing_of_it_is_read_back() -> None:
    world, _ = applied("cloud")
    assert "applied" not in str(world.must("GET", "cloud/config").body)
