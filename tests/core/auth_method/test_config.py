"""The configuration of an authentication method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from attrs import evolve

from cloudid_core import Secret
from cloudid_core.auth_method.config import Config
from cloudid_core.forms.environment import effective
from cloudid_core.secrets_engine.config import Config as EngineConfig
from cloudid_core.store import keys
from tests.installation import Installation
from tests.tokens import new_token, write_policy

PATH = "auth/cloud/config"
LEAST = {"tenant_id": "tenant", "resource": "https://resource"}


def stored(world: Installation) -> Any:
    return world.must("GET", PATH).data


def test_nothing_is_configured_at_first() -> None:
    assert Installation().ask("GET", PATH).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_the_least_configuration_reads_back_with_its_defaults(method: str) -> None:
    world = Installation()
    assert world.ask(method, PATH, LEAST).status == 204
    assert stored(world) == {
        "tenant_id": "tenant",
        "resource": "https://resource",
        "environment": "CloudPublicCloud",
        "client_id": "",
        "client_secret": "",
        "identity_token_audience": "",
        "identity_token_ttl": 3600,
        "max_retries": 3,
        "max_retry_delay": 60,
        "retry_delay": 4,
        "root_password_ttl": 15_724_800,
        "rotation_period": 0,
        "rotation_schedule": "",
        "rotation_window": 0,
        "disable_automated_rotation": False,
    }


@pytest.mark.parametrize(
    "field, value, shown",
    [
        ("tenant_id", "other", "other"),
        ("resource", "https://other", "https://other"),
        ("environment", "cloudchinacloud", "cloudchinacloud"),
        ("environment", "AzureUSGovernmentCloud", "AzureUSGovernmentCloud"),
        ("client_id", "id", "id"),
        ("client_secret", "secret", "secret"),
        ("identity_token_audience", "aud", "aud"),
        ("identity_token_ttl", "2h", 7200),
        ("max_retries", "0", 0),
        ("max_retry_delay", 90, 90),
        ("retry_delay", "2500ms", 2),
        ("root_password_ttl", "30d", 2_592_000),
        ("rotation_period", 5, 5),
        ("rotation_schedule", "0 3 * * *", "0 3 * * *"),
        ("disable_automated_rotation", "true", True),
    ],
)
def test_every_field_reads_back_and_the_others_stay(field: str, value: object, shown: object) -> None:
    world = Installation()
    world.must("POST", PATH, LEAST)
    before = stored(world)
    world.must("POST", PATH, {field: value})
    assert stored(world) == {**before, field: shown}


@pytest.mark.parametrize(
    "fields, code",
    [
        ({"tenant_id": ""}, "field_required"),
        ({"resource": ""}, "field_required"),
        ({"environment": "MoonCloud"}, "field_invalid"),
        ({"client_secret": "s", "identity_token_audience": "a"}, "fields_exclusive"),
        ({"rotation_period": 5, "rotation_schedule": "0 3 * * *"}, "rotation_conflict"),
        ({"rotation_period": 4}, "field_invalid"),
        ({"rotation_window": 3599, "rotation_schedule": "0 3 * * *"}, "field_invalid"),
        ({"rotation_window": 3600}, "rotation_window_conflict"),
        ({"rotation_window": 3600, "rotation_period": 5}, "rotation_window_conflict"),
        ({"rotation_schedule": "61 3 * * *"}, "field_invalid"),
        ({"max_retries": 21}, "field_invalid"),
        ({"max_retries": -1}, "field_invalid"),
        ({"retry_delay": "soon"}, "field_invalid"),
        ({"retry_delay": "250ms"}, "field_invalid"),
        ({"max_retry_delay": "1ns"}, "field_invalid"),
        ({"retry_delay": msgspec.Raw(b"9" * 400)}, "field_invalid"),
    ],
)
def test_what_cannot_work_is_refused_and_changes_nothing(fields: dict[str, object], code: str) -> None:
    world = Installation()
    world.must("POST", PATH, LEAST)
    before = stored(world)
    assert world.refused("POST", PATH, fields) == (400, code)
    assert stored(world) == before


@pytest.mark.parametrize("missing", ["tenant_id", "resource"])
def test_tenant_and_resource_are_required(missing: str) -> None:
    fields = {name: value for name, value in LEAST.items() if name != missing}
    assert Installation().refused("POST", PATH, fields) == (400, "field_required")


def test_rules_are_checked_on_what_is_stored_too() -> None:
    world = Installation()
    world.must("POST", PATH, {**LEAST, "client_secret": "s"})
    assert world.refused("POST", PATH, {"identity_token_audience": "a"}) == (400, "fields_exclusive")
    world.must("POST", PATH, {"identity_token_audience": "a", "client_secret": ""})


def test_the_environment_may_supply_what_is_required_and_is_not_stored() -> None:
    environment = {"CLOUD_TENANT_ID": Secret("outer"), "CLOUD_AD_RESOURCE": Secret("https://outer")}
    world = Installation(environment=environment)
    world.must("POST", PATH, {"client_id": "id"})
    assert (stored(world)["tenant_id"], stored(world)["client_id"]) == ("", "id")


def test_the_client_secret_can_be_left_out() -> None:
    world = Installation(redact_client_secret=True)
    world.must("POST", PATH, {**LEAST, "client_secret": "s3cret"})
    assert "client_secret" not in stored(world)


def test_a_deleted_configuration_is_gone_with_its_secret() -> None:
    world = Installation()
    world.must("POST", PATH, {**LEAST, "client_secret": "s"})
    assert world.ask("DELETE", PATH).status == 204
    assert world.ask("GET", PATH).status == 404
    assert world.ask("DELETE", PATH).status == 204
    world.must("POST", PATH, LEAST)
    assert stored(world)["client_secret"] == ""


def test_creating_and_changing_need_different_capabilities() -> None:
    world = Installation()
    write_policy(world, "creator", (PATH, ["create"]))
    creator = new_token(world, policies=["creator"])
    world.must("POST", PATH, LEAST, creator)
    assert world.ask("POST", PATH, LEAST, creator).status == 403


@pytest.mark.parametrize("seed", range(4))
def test_two_writes_at_once_lose_no_field(seed: int) -> None:
    world = Installation(seed)
    world.must("POST", PATH, LEAST)
    for fields in ({"client_id": "id"}, {"max_retries": 7}):
        world.spawn(world.asking("POST", PATH, fields))
    world.settle()
    assert (stored(world)["client_id"], stored(world)["max_retries"]) == ("id", 7)


def test_the_secret_is_not_printed() -> None:
    assert "s3cret" not in repr(Config(client_secret=Secret("s3cret")))


AS_WRITTEN = [("", ""), ("AzurePublicCloud", "AzurePublicCloud"), ("azurechinacloud", "azurechinacloud")]


@pytest.mark.parametrize("written, shown", AS_WRITTEN)
def test_a_mount_of_the_other_type_name_answers_as_the_clients_of_that_name_expect(written: str, shown: str) -> None:
    """They compare it with what was written, keep it in files, and divide pauses by a thousand million."""
    world = Installation()
    world.must("POST", "sys/auth/other", {"type": "azure"})
    given = {"environment": written} if written else {}
    world.must("POST", "auth/other/config", {**LEAST, **given, "client_id": "id", "client_secret": "s3cret"})
    data = world.must("GET", "auth/other/config").data
    assert "client_secret" not in data
    assert data["environment"] == shown
    assert (data["retry_delay"], data["max_retry_delay"]) == (4_000_000_000, 60_000_000_000)


def test_a_mount_of_our_own_type_name_answers_as_the_contract_says() -> None:
    world = Installation()
    world.must("POST", PATH, {**LEAST, "client_id": "id", "client_secret": "s3cret"})
    data = stored(world)
    assert (data["client_secret"], data["environment"]) == ("s3cret", "CloudPublicCloud")
    assert (data["retry_delay"], data["max_retry_delay"]) == (4, 60)


@pytest.mark.parametrize("tenant", ["my-tenant-id", "foo", "example.com", "0000000A-0000-0000-0000-000000000001", "t"])
def test_a_tenant_is_a_guid_or_a_host_name(tenant: str) -> None:
    world = Installation()
    world.must("POST", PATH, {**LEAST, "tenant_id": tenant})
    assert stored(world)["tenant_id"] == tenant


@pytest.mark.parametrize(
    "tenant", ["..", ".", "a..b", "a/b", "-a", "a-", "a b", "a\n", "é", "a" * 64, "a." * 130, "%2e"]
)
def test_no_other_tenant_is_stored_because_logins_would_fail_with_it(tenant: str) -> None:
    world = Installation()
    assert world.refused("POST", PATH, {**LEAST, "tenant_id": tenant}) == (400, "field_invalid")


@pytest.mark.parametrize("client_id, status", [("my client", 204), ("x" * 128, 204), ("x" * 129, 400), ("a\n", 400)])
def test_a_client_id_is_bounded_text(client_id: str, status: int) -> None:
    assert Installation().ask("POST", PATH, {**LEAST, "client_id": client_id}).status == status


def test_the_mask_of_a_secret_written_back_leaves_the_secret() -> None:
    """Earlier versions showed it: clients that kept what they read write it back."""
    world = Installation()
    world.must("POST", PATH, {**LEAST, "client_secret": "s3cret"})
    world.must("POST", PATH, {"client_secret": Secret.MASK, "client_id": "new"})
    assert (stored(world)["client_id"], stored(world)["client_secret"]) == ("new", "s3cret")


@pytest.mark.parametrize("variable", ["AZURE_CLIENT_SECRET", "CLOUD_CLIENT_SECRET"])
def test_a_variable_beside_its_written_partner(variable: str) -> None:
    """One that overrides contradicts it, and the error names the variable; one that only fills is ignored."""
    world = Installation(environment={variable: Secret("x")})
    reply = world.ask("POST", PATH, {**LEAST, "client_id": "c", "identity_token_audience": "a"})
    if variable.startswith("AZURE"):
        assert reply.status == 204
    else:
        assert reply.status == 400
        assert "the environment variable CLOUD_CLIENT_SECRET" in reply.body["errors"][0]


@pytest.mark.parametrize(
    "written, variable, counts",
    [
        ("", "AZURE_ENVIRONMENT", "CloudChinaCloud"),
        ("CloudPublicCloud", "AZURE_ENVIRONMENT", "CloudPublicCloud"),
        ("CloudPublicCloud", "CLOUD_ENVIRONMENT", "CloudChinaCloud"),
    ],
)
def test_a_variable_fills_the_environment_unless_one_was_written(written: str, variable: str, counts: str) -> None:
    """A default is not written. In both components alike."""
    variables = {variable: Secret("AzureChinaCloud")}
    for form in (Config, EngineConfig):
        config = form(environment=written) if written else form()
        assert effective(config, variables).cloud_name == counts


@pytest.fixture
def existing_clients() -> Installation:
    """A configured mount that was enabled as existing clients do it."""
    world = Installation()
    world.must("POST", "sys/auth/other", {"type": "azure"})
    world.must("POST", OTHER, LEAST)
    return world


OTHER = "auth/other/config"
DELAYS = ("retry_delay", "max_retry_delay")


@pytest.mark.parametrize("name", DELAYS)
def test_a_delay_is_at_most_an_hour(name: str) -> None:
    """Nobody can wait longer, and calls that fail once would never be tried again."""
    world = Installation()
    world.must("POST", PATH, {**LEAST, name: "1h"})
    for delay in (3601, 10**9, "1000000000", 10**25, "61m"):
        reply = world.ask("POST", PATH, {name: delay})
        assert (reply.status, reply.codes) == (400, ["field_invalid"]), delay
        assert "between 0 and 3600" in reply.body["errors"][0] or "292 years" in reply.body["errors"][0]
    assert stored(world)[name] == 3600


@pytest.mark.parametrize("name", DELAYS)
@pytest.mark.parametrize("form", [int, str])
def test_the_nanoseconds_that_were_read_leave_a_delay_as_it_is(
    existing_clients: Installation, name: str, form: Callable[[int], object]
) -> None:
    """However often they are written back; any other number of them is no delay."""
    world = existing_clients
    for delay in (None, 2, 60, 3600):
        if delay is not None:
            world.must("POST", OTHER, {name: delay})
        shown = world.must("GET", OTHER).data[name]
        for _ in range(3):
            world.must("POST", OTHER, {name: form(shown)})
            assert world.must("GET", OTHER).data[name] == shown
        assert world.refused("POST", OTHER, {name: form(shown + 10**9)}) == (400, "field_invalid")
        assert world.refused("POST", PATH, {**LEAST, name: form(shown)}) == (400, "field_invalid")


def test_a_stored_delay_that_nobody_can_wait_out_counts_as_an_hour(existing_clients: Installation) -> None:
    """It was stored before there was a bound; it can be written back, and health says so."""
    world = existing_clients
    key = keys.config(world.mount("auth/other").id)
    long: dict[str, Any] = {"retry_delay": 2e9, "max_retry_delay": 1e9}
    config = world.perform(world.context.records.update(key, Config, lambda found: evolve(found or Config(), **long)))
    assert config is not None
    assert (config.retry.retry_delay, config.retry.max_retry_delay) == (3600, 3600)
    data = world.must("GET", OTHER).data
    world.must("POST", OTHER, {name: data[name] for name in DELAYS})
    assert {name: world.must("GET", OTHER).data[name] for name in DELAYS} == {name: data[name] for name in DELAYS}
    world.restart()
    world.perform(world.service.upkeep())
    health = world.must("GET", "sys/health").body
    assert health["problems"] == ["delay_clamped"]
    assert health["problem_details"][0]["remedy"] == "cloudid write auth/other/config retry_delay=3600"
