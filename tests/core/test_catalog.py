"""The table of everything that can be mounted."""

from __future__ import annotations

import pytest

from cloudid_core.catalog import CATALOG, HANDLERS
from cloudid_core.context import queue
from cloudid_core.routing.components import Component


@pytest.mark.parametrize("component", list(CATALOG), ids=lambda component: f"{component.kind} {component.type}")
def test_no_two_rows_are_the_same(component: Component) -> None:
    """One way to do a thing: no operation stands twice at a path, and every row says what it does."""
    rows = [(route.path, route.operation) for route in component.routes.routes]
    assert len(rows) == len(set(rows))
    assert all(route.doc.endswith(".") for route in component.routes.routes)


def test_both_components_are_there() -> None:
    """The auth method and the secrets engine, each under its kind."""
    assert {
        ("auth", "cloud"),
        ("secret", "cloud"),
        ("auth", "token"),
        ("secret", "system"),
        ("secret", "identity"),
    } == {(component.kind, component.type) for component in CATALOG}


def test_every_kind_of_job_has_a_handler() -> None:
    assert set(HANDLERS) == {
        queue.AUDIENCE,
        queue.LEASE,
        queue.INTENT,
        queue.TOKEN,
        queue.ROTATION,
        queue.MOUNT,
        queue.SIGNING_KEY,
        queue.PUBLICATION,
        queue.ROTATION_PLAN,
    }
