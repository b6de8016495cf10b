"""Where `CI` is true, a test that is skipped has failed: what the tests need is installed there, by `.ci/run`."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import TypeVar

import pytest

AnyReport = TypeVar("AnyReport", pytest.TestReport, pytest.CollectReport)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return judged((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A module that is skipped as a whole, since it cannot be imported."""
    return judged((yield))


def judged(report: AnyReport) -> AnyReport:
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"skipped, though CI=true says that all is installed: {report.longrepr}"
    return report
