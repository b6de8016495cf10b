"""What every test runs under, which tests are for a long run, and how long the long ones go on."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.sampling import Sample, every, number_of, sample_of
from tests.servers.running import ANEW
from tests.skips import pytest_make_collect_report, pytest_runtest_makereport

__all__ = ["pytest_make_collect_report", "pytest_runtest_makereport"]

# The same examples on every machine and every run, and no opinion about how fast a busy machine is.
settings.register_profile(
    "cloudid",
    database=None,
    deadline=None,
    derandomize=True,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", settings.get_profile("cloudid"), max_examples=200)
settings.load_profile("cloudid")

# Otherwise jsonschema builds 38 grammars, a second's work, for a format that nothing here has.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]

LEAST_WORKERS = 4
"""So many even on two cores: half the time of the tests is spent waiting for servers."""

FOLDER = Path(__file__).parent
TOOLS = ("clients", "hosting", "nodes", "release", "stores", "terraform")
"""Folders whose tests need more than Python."""

DATABASES = {"cluster", "databases"}
"""Fixtures that need PostgreSQL, wherever they are used."""

RUNTIMES = {"trio": 0, "trio_server": 0, "cloudid_servers.trio_server": 0} | dict.fromkeys(
    ("asyncio", "aiohttp", "aiohttp_server", "cloudid_servers.aiohttp_server"), 1
)
"""Which of the two a parameter names."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="go through all that is sampled otherwise")
    parser.addoption("--seeds", type=int, help="how many random lives the simulation goes through")
    parser.addoption("--seed", type=int, default=None, help="replay this one")
    parser.addoption("--cycles", type=int, help="how often each server is killed under load")
    parser.addoption("--built", default=None, help="folder with what `make dist` has built")
    parser.addoption("--terraform-mirror", default=None, help="folder with Terraform's provider, built")


def pytest_configure(config: pytest.Config) -> None:
    # Whoever is started in the background ignores it, and so would the servers and commands of the tests.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--thorough"):
        settings.load_profile("thorough")
        os.environ[ANEW] = "yes"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays: to look for garbage in it takes half the time of the collection, in each worker."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    return max(LEAST_WORKERS, os.cpu_count() or 1)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs tools; leave one of the servers of each story to the long run, by turns."""
    for item in items:
        if item.path.relative_to(FOLDER).parts[0] in TOOLS or DATABASES & {*getattr(item, "fixturenames", ())}:
            item.add_marker(pytest.mark.tools)
        if isinstance(item, pytest.Function) and item.get_closest_marker("one_server") and is_told_later(item):
            item.add_marker(pytest.mark.long)


def is_told_later(story: pytest.Function) -> bool:
    values = story.callspec.params.values() if hasattr(story, "callspec") else ()
    match [value for value in values if isinstance(value, str) and value in RUNTIMES]:
        case [name]:
            return RUNTIMES[name] == number_of(story.name.replace(name, ""), 2)
    return False


@pytest.fixture
def seeds(request: pytest.FixtureRequest) -> range:
    one: int | None = request.config.getoption("--seed")
    many: int | None = request.config.getoption("--seeds")
    usual = 200 if request.config.getoption("--thorough") else 30
    return range(many or usual) if one is None else range(one, one + 1)


@pytest.fixture
def sample(request: pytest.FixtureRequest) -> Sample:
    return every if request.config.getoption("--thorough") else sample_of(request.node.name)


@pytest.fixture
def cycles(request: pytest.FixtureRequest) -> int:
    count: int | None = request.config.getoption("--cycles")
    return count or (3 if request.config.getoption("--thorough") else 2)
