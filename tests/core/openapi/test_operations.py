"""Operations: what a route looks like in the document."""

from __future__ import annotations

from typing import Any

import pytest

from tests.documented import document


def operation(method: str, path: str) -> Any:
    return document()["paths"][path][method]


def names(method: str, path: str) -> list[str]:
    return [each.get("name", "") for each in operation(method, path)["parameters"]]


def test_the_fields_of_a_write_are_its_body_and_those_of_a_read_its_query() -> None:
    login = operation("post", "/auth/cloud/login")["requestBody"]
    schema = login["content"]["application/json"]["schema"]
    assert login["required"]
    assert schema["required"] == ["role", "jwt"]
    assert schema["properties"]["jwt"]["type"] == "string"
    assert names("get", "/cloud/permissions")[0] == "scope"
    assert names("delete", "/sys/mounts/{path}")[0] == "sync"


def test_a_field_has_its_default_its_bounds_and_its_old_spelling() -> None:
    body = operation("post", "/auth/cloud/role/{name}")["requestBody"]["content"]["application/json"]["schema"]
    uses = body["properties"]["token_num_uses"]
    assert (uses["minimum"], uses["maximum"], uses["default"]) == (0, 2**31, 0)
    assert body["properties"]["num_uses"]["deprecated"]
    assert body["properties"]["token_ttl"]["type"] == ["integer", "string"]
    assert body["properties"]["bound_group_ids"]["type"] == ["array", "string"]
    assert "service" in body["properties"]["token_type"]["enum"]


def test_no_default_is_a_secret() -> None:
    body = operation("post", "/cloud/config")["requestBody"]["content"]["application/json"]["schema"]
    assert "default" not in body["properties"]["client_secret"]


def test_a_list_is_asked_for_by_its_parameter_and_has_a_path_of_its_own_beside_a_read() -> None:
    assert "list" in names("get", "/auth/cloud/role")
    assert "list" in names("get", "/sys/policy/")
    assert "list" not in names("get", "/sys/policy")


def test_what_needs_no_token_says_so() -> None:
    assert {} in operation("post", "/auth/cloud/login")["security"]
    assert "security" not in operation("get", "/auth/cloud/config")


@pytest.mark.parametrize(
    "method, path, status, is_there",
    [
        ("post", "/auth/cloud/login", "502", True),
        ("get", "/sys/mounts", "502", False),
        ("post", "/sys/mounts/{path}", "409", True),
        ("post", "/auth/cloud/config", "409", False),
        ("get", "/cloud/roles/{name}", "404", True),
        ("post", "/auth/token/create", "404", False),
        ("post", "/cloud/reconcile", "202", True),
        ("post", "/auth/cloud/config", "202", False),
        ("delete", "/cloud/config", "204", True),
        ("get", "/cloud/config", "204", False),
        ("post", "/sys/wrapping/unwrap", "403", False),
    ],
)
def test_a_route_has_the_statuses_that_it_can_answer_and_no_others(
    method: str, path: str, status: str, is_there: bool
) -> None:
    assert (status in operation(method, path)["responses"]) is is_there


def test_no_answer_has_open_members_where_they_are_known() -> None:
    """A few have: what is wrapped, metrics, names that a request chooses."""
    data = operation("get", "/cloud/creds/{name}")["responses"]["200"]["content"]["application/json"]["schema"]
    known = data["properties"]["data"]["anyOf"][0]
    assert not data["additionalProperties"]
    assert (set(known["required"]), known["additionalProperties"]) == (
        {"client_id", "client_secret", "tenant_id", "subscription_id"},
        False,
    )
