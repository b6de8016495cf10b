"""The routes of quotas."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from cloudid_core.errors import CloudidError
from cloudid_core.quotas.rate_limit import READ_AGAIN
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
        "path": "auth/cloud/",
        "rate": 2.5,
        "interval": 60,
        "block_interval": 0,
        "role": "Dev",
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
        ({"rate": 1, "path": f"cloud/{'x' * 1024}"}, "field_invalid"),
        ({"rate": 1, "path": "cloud", "role": "x" * 129}, "field_invalid"),
    ],
)
def test_a_quota_that_makes_no_sense_is_refused(fields: dict[str, Any], code: str) -> None:
    assert Installation().refused("POST", QUOTA, fields) == (400, code)


LEASES = "sys/quotas/lease-count/few"


def test_a_lease_count_is_written_read_listed_and_deleted() -> None:
    world = Installation()
    assert world.ask("GET", LEASES).status == 404
    assert world.ask("LIST", "sys/quotas/lease-count").status == 404
    written = world.ask("POST", LEASES, {"name": "few", "path": "cloud/", "max_leases": "5", "role": "Dev"})
    assert written.status == 204
    assert world.must("GET", LEASES).data == {
        "name": "few",
        "type": "lease-count",
        "path": "cloud/",
        "max_leases": 5,
        "role": "Dev",
    }
    assert world.must("LIST", "sys/quotas/lease-count").data == {"keys": ["few"]}
    assert world.ask("LIST", "sys/quotas/rate-limit").status == 404
    world.must("POST", LEASES, {"path": "", "role": "", "max_leases": 7, "inheritable": True})
    assert world.must("GET", LEASES).data == {
        "name": "few",
        "type": "lease-count",
        "path": "",
        "max_leases": 7,
        "role": "",
        "inheritable": True,
    }
    for _ in range(2):
        assert world.ask("DELETE", LEASES).status == 204
    assert world.ask("GET", LEASES).status == 404


@pytest.mark.parametrize(
    "fields, code, text",
    [
        ({}, "field_required", '"max_leases"'),
        ({"max_leases": 0}, "field_invalid", "must be between 1 and"),
        ({"max_leases": -1}, "field_invalid", "must be between 1 and"),
        ({"max_leases": "many"}, "field_invalid", '"max_leases"'),
        ({"max_leases": 1, "role": "dev"}, "field_required", '"path"'),
        ({"max_leases": 1, "path": "nowhere"}, "mount_not_found", ""),
        ({"max_leases": 1, "path": "auth/nowhere"}, "mount_not_found", ""),
        ({"max_leases": 1, "path": "auth/cloud"}, "field_invalid", "issues tokens, not leases"),
        ({"max_leases": 1, "path": "auth/token"}, "field_invalid", "issues tokens, not leases"),
        ({"max_leases": 1, "path": "sys"}, "field_invalid", "a mount without leases"),
        ({"max_leases": 1, "path": "cloud/creds/dev"}, "field_invalid", 'with "role", "path" must be'),
        ({"max_leases": 1, "path": "cloud/*"}, "field_invalid", 'with "role", "path" must be'),
        ({"max_leases": 1, "path": ["cloud"]}, "field_invalid", '"path"'),
    ],
)
def test_a_lease_count_that_makes_no_sense_is_refused(fields: dict[str, Any], code: str, text: str) -> None:
    world = Installation()
    reply = world.ask("POST", LEASES, fields)
    assert (reply.status, reply.code) == (400, code)
    assert text in reply.body["errors"][0]
    assert world.ask("GET", LEASES).status == 404


def test_a_second_lease_count_for_the_same_leases_is_refused() -> None:
    world = Installation()
    world.must("POST", LEASES, {"max_leases": 1, "path": "cloud"})
    world.must("POST", QUOTA, {"rate": 1000, "path": "cloud"})
    assert world.refused("POST", "sys/quotas/lease-count/other", {"max_leases": 2, "path": "cloud"}) == (
        400,
        "field_invalid",
    )


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
    flags = {"enable_rate_limit_audit_logging": False, "enable_rate_limit_response_headers": False}
    assert world.must("GET", config).data == {**default, **flags}
    world.must("POST", config, {"enable_rate_limit_response_headers": "true"})
    world.must("POST", config, {"rate_limit_exempt_paths": []})
    assert world.must("GET", config).data == {
        **flags,
        "rate_limit_exempt_paths": [],
        "enable_rate_limit_response_headers": True,
    }


@pytest.mark.parametrize("path, fields", [(QUOTA, {"rate": 1000}), (LEASES, {"max_leases": 5})])
def test_a_quota_that_was_answered_is_in_the_store(path: str, fields: dict[str, int]) -> None:
    """Whatever goes wrong on the way, and it can be written again."""

    def scenario(world: Installation) -> None:
        if world.ask("POST", path, fields).status == 204:
            assert world.ask("GET", path).status in (200, 503)

    for world in every_fault(scenario, Installation):
        with suppress(Crashed, CloudidError):
            scenario(world)
        world.must("POST", path, fields)


def test_help_tells_when_other_nodes_count() -> None:
    told = Installation().must("GET", "sys/quotas/rate-limit/login?help=1").body
    assert f"within {READ_AGAIN:.0f} seconds" in str(told)
