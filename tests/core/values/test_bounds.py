"""Every duration that a request or a setting may give has an upper bound, which the reference prints; and limits."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from cloudid_core.catalog import CATALOG
from cloudid_core.forms.fields import Field, fields_of
from cloudid_core.settings import Settings
from cloudid_core.values import bounds
from cloudid_servers.settings.settings import ServerSettings

CENTURY = 100 * bounds.YEAR


def durations() -> Iterator[tuple[str, Field]]:
    forms = {route.form for component in CATALOG for route in component.routes.routes}
    for form in (*forms, Settings, ServerSettings):
        for one in fields_of(form):
            if "duration" in one.kind.name:
                yield f"{form.__module__}.{form.__name__}.{one.name}", one


ALL = dict(sorted(durations()))


@pytest.mark.parametrize("name", ALL)
def test_a_duration_of_a_century_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"must be (between .* and|at most) [0-9.]+"):
        ALL[name].kind.parse(f"{CENTURY}s")


@pytest.mark.parametrize("name", ALL)
def test_the_bound_is_told_and_can_be_given(name: str) -> None:
    told = re.search(r" to ([0-9]+)s?$", ALL[name].kind.name)
    assert told, ALL[name].kind.name
    ALL[name].kind.parse(f"{told[1]}s")
    with pytest.raises(ValueError, match="must be"):
        ALL[name].kind.parse(f"{int(told[1]) + 1}s")


def test_all_kinds_of_durations_are_looked_at() -> None:
    assert len(ALL) > 30


@pytest.mark.parametrize("first, second, expected", [(0, 0, 0), (5, 0, 5), (0, 5, 5), (3, 5, 3), (5, 3, 3)])
def test_no_limit_is_not_the_least(first: int, second: int, expected: int) -> None:
    assert bounds.least(first, second) == expected
