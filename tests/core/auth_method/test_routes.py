"""The routes of the authentication method, as the contract has them."""

from __future__ import annotations

from cloudid_core.auth_method.routes import COMPONENT, ROUTES
from cloudid_core.context import Mountable
from cloudid_core.messages.operations import Operation

READ, LIST, WRITE, DELETE = Operation.READ, Operation.LIST, Operation.WRITE, Operation.DELETE


def test_every_operation_of_the_contract_is_offered() -> None:
    offered = {(route.path, route.operation) for route in ROUTES.routes}
    assert offered >= {
        ("config", WRITE),
        ("config", READ),
        ("config", DELETE),
        ("rotate-root", WRITE),
        ("role/:name", WRITE),
        ("role/:name", READ),
        ("role/:name", DELETE),
        ("role", LIST),
        ("login", WRITE),
    }


def test_only_the_login_needs_no_token() -> None:
    assert [route.path for route in ROUTES.routes if route.public] == ["login"]


def test_every_route_says_what_it_does() -> None:
    assert all(route.doc.endswith(".") for route in ROUTES.routes)


def test_the_method_answers_for_the_terms_of_its_tokens() -> None:
    assert (COMPONENT.kind, COMPONENT.type) == ("auth", "cloud")
    assert COMPONENT.token_terms is not Mountable().token_terms
