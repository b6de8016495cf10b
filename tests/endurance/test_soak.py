"""The soak tells growth from noise; a short one of each server fails no request, and can be drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import pytest

from tests.servers.running import SERVERS

from .soak import FEWEST, MEASURES, WARM_UP, draw, judge, soak

pytestmark = pytest.mark.one_server

MINUTES: Final = 0.1
LENGTH: Final = 90


def series(memory: list[float]) -> dict[str, list[float]]:
    """Samples in which everything but the memory is constant."""
    constant = {measure.name: [10.0] * LENGTH for measure in MEASURES}
    return {**constant, "seconds": [float(second) for second in range(LENGTH)], "memory": memory}


def grows(memory: list[float]) -> bool:
    verdicts = {verdict.measure.name: verdict.is_flat for verdict in judge(series(memory))}
    assert all(flat for name, flat in verdicts.items() if name != "memory")
    return not verdicts["memory"]


def test_noise_is_flat() -> None:
    assert not grows([80.0 + 5.0 * (second % 2) for second in range(LENGTH)])


def test_what_grows_during_the_warm_up_only_is_flat() -> None:
    assert not grows([80.0 + min(second, LENGTH * WARM_UP) for second in range(LENGTH)])


def test_what_grows_all_the_time_is_not_flat() -> None:
    assert grows([80.0 + second / 5 + 5.0 * (second % 2) for second in range(LENGTH)])


@pytest.mark.parametrize("name", SERVERS)
def test_a_short_soak_fails_no_request_and_can_be_drawn(name: str, tmp_path: Path) -> None:
    found, failures = soak(name, tmp_path, MINUTES)
    assert failures == []
    assert all(len(found[measure.name]) == len(found["seconds"]) >= FEWEST for measure in MEASURES)
    assert max(found["stored tokens"]) > 0
    picture = ElementTree.fromstring(draw(name, found))
    assert len(picture.findall("{http://www.w3.org/2000/svg}polyline")) == len(MEASURES)
