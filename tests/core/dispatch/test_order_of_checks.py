"""A request that fails several checks gets the answer of the first, in the order of the page `order-of-checks.md`."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Final

import pytest
from attrs import evolve, frozen

from cloudid_core.messages.response import Request
from tests.installation import HOME, ROOT, Installation
from tests.tokens import new_token

PAGE: Final = Path(__file__).parents[3] / "docs" / "reference" / "order-of-checks.md"
BUSY: Final = "192.0.2.222"
"""A source that has made all requests that it may."""

RATE: Final = 100
LIMIT: Final = 2**20
STRANGER: Final = "stranger"
"""The text of a token without policies."""


@frozen
class Asked:
    """A request that passes every check, unless a step changes that."""

    path: str = "auth/cloud/role/calm"
    namespace: str = ""
    body: bytes = b'{"bound_locations": "here"}'
    token: str = ROOT
    address: str = HOME


@frozen
class Step:
    """A step of the page, a change that fails it, and the answer then."""

    name: str
    fail: Callable[[Asked], Asked]
    status: int
    code: str


STEPS: Final = (
    Step("limits of the source", lambda asked: evolve(asked, address=BUSY), 429, "rate_limit_exceeded"),
    Step("path", lambda asked: evolve(asked, path=f"{asked.path}//"), 400, "malformed_path"),
    Step("headers", lambda asked: evolve(asked, namespace="team"), 400, "namespace_unknown"),
    Step("length of the body", lambda asked: evolve(asked, body=asked.body + b" " * LIMIT), 413, "body_too_large"),
    Step("body", lambda asked: evolve(asked, body=b"{"), 400, "malformed_json"),
    Step("token", lambda asked: evolve(asked, token="guess"), 403, "permission_denied"),
    Step("policies", lambda asked: evolve(asked, token=STRANGER), 403, "permission_denied"),
    Step("limits of the role", lambda asked: evolve(asked, path="auth/cloud/role/busy"), 429, "rate_limit_exceeded"),
    Step("the route's program", lambda asked: evolve(asked, body=b'{"token_ttl": "junk"}'), 400, "field_invalid"),
)
HOST_STEPS: Final = ("connection", "head")
"""The steps that hosts do: `tests/servers/test_order_of_checks.py` tries them."""


@pytest.fixture(scope="module")
def world() -> Installation:
    """With limits that are used up."""
    world = Installation()
    of_role = {"path": "auth/cloud/role/busy", "role": "busy", "rate": 1, "interval": "1h"}
    world.must("POST", "sys/quotas/rate-limit/busy", of_role)
    world.must("POST", "sys/quotas/rate-limit/all", {"rate": RATE, "interval": "1h"})
    for _ in range(RATE):
        world.ask("GET", "sys/mounts", address=BUSY)
    assert world.ask("GET", "auth/cloud/role/busy").status == 404
    new_token(world, id=STRANGER, policies=["default"])
    return world


def answer_to(world: Installation, asked: Asked) -> tuple[int, str]:
    headers = {"x-service-token": asked.token, "x-vault-namespace": asked.namespace}
    request = Request("POST", f"/v1/{asked.path}", headers, asked.body, asked.address)
    reply = world.receive(world.perform(world.service.handle(request)))
    return reply.status, reply.code if reply.status >= 400 else ""


def test_a_request_that_passes_all_is_executed(world: Installation) -> None:
    assert answer_to(world, Asked()) == (204, "")


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_each_step_has_its_answer(world: Installation, step: Step) -> None:
    assert answer_to(world, step.fail(Asked())) == (step.status, step.code)


@pytest.mark.parametrize("first, other", list(combinations(STEPS, 2)), ids=lambda step: step.name)
def test_of_two_that_fail_the_first_answers(world: Installation, first: Step, other: Step) -> None:
    assert answer_to(world, first.fail(other.fail(Asked()))) == (first.status, first.code)


def test_the_page_has_these_steps() -> None:
    rows = re.findall(r"^\| \d+ \| ([^|]+) \|.*?\| ([^|]+) \|$", PAGE.read_text(), re.MULTILINE)
    assert [name for name, _ in rows] == [*HOST_STEPS, *(step.name for step in STEPS)]
    for step, (_, answers) in zip(STEPS, rows[len(HOST_STEPS) :], strict=True):
        assert str(step.status) in answers
