"""Which headers of requests are in audit entries, as they are or hashed, and which never are."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cloudid_core import Request
from tests.installation import HOME, ROOT, Installation
from tests.tokens import new_token, write_policy

FILE = {"type": "file", "options": {"file_path": "/var/log/audit.log"}}
PATH = "sys/config/auditing/request-headers"


def audited() -> Installation:
    world = Installation()
    world.must("PUT", "sys/audit/file", FILE)
    return world


def entries(world: Installation, **headers: str) -> list[Any]:
    """Those of one request with these headers."""
    world.events.clear()
    sent = {"x-service-token": ROOT, **{name.replace("_", "-"): value for name, value in headers.items()}}
    world.perform(world.service.handle(Request("GET", "/v1/auth/token/lookup-self", sent, b"", HOME)))
    texts = [event.audit.texts[0] for event in world.events if event.audit is not None]
    return [msgspec.json.decode(text)["request"] for text in texts]


def test_a_new_installation_records_the_correlation_id() -> None:
    assert Installation().must("GET", PATH).data == {"headers": {"X-Correlation-Id": {"hmac": False}}}
    world = audited()
    assert entries(world, x_correlation_id="abc-1")[0]["headers"] == {"x-correlation-id": ["abc-1"]}
    world.must("DELETE", f"{PATH}/x-correlation-id")
    assert "headers" not in entries(world, x_correlation_id="abc-1")[0]


def test_headers_are_written_read_listed_and_deleted() -> None:
    world = Installation()
    world.must("DELETE", f"{PATH}/X-Correlation-Id")
    world.must("PUT", f"{PATH}/X-Forwarded-For", {"hmac": True})
    world.must("POST", f"{PATH}/x-trace")
    listed = world.must("GET", PATH).body
    assert listed["data"] == {"headers": {"X-Forwarded-For": {"hmac": True}, "x-trace": {"hmac": False}}}
    assert listed["headers"] == listed["data"]["headers"], "old clients read it beside the envelope"
    for name in ("X-Forwarded-For", "x-forwarded-FOR"):
        assert world.must("GET", f"{PATH}/{name}").data == {name: {"hmac": True}}, "clients look for their own spelling"
    world.must("POST", f"{PATH}/x-forwarded-for", {"hmac": True})
    assert list(world.must("GET", PATH).data["headers"]) == ["x-trace", "x-forwarded-for"]
    world.must("DELETE", f"{PATH}/X-Forwarded-For")
    world.must("DELETE", f"{PATH}/X-Forwarded-For")
    gone = world.ask("GET", f"{PATH}/X-Forwarded-For")
    assert (gone.status, gone.body["codes"]) == (400, ["audited_header_not_found"])
    assert gone.body["errors"] == ["Could not find header in config"], "existing clients look for this text"
    assert world.must("GET", PATH).data == {"headers": {"x-trace": {"hmac": False}}}


def test_entries_have_the_headers_that_were_asked_for() -> None:
    """Lists, as tools for audit logs know them; a header that a request does not have is left out."""
    world = audited()
    assert "headers" not in entries(world, x_trace="t1")[0]
    world.must("PUT", f"{PATH}/X-Trace", {"hmac": False})
    world.must("PUT", f"{PATH}/X-User", {"hmac": True})
    world.must("PUT", f"{PATH}/X-Absent", {"hmac": True})
    request, response = entries(world, x_trace="t1", x_user="somebody", x_other="another")
    hashed = world.must("PUT", "sys/audit-hash/file", {"input": "somebody"}).data["hash"]
    assert request["headers"] == response["headers"] == {"x-trace": ["t1"], "x-user": [hashed]}


def test_a_request_that_is_not_understood_has_its_headers_too() -> None:
    world = audited()
    world.must("PUT", f"{PATH}/X-Trace")
    world.events.clear()
    world.perform(world.service.handle(Request("GET", "/v1/auth/../x", {"x-trace": "t1"}, b"", HOME)))
    (audit,) = [event.audit for event in world.events if event.audit is not None]
    assert msgspec.json.decode(audit.texts[0])["request"]["headers"] == {"x-trace": ["t1"]}


@pytest.mark.parametrize("hmac", [True, False])
@pytest.mark.parametrize(
    "name",
    [
        "X-Service-Token",
        "x-vault-token",
        "Authorization",
        "proxy-authorization",
        "Cookie",
        "X-Vault-Wrap-TTL",
        "X-Service-Wrap-TTL",
    ],
)
def test_headers_that_may_hold_a_token_are_never_on_record(name: str, hmac: bool) -> None:
    world = audited()
    assert world.refused("PUT", f"{PATH}/{name}", {"hmac": hmac}) == (400, "name_invalid")
    assert "headers" not in entries(world)[0]


@pytest.mark.parametrize("name", ["a%20b", "x:y", "\u00e4"])
def test_what_is_no_name_of_a_header_is_refused(name: str) -> None:
    assert Installation().ask("PUT", f"{PATH}/{name}", {"hmac": True}).status == 400


def test_headers_are_few() -> None:
    world = Installation()
    world.must("DELETE", f"{PATH}/X-Correlation-Id")
    for number in range(64):
        world.must("PUT", f"{PATH}/x-{number}")
    assert world.refused("PUT", f"{PATH}/x-more") == (400, "malformed_request")
    world.must("PUT", f"{PATH}/x-1", {"hmac": True})


def test_sudo_is_needed() -> None:
    world = Installation()
    write_policy(world, "auditor", ("sys/config/auditing/*", ["create", "read", "update", "delete"]))
    token = new_token(world, policies=["auditor"])
    for method, path in (("GET", PATH), ("PUT", f"{PATH}/x"), ("GET", f"{PATH}/x"), ("DELETE", f"{PATH}/x")):
        assert world.refused(method, path, None, token) == (403, "permission_denied")


def test_all_nodes_learn_of_a_header() -> None:
    world = audited()
    this = world.service
    world.restart()
    world.must("PUT", f"{PATH}/x-trace")
    world.service = this
    assert entries(world, x_trace="t1")[0]["headers"] == {"x-trace": ["t1"]}
