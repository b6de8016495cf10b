"""What a release needs besides code: the owner's lines, a changelog entry, and workflows that run pinned actions."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from .ready import MARK, ROOT, missing_from

WORKFLOWS: Final = tuple(sorted((ROOT / ".github/workflows").glob("*.yml")))
PINNED: Final = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
TARGET: Final = re.compile(r"\bmake ([a-z-]+)")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 9.8.7\n")
    return tmp_path


def add(repository: Path, name: str, text: str) -> None:
    (repository / name).write_text(text)
    subprocess.run(["git", "add", name], cwd=repository, check=True)


def test_a_complete_repository_is_ready(repository: Path) -> None:
    assert list(missing_from(repository, "v9.8.7", "9.8.7")) == []


def test_a_line_that_waits_for_the_owner_stops_a_release(repository: Path) -> None:
    add(repository, "SECURITY.md", f"# Security\n\n{MARK}: an address\n")
    assert list(missing_from(repository, "", "9.8.7")) == [
        f"only the owner can complete SECURITY.md:3:{MARK}: an address"
    ]


@pytest.mark.parametrize(("tag", "version"), [("v9.8.6", "9.8.7"), ("v1.2.3", "1.2.3")])
def test_tag_version_and_changelog_belong_together(tag: str, version: str, repository: Path) -> None:
    assert len(list(missing_from(repository, tag, version))) == 1


def steps(key: str) -> Iterator[str]:
    for workflow in WORKFLOWS:
        for line in workflow.read_text().splitlines():
            name, separator, value = line.strip().removeprefix("- ").partition(": ")
            if separator and name == key:
                yield value


def test_every_action_is_pinned_to_a_commit() -> None:
    used = list(steps("uses"))
    assert used
    assert [action for action in used if not PINNED.fullmatch(action)] == []


def test_workflows_run_targets_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = [target for command in steps("run") for target in TARGET.findall(command)]
    assert targets
    assert [target for target in targets if f"\n{target}: " not in makefile] == []
