"""The root credential: which key it is, who else uses it, and whether it is ours to replace."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cloudid_core.deadline import Deadline
from cloudid_core.effects import Instant
from cloudid_core.errors import Code, Refused
from cloudid_core.provider.applications import Application, Password
from cloudid_core.provider.client import Credentials
from cloudid_core.rotation.root import find_root, hinted_key, is_managed, is_used_elsewhere, root_application
from cloudid_core.routing.components import mount_client
from cloudid_core.secrets_engine.config import Config
from cloudid_core.values.secret import Secret
from tests.engines import SecretsEngine, engine_config

from ..provider.cloud import Setting, reply
from .rotating import rotating, with_auth_method

NOW = 1000.0


def application(*passwords: tuple[str, str, Instant | None]) -> Application:
    made = tuple(Password(key_id, "", hint, ends_at) for key_id, hint, ends_at in passwords)
    return Application("o", "c", "root", "", made)


@pytest.mark.parametrize(
    "passwords, known, found",
    [
        ([("k", "abc", None)], set(), "k"),
        ([("k", "abc", NOW + 1), ("x", "xyz", None)], set(), "k"),
        ([("k", "abc", None), ("dead", "abc", NOW)], set(), "k"),
        ([("k", "abc", None), ("ours", "abc", None)], {"ours"}, "k"),
        ([("k", "abc", None), ("x", "abc", None)], set(), ""),
        ([("k", "ABC", None)], set(), ""),
        ([("k", "", None)], set(), ""),
        ([], set(), ""),
    ],
)
def test_a_key_is_known_by_its_hint_if_no_other_can_be_meant(
    passwords: list[tuple[str, str, Instant | None]], known: set[str], found: str
) -> None:
    assert hinted_key(application(*passwords), Secret("abcdef"), known, NOW) == found


def test_the_stored_configuration_is_found_for_both_components() -> None:
    world = with_auth_method(rotating())
    for path in ("cloud", "auth/cloud"):
        found = world.perform(find_root(world.context, world.mount(path)))
        assert found is not None
        assert found.record.client_secret
    assert world.perform(find_root(world.context, world.mount("sys"))) is None


def test_a_secret_is_used_elsewhere_if_another_mount_is_configured_with_it() -> None:
    world = rotating()
    secret = Secret(engine_config(world)["client_secret"])
    engine_id = world.mount().id
    assert not world.perform(is_used_elsewhere(world.context, engine_id, secret))
    with_auth_method(world)
    assert world.perform(is_used_elsewhere(world.context, engine_id, secret))
    assert not world.perform(is_used_elsewhere(world.context, engine_id, Secret("another")))


def test_a_secret_is_used_elsewhere_if_the_environment_supplies_it_there() -> None:
    world = SecretsEngine(environment={"AZURE_CLIENT_SECRET": Secret("platform's")})
    assert world.perform(is_used_elsewhere(world.context, world.mount().id, Secret("platform's")))


def test_only_a_stored_secret_that_counts_is_ours_to_replace() -> None:
    stored, none = Config(client_secret=Secret("x")), Config()
    plain, overriding = SecretsEngine().context, SecretsEngine(environment={"CLOUD_CLIENT_SECRET": Secret("y")}).context
    filling = SecretsEngine(environment={"AZURE_CLIENT_SECRET": Secret("y")}).context
    assert [is_managed(context, stored) for context in (plain, overriding, filling)] == [True, False, True]
    assert not any(is_managed(context, none) for context in (plain, overriding, filling))


@pytest.mark.parametrize("found", [0, 2])
def test_the_root_application_is_exactly_one(found: int) -> None:
    setting = Setting()
    listed = [{"id": f"o-{number}", "appId": "app"} for number in range(found)]
    setting.cloud.script("GET /v1.0/applications", reply(200, {"value": listed}))
    with pytest.raises(Refused) as caught:
        setting.world.perform(root_application(setting.client))
    assert caught.value.code is Code.REFERENCE_NOT_FOUND


def test_the_root_application_is_found_by_its_client_id() -> None:
    world = rotating()
    client = world.perform(mount_client(world.context, world.mount().id, Deadline(world.clock + 60)))
    assert world.perform(root_application(client)).object_id == world.root.id


def test_no_client_id_no_root_application() -> None:
    setting = Setting()
    nameless = replace(setting.client, credentials=Credentials(client_secret=Secret("x")))
    with pytest.raises(Refused) as caught:
        setting.world.perform(root_application(nameless))
    assert caught.value.code is Code.REFERENCE_NOT_FOUND
    assert setting.cloud.requests == []
