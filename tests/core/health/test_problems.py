"""The table of what health can say is wrong: every row can be shown, and every command of a fix can be pasted."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final, TypeAlias

import pytest

from cloudid_core.health.problems import HealthProblem
from cloudid_core.messages.response import Request
from cloudid_core.mounts import mount_table
from tests.exchanges import routed
from tests.installation import Installation
from tests.reference.parts import Placeholders

COMMAND: Final = re.compile(r"cloudid (read|list|write|delete) (\S+)((?: \w+=[^\s,;]+)*)")
METHODS: Final = {"read": "GET", "list": "LIST", "write": "POST", "delete": "DELETE"}
Sent: TypeAlias = tuple[str, str, dict[str, str]]
"""Method, path and fields."""


def requests_in(remedy: str) -> Iterator[Sent]:
    """The requests that the commands of a fix send."""
    for verb, path, words in COMMAND.findall(remedy):
        [whole] = shlex.split(path)
        yield METHODS[verb], whole, dict(word.split("=", 1) for word in shlex.split(words))


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
    shown = problem.text(Placeholders()) + problem.remedy_pattern
    assert set(named) <= set(re.findall(r"\{(\w+)\}", shown))


@pytest.mark.parametrize("problem", HealthProblem)
def test_commands_of_a_fix_send_requests_that_the_service_has(problem: HealthProblem) -> None:
    world = Installation()
    table = world.perform(mount_table(world.context.records))
    mount = "auth/cloud" if "{mount}/role/" in problem.remedy_pattern else "cloud"
    for method, path, _ in requests_in(problem.remedy(Values({**OCCURRENCE, "mount": mount}))):
        assert routed(Request(method, f"/v1/{path}"), table.record).route


@pytest.mark.parametrize("problem", HealthProblem)
def test_no_fix_names_a_request_that_a_shell_does_not_know(problem: HealthProblem) -> None:
    assert not re.search(r"\b(GET|POST|PUT|PATCH|DELETE|LIST) [a-z{]", problem.remedy_pattern)


def test_names_in_a_fix_are_quoted_for_a_shell() -> None:
    remedy = HealthProblem.SELF_TARGET.remedy({"mount": "cloud", "path": "roles/$(id) x"})
    assert shlex.split(remedy) == ["cloudid", "delete", "cloud/roles/$(id) x"]
