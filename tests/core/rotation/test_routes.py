"""The routes of rotation, for both components."""

from __future__ import annotations

import pytest

from cloudid_core.errors import Code
from cloudid_core.rotation.record import Phase
from cloudid_core.values.secret import Secret
from tests.engines import NO_ID, SecretsEngine, configured_engine, engine_config
from tests.logins import configure_logins

from .rotating import OVERLAP_AND_MORE, rotating, with_auth_method

BOTH = pytest.mark.parametrize("path", ["cloud", "auth/cloud"])
IDLE = {
    "credential_source": None,
    "phase": "idle",
    "last_rotation": None,
    "next_rotation": None,
    "last_error": "",
    "note": "",
    "expires": None,
}


@BOTH
def test_a_rotation_from_its_beginning_to_its_end(path: str) -> None:
    world = rotating()
    with_auth_method(world, client_secret=world.add_secret(starting="au"))
    assert world.status(path) == {**IDLE, "credential_source": "client_secret"}
    old = world.configured(path)
    reply = world.ask("POST", f"{path}/rotate-root")
    assert (reply.status, reply.body) == (204, None)
    seen = world.status(path)
    assert (seen["phase"], seen["last_rotation"] is None, seen["note"]) == ("overlapping", False, "")
    world.pass_time(OVERLAP_AND_MORE)
    assert world.status(path)["phase"] == "idle"
    assert not world.knows(old)
    assert world.knows(world.configured(path))


def with_both_components() -> SecretsEngine:
    world = configured_engine()
    configure_logins(world)
    return world


READS = 'path "{path}/rotation" {{ capabilities = ["read"] }} path "{path}/config" {{ capabilities = ["{may}"] }}'


@BOTH
@pytest.mark.parametrize("may", ["read", "update"])
def test_the_status_has_the_code_of_the_provider_for_those_who_may_read_the_configuration(path: str, may: str) -> None:
    world = with_both_components()
    world.must("POST", f"{path}/config", {"client_secret": "wrong"})
    world.ask("POST", f"{path}/rotate-root")
    world.must("PUT", "sys/policies/acl/some", {"policy": READS.format(path=path, may=may)})
    token = world.must("POST", "auth/token/create", {"policies": ["some"]}).auth["client_token"]
    last_error = world.must("GET", f"{path}/rotation", token=token).data["last_error"]
    assert last_error.startswith("the provider answered 401")
    assert ("AADSTS7000215" in last_error) == (may == "read")


ROTATES = (
    'path "{path}/rotate-root" {{ capabilities = ["update"] }} path "{path}/config" {{ capabilities = ["{may}"] }}'
)


@BOTH
@pytest.mark.parametrize("may", ["read", "update"])
def test_the_code_of_the_provider_is_for_those_who_may_read_the_configuration(path: str, may: str) -> None:
    """It stands at the end of the error; what the provider says besides does nowhere."""
    world = with_both_components()
    world.must("POST", f"{path}/config", {"client_secret": "wrong"})
    world.must("PUT", "sys/policies/acl/some", {"policy": ROTATES.format(path=path, may=may)})
    token = world.must("POST", "auth/token/create", {"policies": ["some"]}).auth["client_token"]
    reply = world.ask("POST", f"{path}/rotate-root", None, token)
    assert (reply.status, reply.code) == (502, "provider_secret_refused")
    text = Code.PROVIDER_SECRET_REFUSED.text
    assert reply.body["errors"] == [f"{text}: AADSTS7000215" if may == "read" else text]
    assert "AADSTS7000215" in world.must("GET", f"{path}/rotation").data["last_error"]
    [warning] = world.must("GET", f"{path}/config").body["warnings"]
    assert "AADSTS7000215" in warning
    assert "provided" not in warning


@BOTH
@pytest.mark.parametrize(
    "field, value, code, told",
    [
        ("tenant_id", "elsewhere.example", Code.PROVIDER_TENANT_UNKNOWN, "AADSTS90002"),
        ("client_id", NO_ID, Code.PROVIDER_APPLICATION_UNKNOWN, "AADSTS700016"),
    ],
)
def test_a_tenant_or_application_that_does_not_exist_is_told(
    path: str, field: str, value: str, code: Code, told: str
) -> None:
    world = with_both_components()
    world.must("POST", f"{path}/config", {field: value, "force": True})
    reply = world.ask("POST", f"{path}/rotate-root", {"force": True})
    assert (reply.status, reply.code) == (502, code.wire)
    assert reply.body["errors"] == [f"{code.text}: {told}"]


@BOTH
def test_without_a_configuration_there_is_nothing_to_rotate(path: str) -> None:
    world = SecretsEngine()
    assert world.refused("POST", f"{path}/rotate-root") == (400, "config_missing")
    assert world.must("GET", f"{path}/rotation").data == IDLE


@BOTH
def test_without_a_root_secret_there_is_nothing_to_rotate(path: str) -> None:
    world = SecretsEngine()
    given = engine_config(world)
    del given["client_secret"]
    more = {"resource": "https://service"} if path != "cloud" else {}
    if more:
        del given["subscription_id"]
    world.must("POST", f"{path}/config", {**given, **more})
    assert world.refused("POST", f"{path}/rotate-root") == (400, "root_secret_unmanaged")


def test_a_root_secret_of_the_environment_is_not_ours_to_rotate() -> None:
    world = SecretsEngine(environment={"CLOUD_CLIENT_SECRET": Secret("from outside")})
    world.must("POST", "cloud/config", engine_config(world))
    assert world.refused("POST", "cloud/rotate-root") == (400, "root_secret_unmanaged")
    assert world.alive("password") == []


@BOTH
def test_a_shared_secret_is_rotated_only_by_force(path: str) -> None:
    world = with_auth_method(rotating())
    assert world.refused("POST", f"{path}/rotate-root") == (409, "root_secret_shared")
    assert world.alive("password") == []
    assert world.rotate(path, force=True) == 204


def test_when_the_deadline_comes_first_the_answer_says_where_to_look() -> None:
    world = rotating()
    world.behave(delays={"sign_in": 100})
    reply = world.ask("POST", "cloud/rotate-root", x_service_deadline="10")
    assert (reply.status, reply.data) == (202, {"rotation": "cloud/rotation"})
    assert reply.response.wake_at is not None
    assert world.status()["phase"] == "proving"


def test_a_call_while_a_rotation_is_under_way_goes_on_with_it() -> None:
    world = rotating()
    world.behave(delays={"sign_in": 30})
    assert world.ask("POST", "cloud/rotate-root", x_service_deadline="5").status == 202
    key = world.rotation().known_keys[0].id
    assert world.rotate() == 204
    assert world.rotate() == 200
    assert world.rotation().current is not None
    assert world.rotation().known_keys[0].id == key
    assert len(world.key_ids) == 2


def test_a_call_after_the_overlap_rotates_again() -> None:
    world = rotating()
    world.rotate()
    first = world.configured()
    world.pass_time(OVERLAP_AND_MORE)
    world.rotate()
    assert world.configured() != first


def test_trouble_while_the_secret_is_proven_is_no_failure_of_the_rotation() -> None:
    world = rotating()
    world.issue()  # there is an access token already
    world.fail("login", status=500)
    assert world.rotate() == 202
    assert world.rotation().phase is Phase.PROVING
    assert "500" in world.status()["last_error"]
    world.heal()
    world.pass_time(300)
    assert world.status()["phase"] == "overlapping"
    assert world.status()["last_error"] == ""


def test_no_secret_is_answered_by_rotation() -> None:
    world = rotating()
    world.rotate()
    secrets = [key.secret.reveal() for key in world.rotation().known_keys]
    body = world.ask("GET", "cloud/rotation").response.body.decode()
    assert secrets
    assert not any(secret in body for secret in secrets)
