"""The version."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from cloudid_core.version import VERSION

ROOT = Path(__file__).parents[2]


def test_the_version_is_that_of_the_distribution() -> None:
    """What the service says of itself is what is released."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    source = project["tool"]["hatch"]["version"]
    [found] = re.findall(source["pattern"], (ROOT / source["path"]).read_text())
    assert (project["project"]["dynamic"], found) == (["version"], VERSION)
