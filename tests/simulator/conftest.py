"""Fixtures of the simulator's tests."""

from __future__ import annotations

import pytest

from .cloud import Cloud


@pytest.fixture
def cloud() -> Cloud:
    return Cloud()
