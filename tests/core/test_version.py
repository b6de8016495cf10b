"""The version."""

from __future__ import annotations

import tomllib
from pathlib import Path

from cloudid_core.version import VERSION


def test_the_version_is_that_of_the_distribution() -> None:
    """What the service says of itself is what is released."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION
