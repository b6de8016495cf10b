"""The whole service over real sockets: both servers tell the same story, byte by byte."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from servers.provider_simulator import Simulator, start

from .running import Running
from .story import Step, tell

SERVERS: Final = ("trio_server", "aiohttp_server")
Told = list[tuple[Step, int, str]]


@pytest.fixture(scope="module")
def told() -> Iterator[dict[str, Told]]:
    """The story as each server told it, beside one simulated cloud."""
    with start(Simulator()) as cloud:
        arguments = ("--dev", "--listen", "127.0.0.1:0", "--root-token", "root", "--provider", cloud.url)
        answers = {}
        for name in SERVERS:
            with Running(f"servers.{name}", *arguments) as server:
                answers[name] = tell(server.url, cloud.url)
        yield answers


@pytest.mark.parametrize("name", SERVERS)
def test_every_step_is_answered_as_it_should(name: str, told: dict[str, Told]) -> None:
    """The status of each step."""
    assert [(step, status) for step, status, _ in told[name]] == [(step, step.status) for step, _, _ in told[name]]


def test_both_servers_answer_alike(told: dict[str, Told]) -> None:
    """Status, headers and body, but for times and random values."""
    first, second = (told[name] for name in SERVERS)
    assert [(str(step), *rest) for step, *rest in first] == [(str(step), *rest) for step, *rest in second]
