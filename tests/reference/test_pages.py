"""The printed pages of the reference are those of the tables, and each route has an example that was executed."""

from __future__ import annotations

import pytest

from cloudid_core.catalog import CATALOG

from .examples import WITHOUT, examples, key_of
from .pages import FOLDER, pages


@pytest.mark.parametrize("name", pages())
def test_a_page_is_printed_from_the_tables(name: str) -> None:
    """`python -m tests.reference.pages` writes it."""
    assert (FOLDER / name).read_text() == pages()[name]


def test_each_route_has_an_example_that_succeeds() -> None:
    """Or another route that does the same, at another path."""
    shown = {
        (component, route.operation, route.program, route.form, route.doc)
        for component in CATALOG
        for route in component.routes.routes
        if key_of(component, route) in examples()
    }
    missing = [
        (component.type, route.operation, route.path)
        for component in CATALOG
        for route in component.routes.routes
        if (component, route.operation, route.program, route.form, route.doc) not in shown and route.path not in WITHOUT
    ]
    assert missing == []
    assert [example.request for example in examples().values() if not example.answer.startswith("HTTP/1.1 2")] == []
