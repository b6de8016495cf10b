"""What the short targets leave to the long ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.sampling import ONE_OF, every, sample_of
from tests.waiting import PATIENCE

ROOT: Final = Path(__file__).parent.parent
STORIES: Final = "tests/servers/audit/test_devices.py"
SERVERS: Final = ("trio_server", "aiohttp_server")


def told(story: str) -> str:
    """A story without its server."""
    for server in SERVERS:
        story = story.replace(server, "")
    return story


@pytest.mark.long
def test_a_story_is_told_on_one_server_by_turns() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "not long", STORIES]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE).stdout
    stories = [line for line in shown.splitlines() if "::" in line]
    assert len(set(map(told, stories))) == len(stories) > 0
    assert all(any(server in story for story in stories) for server in SERVERS)


def test_a_sample_is_every_so_many_worlds_from_one_that_the_name_decides() -> None:
    worlds = range(20)
    samples = {tuple(sample_of(f"test[{number}]")(worlds)) for number in range(100)}
    assert samples == {tuple(worlds[first::ONE_OF]) for first in range(ONE_OF)}
    assert [*every(worlds)] == [*worlds]
