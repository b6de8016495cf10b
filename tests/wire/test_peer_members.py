"""Every answer has the members that clients of the existing services expect of it."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.catalog import CATALOG
from cloudid_core.messages.operations import Operation
from tests.engines import SecretsEngine, engine_with_roles

from .peer_members import ANSWERS, ENVELOPE, OURS, WRAP, Answer


@pytest.fixture(scope="module")
def service() -> SecretsEngine:
    made = engine_with_roles()
    made.must("PUT", "sys/audit/file", {"type": "file", "options": {"file_path": "/var/log/audit.log"}})
    made.must("PUT", "sys/config/auditing/request-headers/X-Trace")
    made.must("POST", "sys/quotas/rate-limit/web", {"rate": 1000, "path": "cloud"})
    made.must("POST", "sys/quotas/lease-count/web", {"max_leases": 1000})
    made.must("POST", "auth/token/roles/web", {})
    made.must("POST", "identity/oidc/role/web", {})
    made.must("POST", "sys/auth/other", {"type": "azure"})
    made.must("POST", "auth/other/config", {"tenant_id": "t", "resource": "r"})
    made.must("POST", "auth/other/role/web", {"bound_group_ids": "g"})
    made.must("POST", "cloud/roles/web", {"azure_roles": made.grants()})
    made.must("POST", "cloud/static-roles/app", {"application_object_id": made.other_application["object_id"]})
    return made


@pytest.mark.parametrize("answer", ANSWERS, ids=[" ".join((one.method, one.path, *one.at)) for one in ANSWERS])
def test_no_member_is_missing(service: SecretsEngine, answer: Answer) -> None:
    body = answer.body
    if body == {"lease_id": "LEASE"}:
        body = {"lease_id": service.issue()}
    found: Any = service.must(answer.method, answer.path, body).body
    for name in answer.at:
        found = found[int(name)] if isinstance(found, list) else found[name]
    assert set(answer.members.split()) <= found.keys()


def test_a_wrapped_answer_has_the_members_of_its_wrapping(service: SecretsEngine) -> None:
    body = service.must("GET", "sys/mounts", x_vault_wrap_ttl="60").body
    assert set(ENVELOPE.split()) <= body.keys()
    assert set(WRAP.split()) <= body["wrap_info"].keys()


def test_every_path_that_can_be_read_is_compared() -> None:
    routes = {
        f"{component.kind} {component.type} {route.operation.value} {route.path}": route.operation
        for component in CATALOG
        for route in component.routes.routes
    }
    compared = {answer.row for answer in ANSWERS} | OURS.keys()
    assert compared <= routes.keys()
    assert {row for row, operation in routes.items() if operation is Operation.READ} <= compared
