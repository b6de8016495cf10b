"""The field `verify`: a write of a configuration first gets a token with it, and a refusal leaves what was stored."""

from __future__ import annotations

from typing import Any, Final

import pytest

from .rotating import Rotating, rotating, with_auth_method

both = pytest.mark.parametrize("mount", ["cloud", "auth/cloud"])
NO_ID: Final = "00000000-0000-0000-0000-000000000000"


def world() -> Rotating:
    return with_auth_method(rotating())


def stored(world: Rotating, mount: str) -> tuple[Any, str]:
    return world.must("GET", f"{mount}/config").data, world.configured(mount)


@both
def test_a_credential_that_works_is_written_and_the_field_is_not(mount: str) -> None:
    service = world()
    new = service.add_secret()
    start = len(service.trace)
    assert service.ask("POST", f"{mount}/config", {"client_secret": new, "verify": True}).status == 204
    assert [call for call in service.calls(start) if call.endswith("/token")]
    assert service.configured(mount) == new
    assert "verify" not in service.must("GET", f"{mount}/config").data


@both
def test_without_the_field_nothing_is_asked_of_the_provider(mount: str) -> None:
    service = world()
    start = len(service.trace)
    service.must("POST", f"{mount}/config", {"client_secret": "wrong"})
    assert service.calls(start) == []
    assert service.configured(mount) == "wrong"


@both
@pytest.mark.parametrize(
    "fields, code",
    [
        ({"client_secret": "wrong"}, "provider_secret_refused"),
        ({"client_id": NO_ID}, "provider_application_unknown"),
        ({"tenant_id": NO_ID}, "provider_tenant_unknown"),
        ({"client_secret": "wrong", "allowed_roles": "Reader"}, "provider_secret_refused"),
    ],
)
def test_what_the_provider_refuses_leaves_a_mount_that_works(mount: str, fields: dict[str, str], code: str) -> None:
    """Also the health of the mount: it was not its credential that was refused."""
    service = world()
    before, health = stored(service, mount), service.must("GET", "sys/health").body["problems"]
    assert service.refused("POST", f"{mount}/config", {**fields, "verify": True}) == (502, code)
    assert stored(service, mount) == before
    assert "wrong" not in str(service.must("GET", f"{mount}/config").body)
    assert service.must("GET", "sys/health").body["problems"] == health
    if mount == "cloud":
        service.must("GET", "cloud/creds/fresh")


@both
def test_the_rules_of_fields_come_first(mount: str) -> None:
    service = world()
    start = len(service.trace)
    fields = {"rotation_period": 3600, "rotation_schedule": "0 3 * * *", "verify": True}
    assert service.refused("POST", f"{mount}/config", fields) == (400, "rotation_conflict")
    assert service.calls(start) == []


@both
def test_a_secret_that_is_not_accepted_yet_is_tried_again(mount: str) -> None:
    service = world()
    service.behave(delays={"sign_in": 30})
    new, began = service.add_secret(), service.clock
    service.must("POST", f"{mount}/config", {"client_secret": new, "verify": True})
    assert service.configured(mount) == new
    assert service.clock - began >= 30


@both
def test_a_secret_that_is_not_accepted_in_time_is_not_written(mount: str) -> None:
    service = world()
    service.behave(delays={"sign_in": 1000})
    before, new = service.configured(mount), service.add_secret()
    start = len(service.trace)
    refused = service.refused("POST", f"{mount}/config", {"client_secret": new, "verify": True})
    assert refused == (502, "provider_secret_refused")
    assert len(service.calls(start)) > 3
    assert service.configured(mount) == before


@both
def test_an_unreachable_provider_writes_nothing(mount: str) -> None:
    service = world()
    before = service.configured(mount)
    service.fail("login", drop=True)
    refused = service.refused("POST", f"{mount}/config", {"client_secret": "new", "verify": True})
    assert refused == (503, "provider_unreachable")
    assert service.configured(mount) == before
