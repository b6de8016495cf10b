"""The table of what health can say is wrong: every row can be told, and every request that mends something exists."""

from __future__ import annotations

import json
import re
from typing import Final

import pytest

from cloudid_core.api.destination import destination_of
from cloudid_core.api.response import Request
from cloudid_core.foundation.problems import HealthProblem, Placeholders
from cloudid_core.mounts.catalog import CATALOG
from cloudid_core.mounts.table import mount_table
from tests.installation import Installation

REQUEST: Final = re.compile(r"(GET|POST|PUT|DELETE|LIST) (\S+)(?: (\{.*\}))?")

OCCURRENCES: Final = {
    "count": "3",
    "device": "file",
    "field": "client_id",
    "key": "due/0/x",
    "mode": "0644",
    "mount": "cloud",
    "names": "leeway",
    "reason": "TypeError",
    "role": "reader",
    "seconds": "7.0",
    "setting": "audit_non_hmac_request_keys",
    "side": "behind",
    "tenant": "contoso.test",
    "work": "tick",
}
"""A value for each name that a row can have in braces."""


@pytest.mark.parametrize("problem", HealthProblem)
def test_a_row_can_be_told(problem: HealthProblem) -> None:
    texts = problem.text(OCCURRENCES), problem.remedy(OCCURRENCES)
    assert all(texts)
    assert not any("{}" in text for text in texts)


@pytest.mark.parametrize("problem", HealthProblem)
def test_a_row_is_shown_in_the_documentation_with_its_names(problem: HealthProblem) -> None:
    shown = problem.text(Placeholders()) + problem.remedy(Placeholders())
    assert set(re.findall(r"\{(\w+)\}", shown)) <= set(OCCURRENCES)


@pytest.mark.parametrize("problem", HealthProblem)
def test_a_request_that_mends_is_one_that_the_service_has(problem: HealthProblem) -> None:
    request = REQUEST.fullmatch(problem.remedy(OCCURRENCES))
    if request is None:
        return  # it is mended elsewhere
    world = Installation()
    method, path, body = request.groups()
    table = world.perform(mount_table(world.context.records))
    assert destination_of(Request(method, f"/v1/{path}"), CATALOG, table, world.context.caches.destinations).route
    assert body is None or isinstance(json.loads(body), dict)
