"""The demo: README's first command shows the whole story, on both servers, and leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

from cloudid_servers.demo import SERVERS
from tests.pages.blocks import blocks_of
from tests.pages.runner import commands, is_shown
from tests.waiting import PATIENCE

from .running import ROOT

pytestmark = pytest.mark.one_server

STEPS: Final = (
    "$ cloudid login --role web",
    "$ cloudid why --role web",
    "/v1/cloud/roles/team-reader -> 204",
    "/v1/cloud/roles/team-owner -> 403",
    "$ cloudid creds reader",
    "objects in Azure: 0",
    "/v1/cloud/rotate-root -> 409",
    "credential source: identity_token",
    "/v1/cloud/rotate-root -> 204",
    "$ cloudid creds reader --exec",
    "nothing is left of it",
    "make dev ",
)


@pytest.mark.parametrize("name", SERVERS)
def test_the_demo_tells_its_story_to_the_end(name: str) -> None:
    command = [sys.executable, "-m", "cloudid_servers.demo", "--server", name]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    places = [ran.stdout.find(step) for step in STEPS]
    assert places == sorted(places)
    assert places[0] > 0
    [shown] = [
        each.shown
        for block in blocks_of("README.md", "console")
        for each in commands(block)
        if "make demo" in each.text
    ]
    assert is_shown(shown, ran.stdout)
