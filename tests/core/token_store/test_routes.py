"""The routes below `auth/token`, as clients know them."""

from __future__ import annotations

import pytest

from cloudid_core.messages.operations import Operation
from cloudid_core.token_store.routes import COMPONENT, ROUTES
from tests.installation import Installation

READ, LIST, WRITE, DELETE = Operation.READ, Operation.LIST, Operation.WRITE, Operation.DELETE


def test_every_documented_operation_is_offered_and_no_other() -> None:
    assert {(route.path, route.operation) for route in ROUTES.routes} == {
        ("create", WRITE),
        ("create-orphan", WRITE),
        ("create/:role", WRITE),
        ("lookup-self", READ),
        ("lookup-self", WRITE),
        ("lookup", READ),
        ("lookup", WRITE),
        ("lookup-accessor", WRITE),
        ("renew-self", WRITE),
        ("renew", WRITE),
        ("renew-accessor", WRITE),
        ("revoke-self", WRITE),
        ("revoke", WRITE),
        ("revoke-accessor", WRITE),
        ("revoke-orphan", WRITE),
        ("accessors", LIST),
        ("roles/:name", WRITE),
        ("roles/:name", READ),
        ("roles/:name", DELETE),
        ("roles", LIST),
        ("tidy", WRITE),
    }


def test_every_route_needs_a_token_and_says_what_it_does() -> None:
    assert not any(route.public for route in ROUTES.routes)
    assert all(route.doc.endswith(".") for route in ROUTES.routes)
    assert COMPONENT.routes is ROUTES


@pytest.mark.parametrize("method, path", [("GET", "create"), ("DELETE", "lookup-self"), ("GET", "accessors")])
def test_another_operation_at_a_known_path_is_not_offered(method: str, path: str) -> None:
    assert Installation().refused(method, f"auth/token/{path}") == (405, "unsupported_operation")


def test_answers_come_from_a_mount_of_type_token() -> None:
    assert Installation().must("GET", "auth/token/lookup-self").body["mount_type"] == "token"
