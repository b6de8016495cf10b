"""Answers: what routes say that they answer."""

from __future__ import annotations

from cloudid_core.catalog import CATALOG
from cloudid_core.messages.operations import Operation
from cloudid_core.routing.answers import DONE, KEYS

ROUTES = [route for component in CATALOG for route in component.routes.routes]


def test_every_read_says_what_its_data_is() -> None:
    assert [route.path for route in ROUTES if route.operation is Operation.READ and route.answers.data is None] == []


def test_a_list_answers_keys_and_a_change_nothing_unless_the_route_says_more() -> None:
    found = {(route.operation, route.path): route.answers for route in ROUTES}
    assert found[Operation.LIST, "role"] is KEYS
    assert found[Operation.DELETE, "role/:name"] is DONE
