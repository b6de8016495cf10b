"""What every test runs under, and how long the long ones go on."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from tests.skips import pytest_make_collect_report, pytest_runtest_makereport

__all__ = ["pytest_make_collect_report", "pytest_runtest_makereport"]

# The same examples on every machine and every run, and no opinion about how fast a busy machine is.
settings.register_profile(
    "cloudid",
    database=None,
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("cloudid")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seeds", type=int, default=200, help="how many random lives the simulation goes through")
    parser.addoption("--seed", type=int, default=None, help="replay this one")
    parser.addoption("--cycles", type=int, default=3, help="how often each server is killed under load")
    parser.addoption("--terraform-mirror", default=None, help="folder with Terraform's provider, built")


@pytest.fixture
def seeds(request: pytest.FixtureRequest) -> range:
    one: int | None = request.config.getoption("--seed")
    many: int = request.config.getoption("--seeds")
    return range(many) if one is None else range(one, one + 1)


@pytest.fixture
def cycles(request: pytest.FixtureRequest) -> int:
    count: int = request.config.getoption("--cycles")
    return count
