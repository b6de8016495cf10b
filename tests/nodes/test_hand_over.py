"""A server that is stopped in good order hands the background work over: no other waits until its claim has ended."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import httpx
import pytest

from cloudid_core.background.leadership import LENGTH
from tests.servers.running import Running
from tests.stores.test_served import prepared, written

SOON: Final = LENGTH / 3
"""Seconds within which another node leads, on a machine that is busy."""


def leads(running: Running) -> bool:
    shown = httpx.get(f"{running.url}/v1/sys/leader", trust_env=False).json()
    return bool(shown["background_node_id"] == shown["node_id"])


def wait_until(running: Running, *, is_leader: bool) -> None:
    until = time.monotonic() + SOON
    while leads(running) != is_leader:
        assert time.monotonic() < until
        time.sleep(0.1)


@pytest.mark.parametrize("names", [("trio_server", "aiohttp_server"), ("aiohttp_server", "trio_server")])
def test_another_server_takes_over_within_seconds(names: tuple[str, str], database: str, tmp_path: Path) -> None:
    settings = written(tmp_path, database)
    prepared(settings)
    with Running(f"servers.{names[0]}", "--settings", str(settings)) as staying:
        wait_until(staying, is_leader=True)
        with Running(f"servers.{names[1]}", "--settings", str(settings)) as stopping:
            wait_until(stopping, is_leader=True)
            wait_until(staying, is_leader=False)
            code, log = stopping.stop()
        wait_until(staying, is_leader=True)
    assert (code, "not handed over" in log) == (0, False)
