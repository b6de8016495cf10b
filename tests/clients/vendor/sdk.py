"""The vendor's SDKs, which an extra of their own installs: they are large."""

from __future__ import annotations

from typing import Any

import pytest


def sdk(name: str) -> Any:
    """The module of that name; without it, the tests of the importing module are skipped."""
    return pytest.importorskip(name, reason=f"{name} is not installed; install it with: pip install '.[vendor-sdks]'")
