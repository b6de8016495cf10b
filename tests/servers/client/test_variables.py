"""Variables: lines of NAME=value that a shell reads as they were meant."""

from __future__ import annotations

import subprocess

import pytest

from cloudid_servers.client import dotenv

from ..running import PATIENCE


@pytest.mark.parametrize("value", ["3uE8Q~a.b-c_d", "~root", "a b", "$(touch x)", "a'b", "#x", "", "a\\b"])
def test_a_shell_reads_what_was_written(value: str) -> None:
    script = f'{dotenv({"NAME": value})}printf "%s" "$NAME"'
    shell = subprocess.run(["sh", "-eu", "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert shell.stdout == value


def test_ids_and_secrets_of_azure_are_not_quoted() -> None:
    """Docker and GitLab take quotes for a part of the value."""
    assert dotenv({"NAME": "3uE8Q~a.b-c_d"}) == "NAME=3uE8Q~a.b-c_d\n"
