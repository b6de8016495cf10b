"""The fields of both configurations about the root credential, executed: what the service does because of them."""

from __future__ import annotations

from typing import Any, Final

import pytest

from cloudid_core.store import keys
from tests.engines import engine_config
from tests.installation import ISSUER, Installation
from tests.logins import login_config, login_form

AUDIENCE: Final = "api://AzureADTokenExchange"
DAY: Final = 86_400
AUTH: Final = "auth/cloud"
ENGINE: Final = "cloud"
both = pytest.mark.parametrize("mount", [AUTH, ENGINE])


def configured(mount: str, **fields: Any) -> Installation:
    """A service with one of its components configured."""
    service = Installation()
    if mount == AUTH:
        service.must("POST", f"{mount}/config", {**login_config(service), **fields})
        service.must("POST", "auth/cloud/role/web", {"bound_subscription_ids": service.scene["subscriptions"]})
    else:
        service.must("POST", f"{mount}/config", {**engine_config(service), **fields})
        other = service.scene["applications"][1]
        service.must("POST", "cloud/roles/web", {"application_object_id": other["object_id"]})
    return service


def use(service: Installation, mount: str) -> int:
    """The status of a request that needs the provider: a login, or credentials."""
    if mount == ENGINE:
        return service.ask("GET", "cloud/creds/web").status
    form = login_form(service, service.scene["machines"][0], role="web")
    return service.ask("POST", "auth/cloud/login", form).status


def federate(service: Installation, mount: str) -> None:
    """Let the provider accept identity tokens of a mount."""
    mounts, kind = ("sys/auth", "auth") if mount == AUTH else ("sys/mounts", "secret")
    accessor = service.must("GET", mounts).data["cloud/"]["accessor"]
    federation = {
        "client_id": service.must("GET", f"{mount}/config").data["client_id"],
        "issuer": f"{ISSUER}/v1/identity/oidc/plugins",
        "subject": f"plugin-identity:root:{kind}:{accessor}",
        "audience": AUDIENCE,
    }
    service.cloud("POST", "/simulator/federations", federation)


def status(service: Installation, mount: str) -> Any:
    return service.must("GET", f"{mount}/rotation").data


@pytest.mark.contract(
    "auth config: identity_token_audience",
    "engine config: identity_token_audience",
    "auth config: identity_token_ttl",
    "engine config: identity_token_ttl",
    "authentication: client secret or identity token",
)
@both
@pytest.mark.parametrize("ttl, lifetime", [(None, 3600), ("10m", 600), (0, 3600)])
def test_identity_tokens_stand_in_for_a_secret(mount: str, ttl: Any, lifetime: int) -> None:
    """The provider accepts one for the audience, from this mount only, and it lives as long as the field says."""
    service = configured(mount)
    fields = {"client_secret": "", "identity_token_audience": AUDIENCE}
    service.must("POST", f"{mount}/config", fields if ttl is None else {**fields, "identity_token_ttl": ttl})
    assert service.must("GET", f"{mount}/config").data["identity_token_ttl"] == lifetime
    assert status(service, mount)["credential_source"] == "identity_token"
    service.advance(DAY)
    assert use(service, mount) == 502
    federate(service, mount)
    assert use(service, mount) == 200
    seen = service.simulator.world.assertions
    assert {assertion["lifetime"] for assertion in seen} == {lifetime}


@pytest.mark.contract("auth config: identity_token_audience", "engine config: identity_token_audience")
@both
def test_the_provider_must_allow_the_audience(mount: str) -> None:
    """Identity tokens for an audience that it does not know are refused."""
    service = configured(mount)
    federate(service, mount)
    for audience, expected in ((AUDIENCE, 200), (f"{AUDIENCE}2", 502)):
        service.must("POST", f"{mount}/config", {"client_secret": "", "identity_token_audience": audience})
        service.advance(DAY)
        assert use(service, mount) == expected


@pytest.mark.contract(
    "auth config: rotation_period", "auth config: rotation_schedule", "engine config: rotation fields"
)
@both
def test_nothing_rotates_by_default(mount: str) -> None:
    """Without a period or a schedule, the service does nothing at the provider by itself."""
    service = configured(mount)
    before = len(service.trace)
    service.pass_time(40 * DAY)
    assert (status(service, mount)["last_rotation"], status(service, mount)["next_rotation"]) == (None, None)
    assert service.calls(before) == []
    secret = engine_config(service)
    assert service.accepts(secret["client_id"], secret["client_secret"])


@pytest.mark.contract("limit: rotation_period", "auth config: rotation_period", "engine config: rotation fields")
@both
def test_the_shortest_period(mount: str) -> None:
    """Five seconds, and no less."""
    service = configured(mount, rotation_period=5)
    assert service.refused("POST", f"{mount}/config", {"rotation_period": 4}) == (400, "field_invalid")
    service.pass_time(4)
    assert status(service, mount)["last_rotation"] is None
    service.pass_time(2)
    assert status(service, mount)["last_rotation"] is not None


@pytest.mark.contract(
    "limit: rotation_window", "auth config: rotation_window without rotation_period", "engine config: rotation fields"
)
@both
def test_the_window_of_a_rotation(mount: str) -> None:
    """An hour, and no less. Only a schedule has one."""
    config = f"{mount}/config"
    service = configured(mount, rotation_schedule="0 9 * * *", rotation_window=3600)
    assert service.refused("POST", config, {"rotation_window": 3599}) == (400, "field_invalid")
    by_period = {"rotation_schedule": "", "rotation_period": 3600}
    assert service.refused("POST", config, by_period) == (400, "rotation_window_conflict")
    service.must("POST", config, {**by_period, "rotation_window": 0})
    assert service.refused("POST", config, {"rotation_window": 3600}) == (400, "rotation_window_conflict")


@pytest.mark.contract("auth config: rotation_period", "engine config: rotation fields")
@both
def test_a_period_rotates(mount: str) -> None:
    service = configured(mount, rotation_period=3600)
    service.pass_time(3500)
    assert status(service, mount)["last_rotation"] is None
    service.pass_time(200)
    first = status(service, mount)["last_rotation"]
    assert first is not None
    service.pass_time(3700)
    assert status(service, mount)["last_rotation"] > first
    assert use(service, mount) == 200


@pytest.mark.contract("auth config: rotation_schedule", "engine config: rotation fields")
@both
def test_a_schedule_rotates_at_its_slots(mount: str) -> None:
    """In UTC; the clock starts at eight in the morning."""
    service = configured(mount, rotation_schedule="30 9 * * *")
    assert status(service, mount)["next_rotation"].endswith("T09:30:00Z")
    service.pass_time(89 * 60)
    assert status(service, mount)["last_rotation"] is None
    service.pass_time(2 * 60)
    assert "T09:30:" in status(service, mount)["last_rotation"]


@pytest.mark.contract("auth config: rotation_window", "engine config: rotation fields")
@both
def test_what_does_not_succeed_in_its_window_waits_for_the_next_slot(mount: str) -> None:
    service = configured(mount, rotation_schedule="0 9 * * *", rotation_window="1h")
    service.fail("graph", status=503)
    service.pass_time(7500)
    service.heal()
    assert status(service, mount)["last_error"]
    service.pass_time(12 * 3600)
    assert status(service, mount)["last_rotation"] is None
    service.pass_time(12 * 3600)
    assert "T09:0" in status(service, mount)["last_rotation"]


@pytest.mark.contract(
    "limit: rotation_window is unbounded by default", "auth config: rotation_window", "engine config: rotation fields"
)
@both
def test_without_a_window_a_rotation_is_tried_until_the_next_slot(mount: str) -> None:
    """Slots are at nine; the provider is back after twenty hours."""
    service = configured(mount, rotation_schedule="0 9 * * *")
    service.fail("graph", status=503)
    service.pass_time(21 * 3600)
    assert status(service, mount)["last_error"]
    service.heal()
    service.pass_time(3 * 3600)
    rotated = status(service, mount)["last_rotation"]
    assert rotated is not None
    assert "T05:" <= rotated[10:] < "T08:"
    assert use(service, mount) == 200


@pytest.mark.contract("auth config: disable_automated_rotation", "engine config: rotation fields")
@both
def test_automated_rotation_can_be_disabled(mount: str) -> None:
    """All that was due is cancelled; a rotation on request still works, and unsetting the field starts anew."""
    service = configured(mount, rotation_period=3600)
    service.must("POST", f"{mount}/config", {"disable_automated_rotation": True})
    service.pass_time(2 * 3600)
    assert (status(service, mount)["last_rotation"], status(service, mount)["next_rotation"]) == (None, None)
    assert [key for key in service.keys(keys.DUE) if "rotation" in key] == []
    assert service.ask("POST", f"{mount}/rotate-root").status == 204
    service.pass_time(2 * 3600)
    before = status(service, mount)["last_rotation"]
    service.must("POST", f"{mount}/config", {"disable_automated_rotation": False})
    service.pass_time(3700)
    assert status(service, mount)["last_rotation"] > before


@pytest.mark.contract("auth config: period or schedule, not both", "engine config: rotation fields")
@both
def test_a_period_gives_way_to_a_schedule_in_one_write(mount: str) -> None:
    service = configured(mount, rotation_period=3600)
    schedule = {"rotation_schedule": "30 9 * * *"}
    assert service.ask("POST", f"{mount}/config", schedule).body["codes"] == ["rotation_conflict"]
    service.must("POST", f"{mount}/config", {**schedule, "rotation_period": 0})
    service.pass_time(4000)
    assert status(service, mount)["last_rotation"] is None
    service.pass_time(2000)
    assert "T09:30:" in status(service, mount)["last_rotation"]


@pytest.mark.contract("engine config: root_password_ttl")
@both
def test_a_new_root_secret_lives_as_long_as_it_says(mount: str) -> None:
    service = configured(mount, root_password_ttl="30d")
    service.must("POST", f"{mount}/rotate-root")
    assert status(service, mount)["expires"] == "2027-02-14T08:00:00Z"
    application = next(iter(service.simulator.world.directory.applications.all()))
    assert 30 * DAY - 60 < application.passwords[-1].ends_at - service.clock <= 30 * DAY
