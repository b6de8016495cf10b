"""A server that is stopped in good order hands the background work over: no other waits until its claim has ended."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import httpx
import pytest

from cloudid_core.background.leadership import LENGTH
from tests.servers.running import SERVERS, Running
from tests.stores.test_served import prepared, written
from tests.waiting import PATIENT, wait_until

ATTEMPTS: Final = 3
"""A machine may be busy for once; what is not handed over lasts for half of `LENGTH` every time."""


def leads(running: Running) -> bool:
    shown = httpx.get(f"{running.url}/v1/sys/leader", **PATIENT).json()
    return bool(shown["background_node_id"] == shown["node_id"])


@pytest.mark.parametrize("names", [SERVERS, pytest.param(SERVERS[::-1], marks=pytest.mark.long)])
def test_another_server_takes_over_within_seconds(names: tuple[str, str], database: str, tmp_path: Path) -> None:
    settings = written(tmp_path, database)
    prepared(settings)
    with Running(f"cloudid_servers.{names[0]}", "--settings", str(settings)) as staying:
        wait_until(lambda: leads(staying))
        assert any(is_early(staying, f"cloudid_servers.{names[1]}", settings) for _ in range(ATTEMPTS))


def is_early(staying: Running, other: str, settings: Path) -> bool:
    """Start another server, which leads then, and stop it; whether this one leads before that one's claim ends."""
    with Running(other, "--settings", str(settings)) as stopping:
        wait_until(lambda: leads(stopping))
        wait_until(lambda: not leads(staying))
        code, log = stopping.stop()
    assert (code, "not handed over" in log) == (0, False)
    stopped = time.monotonic()
    wait_until(lambda: leads(staying))
    return time.monotonic() - stopped < LENGTH / 2
