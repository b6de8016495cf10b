"""How many lives the random simulation goes through."""

from __future__ import annotations

import pytest

DEFAULT_SEEDS = 200


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seeds", type=int, default=DEFAULT_SEEDS, help="how many random lives to go through")
    parser.addoption("--seed", type=int, default=None, help="replay this one")


@pytest.fixture
def seeds(request: pytest.FixtureRequest) -> range:
    one: int | None = request.config.getoption("--seed")
    many: int = request.config.getoption("--seeds")
    return range(many) if one is None else range(one, one + 1)
