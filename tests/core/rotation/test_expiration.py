"""The end of the root secret is known of secrets that a rotation made, as long as they count."""

from __future__ import annotations

from cloudid_core.rotation.expiration import root_password_expiration
from cloudid_core.secrets_engine.config import Config
from cloudid_core.values.secret import Secret

from .rotating import rotating

NAME = "root_password_expiration_date"


def test_the_end_is_shown_once_it_is_known() -> None:
    world = rotating()
    assert NAME not in world.must("GET", "cloud/config").data
    world.must("POST", "cloud/config", {"root_password_ttl": "10d"})
    world.rotate()
    assert world.must("GET", "cloud/config").data[NAME] == "2027-01-25T08:00:00Z"
    assert world.status()["expires"] == "2027-01-25T08:00:00Z"


def test_of_another_secret_nothing_is_known() -> None:
    world = rotating()
    world.rotate()
    another = Config(client_secret=Secret("another"))
    assert world.perform(root_password_expiration(world.context, world.mount(), another)) == {}
