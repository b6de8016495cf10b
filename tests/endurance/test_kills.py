"""`kill -9` of each server amid every request and every fault of the cloud; `make endure` goes on for longer."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.servers.running import SERVERS

from .kills import prove

pytestmark = pytest.mark.one_server

CYCLES: Final = 2
SECONDS: Final = 4.0


@pytest.mark.parametrize("name", SERVERS)
def test_nothing_is_lost_or_leaked_whatever_goes_wrong_at_once(name: str, tmp_path: Path) -> None:
    report = prove(name, tmp_path, CYCLES, seed=0, seconds=SECONDS)
    assert report.differences == []
    assert report.kills == CYCLES
    assert report.acknowledged > CYCLES
    assert report.faults.total() > 0, "how many depends on the machine's speed"
