"""Periodic work on both runtimes: it goes on after failures, and no request to run is lost."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from cloudid_core.effects import Instant, Sleep
from cloudid_servers.host import app
from cloudid_servers.host.host import Host
from cloudid_servers.logs.logs import open_log
from cloudid_servers.runtime import periodic
from cloudid_servers.runtime.periodic import Periodic
from tests.hosts.opened import RUNTIMES, on
from tests.waiting import until

pytestmark = pytest.mark.parametrize("runtime", RUNTIMES)
FAR: Final = 3600.0
STEP: Final = 0.01

Round = Callable[[Periodic], Coroutine[Any, Any, Instant]]


def run_rounds(runtime: str, log_file: Path, *rounds: Round) -> None:
    """Open periodic work that does these rounds; returns when all have begun."""
    begun = 0

    async def scenario(host: Host) -> None:
        async def work() -> Instant:
            nonlocal begun
            begun += 1
            return await rounds[begun - 1](worker) if begun <= len(rounds) else time.time() + FAR

        with log_file.open("wb", buffering=0) as file:
            worker = app.periodic("test", work, host, open_log("info", file.fileno()))
            await until(host.sleep, lambda: begun >= len(rounds))

    on(runtime, scenario)
    assert begun == len(rounds)


async def done(_: Periodic) -> Instant:
    return time.time() + FAR


async def again_at_once(_: Periodic) -> Instant:
    return time.time()


async def failing(_: Periodic) -> Instant:
    raise LookupError("hunter2")


def test_a_failed_round_is_logged_and_repeated(runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periodic, "AFTER_FAILURE", STEP)
    run_rounds(runtime, tmp_path / "log", failing, failing, done)
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [(line["event"], line["work"], line["error"]) for line in lines] == [
        ("background work failed", "test", "LookupError")
    ] * 2
    assert "hunter2" not in str(lines)


def test_work_that_failed_is_tried_again_after_a_second(runtime: str, tmp_path: Path) -> None:
    """Until the next look at the store, health does not know that it is back."""
    assert periodic.AFTER_FAILURE == 1.0
    started = time.monotonic()
    run_rounds(runtime, tmp_path / "log", failing, done)
    assert time.monotonic() - started >= periodic.AFTER_FAILURE


def test_work_runs_again_when_it_says_so(runtime: str, tmp_path: Path) -> None:
    run_rounds(runtime, tmp_path / "log", again_at_once, done)


def test_a_round_comes_in_time_though_the_clock_was_set_back(
    runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node whose clock was an hour ahead did nothing for an hour, and health went on telling that it is ahead."""
    ahead = [FAR]
    clock = SimpleNamespace(time=lambda: time.time() + ahead[0], monotonic=time.monotonic)
    monkeypatch.setattr(periodic, "time", clock)

    async def soon(worker: Periodic) -> Instant:
        worker.wake_by(clock.time() + STEP)
        ahead[0] = 0.0
        return float(time.time() + 2 * FAR)

    run_rounds(runtime, tmp_path / "log", soon, done)


def test_a_wake_up_during_a_round_is_not_lost(runtime: str, tmp_path: Path) -> None:
    """The round may have looked already at what has just become due."""

    async def woken(worker: Periodic) -> Instant:
        worker.wake_by(time.time())
        await Sleep(STEP)
        return time.time() + FAR

    run_rounds(runtime, tmp_path / "log", woken, done)


def test_a_wake_up_between_rounds_is_followed(runtime: str, tmp_path: Path) -> None:
    begun: list[int] = []

    async def scenario(host: Host) -> None:
        async def work() -> Instant:
            begun.append(1)
            return time.time() + FAR

        def has_begun(count: int) -> bool:
            return len(begun) >= count

        worker = app.periodic("test", work, host, open_log("error"))
        for count in (1, 2, 3):
            await until(host.sleep, partial(has_begun, count))
            worker.wake_by(time.time())

    on(runtime, scenario)
    assert len(begun) >= 3
