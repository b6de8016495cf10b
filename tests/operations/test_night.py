"""A night on call, in one go: every breakage is found within two steps and fixed with what the product shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.servers.running import SERVERS

from .breakages import BREAKAGES, QUICK
from .night import Breakage, night_of

LEAST: Final = 20


def live_through(runtime: str, folder: Path, breakages: Sequence[Breakage]) -> None:
    with night_of(runtime, folder) as night:
        for breakage in breakages:
            breakage.live_through(night)


@pytest.mark.long
@pytest.mark.parametrize("runtime", SERVERS)
def test_a_short_night_is_lived_through(runtime: str, tmp_path: Path) -> None:
    live_through(runtime, tmp_path, QUICK)


@pytest.mark.long
@pytest.mark.parametrize("runtime", SERVERS)
def test_the_whole_night_is_lived_through(runtime: str, tmp_path: Path) -> None:
    live_through(runtime, tmp_path, BREAKAGES)


def test_the_night_has_twenty_breakages_of_different_names() -> None:
    assert len({each.name for each in BREAKAGES}) == len(BREAKAGES) >= LEAST
