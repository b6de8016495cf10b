"""The table of incidents names tests that exist, and no test of this folder is without its incident."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from .advisories import ADVISORIES, Advisory, admitted_by_bounds, affected, declared, installed, pinned
from .table import INCIDENTS, NOT_CONCERNED

TESTS: Final = Path(__file__).parent.parent
HERE: Final = "incidents"
OF_TESTS: Final = {
    f"{HERE}/test_secrets.py::test_a_secret_is_found_however_it_is_written",
    f"{HERE}/test_table.py::test_incidents_have_tests_that_exist_and_the_tests_here_their_incidents",
    f"{HERE}/test_table.py::test_no_incident_stands_twice",
    f"{HERE}/test_table.py::test_an_incident_that_cannot_happen_has_a_reason",
    f"{HERE}/test_table.py::test_no_version_with_a_published_weakness_is_admitted_or_installed",
    f"{HERE}/test_table.py::test_an_affected_version_is_reported",
    f"{HERE}/test_table.py::test_a_bound_below_the_fix_is_reported",
}
"""Tests of this folder that test the others."""


def functions_in(*files: str) -> set[str]:
    """Return the tests in these files and folders of `tests`, without parameters."""
    paths = (path for file in files for path in ([*(TESTS / file).glob("test_*.py")] or [TESTS / file]))
    return {
        f"{path.relative_to(TESTS)}::{node.name}"
        for path in paths
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def test_incidents_have_tests_that_exist_and_the_tests_here_their_incidents() -> None:
    named = {test for incident in INCIDENTS for test in incident.tests}
    elsewhere = {test.partition("::")[0] for test in named if not test.startswith(HERE)}
    found = functions_in(HERE, *sorted(elsewhere))
    assert named - found == set(), "there are no such tests"
    assert {test for test in found - named if test.startswith(HERE)} == OF_TESTS
    assert [incident.ids for incident in INCIDENTS if not incident.tests] == []


def test_no_incident_stands_twice() -> None:
    ids = Counter(one for incident in (*INCIDENTS, *NOT_CONCERNED, *ADVISORIES) for one in incident.ids)
    assert [one for one, times in ids.items() if times > 1] == []


def test_an_incident_that_cannot_happen_has_a_reason() -> None:
    assert [row.ids for row in NOT_CONCERNED if not row.reason] == []


def test_no_version_with_a_published_weakness_is_admitted_or_installed() -> None:
    found = [*admitted_by_bounds(declared(), ADVISORIES), *affected(pinned(), ADVISORIES)]
    found += affected(installed(), ADVISORIES)
    assert found == []


WEAK: Final = (Advisory("thing", ("CVE-0",), "2.0", "everything"),)


def test_an_affected_version_is_reported() -> None:
    assert [*affected({"thing": Version("1.9")}, WEAK)] == ["thing 1.9 has CVE-0, fixed in 2.0"]
    assert [*affected({"thing": Version("2.0"), "other": Version("1")}, WEAK)] == []


@pytest.mark.parametrize(
    "text, is_reported",
    [("thing", True), ("thing<3", True), ("Thing>=1.9", True), ("thing>=2.0", False), ("thing>=2.1,<3", False)],
)
def test_a_bound_below_the_fix_is_reported(text: str, is_reported: bool) -> None:
    assert bool([*admitted_by_bounds([Requirement(text)], WEAK)]) is is_reported
