"""The page about metrics is printed from their table."""

from __future__ import annotations

from pathlib import Path

from cloudid_core.metrics import METRICS
from tests.reference.metrics import page

PAGE = Path(__file__).parents[3] / "docs/reference/metrics.md"


def test_the_page_is_printed_from_the_table() -> None:
    assert PAGE.read_text() == page()
    assert all(page().count(f"| `{metric.name}` |") == 1 for metric in METRICS)
