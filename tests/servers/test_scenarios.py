"""The whole service over real sockets: both servers tell the same story, byte by byte."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import pytest

from cloudid_servers.provider_simulator import Simulator, start

from .running import SERVERS, Running
from .story import ROOT, Step, tell

SECRETS: Final = re.compile(rf"{ROOT}|eyJ[\w-]+\.|\bcs\.[0-9a-f]{{32}}")
"""What a log must not hold: the root token, any JWT, any service token."""

Told = list[tuple[Step, int, str]]


@pytest.fixture(scope="module")
def stories() -> Iterator[dict[str, tuple[Told, str]]]:
    """The story as each server told it, and its log, beside one simulated cloud."""
    with start(Simulator()) as cloud:
        arguments = ("--dev", "--listen", "127.0.0.1:0", "--root-token", ROOT, "--provider", cloud.url)
        stories = {}
        for name in SERVERS:
            with Running(f"cloudid_servers.{name}", *arguments) as server:
                answers = tell(server.url, cloud.url)
                code, log = server.stop()
                assert code == 0
                lines = [line for line in log.splitlines() if line.startswith("{")]  # what people read comes before
                stories[name] = (answers, "\n".join(lines))
        yield stories


@pytest.fixture(scope="module")
def told(stories: dict[str, tuple[Told, str]]) -> dict[str, Told]:
    return {name: answers for name, (answers, _) in stories.items()}


@pytest.mark.parametrize("name", SERVERS)
def test_every_step_is_answered_as_it_should(name: str, told: dict[str, Told]) -> None:
    """The status of each step."""
    assert [(step, status) for step, status, _ in told[name]] == [(step, step.status) for step, _, _ in told[name]]


def test_both_servers_answer_alike(told: dict[str, Told]) -> None:
    """Status, headers and body, but for times and random values."""
    first, second = (told[name] for name in SERVERS)
    assert [(str(step), *rest) for step, *rest in first] == [(str(step), *rest) for step, *rest in second]


@pytest.mark.parametrize("name", SERVERS)
def test_no_secret_is_logged(name: str, stories: dict[str, tuple[Told, str]]) -> None:
    """Not the root token, nor a JWT, a service token or a client secret, though every request has its line."""
    told, log = stories[name]
    assert log.count('"event":"request"') == len(told)
    assert not SECRETS.search(log)
    assert "client_secret" not in log
