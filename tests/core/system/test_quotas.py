"""The routes of quotas."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from cloudid_core.errors import CloudidError
from cloudid_core.testing import Crashed, every_fault
from tests.installation import Installation

QUOTA = "sys/quotas/rate-limit/login"


def test_a_quota_is_written_read_listed_and_deleted() -> None:
    world = Installation()
    assert world.ask("GET", QUOTA).status == 404
    assert world.ask("LIST", "sys/quotas/rate-limit").status == 404
    body = {"name": "login", "path": "auth/cloud/", "rate": "2.5", "interval": "1m", "role": "Dev"}
    assert world.ask("POST", QUOTA, body).status == 204
    assert world.must("GET", QUOTA).data == {
        "name": "login",
        "type": "rate-limit",
        "path": "auth/cloud",
        "rate": 2.5,
        "interval": 60,
        "block_interval": 0,
        "role": "dev",
    }
    assert world.must("LIST", "sys/quotas/rate-limit").data == {"keys": ["login"]}
    world.must("POST", QUOTA, {"rate": 7})
    world.must("POST", QUOTA, {"inheritable": True})
    assert world.must("GET", QUOTA).data["inheritable"] is True
    assert (world.must("GET", QUOTA).data["rate"], world.must("GET", QUOTA).data["interval"]) == (7.0, 60)
    for _ in range(2):
        assert world.ask("DELETE", QUOTA).status == 204
    assert world.ask("GET", QUOTA).status == 404


@pytest.mark.parametrize(
    "fields, code",
    [
        ({}, "field_required"),
        ({"rate": 0}, "field_invalid"),
        ({"rate": -1}, "field_invalid"),
        ({"rate": "nan"}, "field_invalid"),
        ({"rate": "inf"}, "field_invalid"),
        ({"rate": "often"}, "field_invalid"),
        ({"rate": 1e-310}, "field_invalid"),
        ({"rate": 1e300}, "field_invalid"),
        ({"rate": 1, "interval": 0}, "field_invalid"),
        ({"rate": 1, "block_interval": -1}, "field_invalid"),
        ({"rate": 1, "role": "dev"}, "field_required"),
        ({"rate": 1, "path": "nowhere"}, "mount_not_found"),
    ],
)
def test_a_quota_that_makes_no_sense_is_refused(fields: dict[str, Any], code: str) -> None:
    assert Installation().refused("POST", QUOTA, fields) == (400, code)


def test_a_second_quota_for_the_same_requests_is_refused() -> None:
    world = Installation()
    world.must("POST", QUOTA, {"rate": 1000, "path": "cloud"})
    assert world.refused("POST", "sys/quotas/rate-limit/other", {"rate": 2, "path": "/cloud/"}) == (
        400,
        "field_invalid",
    )


def test_a_mount_with_capital_letters_has_a_quota() -> None:
    world = Installation()
    world.must("POST", "sys/mounts/Team/D", {"type": "cloud"})
    world.must("POST", QUOTA, {"rate": 1, "interval": "1h", "path": "Team/D/config"})
    assert [world.ask("GET", "Team/D/config").status for _ in range(2)] == [200, 429]


def test_paths_can_be_exempt() -> None:
    world = Installation()
    assert "sys/health" in world.must("GET", "sys/quotas/config").data["rate_limit_exempt_paths"]
    world.must("POST", "sys/quotas/config", {"rate_limit_exempt_paths": ["sys/mounts", "sys/quotas/config"]})
    world.must("POST", QUOTA, {"rate": 1, "interval": "1h"})
    assert [world.ask("GET", "sys/mounts").status for _ in range(3)] == [200, 200, 200]
    assert [world.ask("GET", "sys/health", token="").status for _ in range(2)] == [200, 429]


def test_the_configuration_reads_back_and_keeps_what_is_not_given() -> None:
    world = Installation()
    default = {"rate_limit_exempt_paths": ["sys/health", "sys/leader", "sys/seal-status"]}
    config = "sys/quotas/config"
    assert world.must("GET", config).data == {**default, "enable_rate_limit_response_headers": False}
    world.must("POST", config, {"enable_rate_limit_response_headers": "true"})
    world.must("POST", config, {"rate_limit_exempt_paths": []})
    assert world.must("GET", config).data == {
        "rate_limit_exempt_paths": [],
        "enable_rate_limit_response_headers": True,
    }


def test_a_quota_that_was_answered_is_in_the_store() -> None:
    """Whatever goes wrong on the way, and it can be written again."""

    def scenario(world: Installation) -> None:
        if world.ask("POST", QUOTA, {"rate": 1000}).status == 204:
            assert world.ask("GET", QUOTA).status in (200, 503)

    for world in every_fault(scenario, Installation):
        with suppress(Crashed, CloudidError):
            scenario(world)
        world.must("POST", QUOTA, {"rate": 1000})
