"""The table of what health can say is wrong: every row can be told, and every request that mends something exists."""

from __future__ import annotations

import json
import re
from typing import Final

import pytest

from cloudid_core.catalog import CATALOG
from cloudid_core.dispatch.destination import destination_of
from cloudid_core.health.problems import HealthProblem
from cloudid_core.messages.response import Request
from cloudid_core.mounts import mount_table
from tests.installation import Installation
from tests.reference.parts import Placeholders

REQUEST: Final = re.compile(r"(GET|POST|PUT|DELETE|LIST) (\S+)(?: (\{.*\}))?")


class Values(dict[str, str]):
    """An occurrence of any problem: each name in braces has a value that may stand in a path and in JSON."""

    def __missing__(self, name: str) -> str:
        return "1"


OCCURRENCE: Final = Values(mount="cloud", path="roles/1")


@pytest.mark.parametrize("problem", HealthProblem)
def test_a_row_can_be_told(problem: HealthProblem) -> None:
    texts = problem.text(OCCURRENCE), problem.remedy(OCCURRENCE)
    assert all(texts)
    assert not any("{}" in text for text in texts)


@pytest.mark.parametrize("problem", HealthProblem)
def test_a_row_is_shown_in_the_documentation_with_its_names(problem: HealthProblem) -> None:
    named = re.findall(r"(?<!\{)\{(\w+)\}", problem.value[0] + problem.value[1])
    shown = problem.text(Placeholders()) + problem.remedy(Placeholders())
    assert set(named) <= set(re.findall(r"\{(\w+)\}", shown))


@pytest.mark.parametrize("problem", HealthProblem)
def test_a_request_that_mends_is_one_that_the_service_has(problem: HealthProblem) -> None:
    request = REQUEST.fullmatch(problem.remedy(OCCURRENCE))
    if request is None:
        return  # it is mended elsewhere
    world = Installation()
    method, path, body = request.groups()
    table = world.perform(mount_table(world.context.records))
    assert destination_of(Request(method, f"/v1/{path}"), CATALOG, table.record).route
    assert body is None or isinstance(json.loads(body), dict)
