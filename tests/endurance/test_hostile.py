"""Hostile clients: every bound can be missed, and a short sample of each server misses none but those of time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path
from typing import Final

import pytest
from attrs import evolve

from cloudid_servers.http1 import Stage
from tests.servers.running import SERVERS, Client, status

from .attacks import SIZES, VECTORS, Held, Order, Outcome, connected, request
from .hostile import (
    CPU_RATIO,
    LONGEST,
    MEMORY_GROWTH,
    STORE_GROWTH,
    WRAPPING,
    Load,
    Measured,
    Trial,
    attacks_of,
    judge,
    trial,
)

pytestmark = pytest.mark.one_server

CONNECTIONS: Final = 64
RATE: Final = 20.0
SAMPLE: Final = (("wrapped public answers",), ("connections in use", "wrapped public answers"))
"""Attacks of one vector and of two. The second attack holds as many connections as its first vector does alone."""

SECONDS: Final = 3.0
ORDER: Final = Order(1, (), 1, '{"role": "a", "jwt": "a.b.c"}', "token-of-somebody", "wrapping-token")
ALONE: Final = Measured(Load([0.1] * 10, [], logins=5), cpu=0.001, memory=0, store=5000)
ATTACKED: Final = evolve(ALONE, outcome=Outcome(1, {}, 0))


@pytest.mark.parametrize(
    "attacked, missed",
    [
        (ATTACKED, []),
        (evolve(ATTACKED, load=Load([0.1] * 10, ["503"], 5)), ["refused"]),
        (evolve(ATTACKED, load=Load([], [], 0)), ["refused"]),
        (evolve(ATTACKED, load=Load([0.1] * 99 + [LONGEST + 0.1], [], 50)), ["slow"]),
        (evolve(ATTACKED, load=Load([0.51] * 10, [], 5)), ["usual"]),
        (evolve(ATTACKED, load=Load([0.1] * 95 + [0.51] * 5, [], 50)), ["usual"]),
        (evolve(ATTACKED, load=Load([0.1] * 96 + [0.51] * 4, [], 50)), []),
        (evolve(ATTACKED, cpu=ALONE.cpu * CPU_RATIO + 0.0001), ["CPU"]),
        (evolve(ATTACKED, store=5000 + STORE_GROWTH + 1), ["store"]),
        (evolve(ATTACKED, store=5000 + STORE_GROWTH, load=Load([0.1] * 4, [], 2)), ["store"]),
        (evolve(ATTACKED, memory=MEMORY_GROWTH + 1), ["memory"]),
    ],
)
def test_every_bound_can_be_missed(attacked: Measured, missed: list[str]) -> None:
    """The store may grow by as much as the logins of others make it grow, and a bound more."""
    verdict = judge("idle connections", attacked, ALONE)
    assert verdict.missed == missed
    assert ("MISSED" in verdict.line()) == bool(missed)
    assert verdict.may_be_the_machine == (missed in (["slow"], ["usual"], ["CPU"]))


def test_a_token_that_may_wrap_fills_no_more_than_its_bound() -> None:
    more = evolve(ATTACKED, store=5000 + STORE_GROWTH + 1)
    assert judge(WRAPPING, more, ALONE).missed == []
    assert WRAPPING in VECTORS


def test_each_vector_is_tried_and_then_all_of_them() -> None:
    assert [*attacks_of(("a", "b"))] == [("a",), ("b",), ("a", "b")]
    assert [*attacks_of(("a",))] == [("a",)]


@pytest.mark.parametrize("name", VECTORS)
def test_a_vector_has_no_end(name: str) -> None:
    """And stays below the largest body, so that a second is enough for each of its requests."""
    vector = VECTORS[name]
    if isinstance(vector, Held):
        assert vector.pause > 0
    else:
        sent = [*islice(vector(ORDER), 100)]
        assert len(sent) == 100
        assert all(0 < len(data) <= max(SIZES) + 1024 for data in sent)


def test_connections_are_held_in_every_stage() -> None:
    """That of a handshake needs TLS: `tests/servers/test_connections.py` has it."""
    held = {vector.stage for vector in VECTORS.values() if isinstance(vector, Held)}
    assert held == {*Stage} - {Stage.HANDSHAKE}


def test_a_request_says_how_long_it_is() -> None:
    assert request("POST /a", "X-One: 1", content=b"{}", token="t") == (
        b"POST /a HTTP/1.1\r\nHost: a\r\nX-Vault-Token: t\r\nX-One: 1\r\nContent-Length: 2\r\n\r\n{}"
    )


@pytest.mark.parametrize("name", SERVERS)
def test_a_short_sample_refuses_nobody_else_and_does_not_fill_the_store(name: str, tmp_path: Path) -> None:
    with trial(name, tmp_path, CONNECTIONS) as trying:
        trying.measure(RATE, 1.0)
        alone = trying.measure(RATE, SECONDS)
        for attack in SAMPLE:
            verdict = judge(attack[0], trying.measure(RATE, SECONDS, attack), alone, judges_time=False)
            assert verdict.missed == [], verdict.line()
            assert verdict.outcome.answers


FEW: Final = 16


@pytest.fixture(scope="module", params=SERVERS)
def trying(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    """A server that may have few connections."""
    with trial(request.param, tmp_path_factory.mktemp("held"), FEW) as running:
        yield running


HOLDING: Final = [name for name, vector in VECTORS.items() if isinstance(vector, Held)]


@pytest.mark.parametrize("name", HOLDING)
def test_one_address_that_holds_connections_in_any_stage_keeps_nobody_out(name: str, trying: Trial) -> None:
    """It has as many as there may be. Half as many others come, log in, and keep theirs.

    Each test has an address of its own for them: the server may not have missed those of the test before.
    """
    vector = VECTORS[name]
    assert isinstance(vector, Held)
    with trying.hanging((name,)), ExitStack() as stack:
        for _ in range(FEW):
            attacker = stack.enter_context(connected(trying.port, reads=vector.reads))
            attacker.setblocking(False)
            with suppress(BlockingIOError):
                attacker.send(vector.first)
        address = (f"127.0.1.{HOLDING.index(name) + 1}", 0)
        others = [stack.enter_context(Client(trying.port, address)) for _ in range(FEW // 2)]
        for _ in range(2):
            assert {status(other.ask(trying.login)) for other in others} == {200}
