"""Moves of mounts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.installation import Installation
from tests.simulation.operations import copy_of, with_leases

CONFIG = {"tenant_id": "t", "resource": "r"}


@pytest.fixture
def service() -> Installation:
    return Installation()


def test_a_move_keeps_everything_but_the_path(service: Installation) -> None:
    service.must("POST", "auth/cloud/config", CONFIG)
    before = service.must("GET", "sys/auth/cloud").data
    reply = service.must("POST", "sys/remount", {"from": "auth/cloud", "to": "auth/team/west/"})
    move_id = reply.data["migration_id"]
    assert reply.body["migration_id"] == move_id
    assert service.must("GET", "auth/team/west/config").data["tenant_id"] == "t"
    assert service.ask("GET", "auth/cloud/config").status == 404
    assert service.must("GET", "sys/auth/team/west").data == before
    assert service.must("GET", f"sys/remount/status/{move_id}").data == {
        "migration_id": move_id,
        "migration_info": {
            "source_mount": "auth/cloud/",
            "target_mount": "auth/team/west/",
            "status": "success",
        },
    }


def test_the_quotas_of_a_mount_move_with_it(service: Installation) -> None:
    written = {
        "rate-limit/a": "/Cloud/",
        "rate-limit/b": "cloud/creds/W*",
        "rate-limit/c": "cloud*",
        "rate-limit/d": "",
    }
    written |= {"rate-limit/e": "auth/cloud", "lease-count/a": "cloud"}
    for name, path in written.items():
        service.must("POST", f"sys/quotas/{name}", {"path": path, "rate": 100, "max_leases": 5})
    service.must("POST", "sys/remount", {"from": "cloud", "to": "else/where"})
    moved = {name: service.must("GET", f"sys/quotas/{name}").data["path"] for name in written}
    assert moved == {
        "rate-limit/a": "else/where/",
        "rate-limit/b": "else/where/creds/W*",
        "rate-limit/c": "else/where*",
        "rate-limit/d": "",
        "rate-limit/e": "auth/cloud",
        "lease-count/a": "else/where",
    }


def test_a_path_that_a_mount_left_is_free(service: Installation) -> None:
    service.must("POST", "auth/cloud/config", CONFIG)
    service.must("PUT", "sys/remount", {"from": "auth/cloud/", "to": "auth/other"})
    service.must("POST", "sys/auth/cloud", {"type": "cloud"})
    assert service.ask("GET", "auth/cloud/config").status == 404


def test_leases_live_on_under_their_ids() -> None:
    service = copy_of(with_leases())
    service.must("POST", "sys/remount", {"from": "cloud", "to": "elsewhere"})
    for lease_id in service.answered:
        assert service.must("PUT", "sys/leases/renew", {"lease_id": lease_id}).body["lease_id"] == lease_id
    service.must("PUT", "sys/leases/revoke-prefix/elsewhere")
    service.converge()
    assert service.ask("LIST", "sys/leases/lookup").status == 404


@pytest.mark.parametrize(
    "body, status, code",
    [
        ({}, 400, "field_required"),
        ({"from": "cloud"}, 400, "field_required"),
        ({"from": "nothing", "to": "new"}, 400, "mount_not_found"),
        ({"from": "sys", "to": "new"}, 400, "mount_protected"),
        ({"from": "auth/token", "to": "auth/new"}, 400, "mount_protected"),
        ({"from": "auth/cloud", "to": "new"}, 400, "field_invalid"),
        ({"from": "cloud", "to": "auth/new"}, 400, "field_invalid"),
        ({"from": "cloud", "to": "a/../b"}, 400, "field_invalid"),
        ({"from": "cloud", "to": "sys/new"}, 409, "mount_path_in_use"),
        ({"from": "auth/cloud", "to": "auth/token"}, 409, "mount_path_in_use"),
        ({"from": "auth/cloud", "to": "auth/other/sub"}, 409, "mount_path_in_use"),
    ],
)
def test_an_impossible_move_is_refused(service: Installation, body: dict[str, Any], status: int, code: str) -> None:
    service.must("POST", "sys/auth/other", {"type": "cloud"})
    reply = service.ask("POST", "sys/remount", body)
    assert (reply.status, reply.body["codes"][0]) == (status, code)


def test_an_unknown_move_has_no_status(service: Installation) -> None:
    assert service.ask("GET", "sys/remount/status/unknown").status == 404


def test_a_move_needs_sudo_but_not_its_status(service: Installation) -> None:
    rule = '{ capabilities = ["read", "update"] }'
    service.must("PUT", "sys/policies/acl/ops", {"policy": f'path "sys/*" {rule}'})
    token = service.must("POST", "auth/token/create", {"policies": ["ops"]}).auth["client_token"]
    assert service.ask("POST", "sys/remount", {"from": "cloud", "to": "new"}, token).status == 403
    assert service.ask("GET", "sys/remount/status/x", token=token).status == 404
