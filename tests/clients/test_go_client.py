"""The peer's own client library in Go against both servers: the program in `go/` checks, each check is a test here."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from cloudid_servers.provider_simulator import Simulator, start
from tests.servers.running import Running
from tests.waiting import PATIENCE

PROGRAM: Final = Path(__file__).parent / "go"
CHECKS: Final = tuple(re.findall(r'^\t\{"(.+)", \w+\},$', (PROGRAM / "main.go").read_text(), re.MULTILINE))
SERVERS: Final = ("trio_server", "aiohttp_server")
BUILD_TIMEOUT: Final = 600.0
"""Seconds. The first build compiles the library; later ones take it from Go's cache."""


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, built; skips where Go or the modules are missing."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("no Go toolchain: install Go 1.24 or newer from https://go.dev/dl and put `go` on the PATH")
    downloaded = subprocess.run([go, "mod", "download"], cwd=PROGRAM, capture_output=True, text=True)
    if downloaded.returncode:
        pytest.skip(f"the Go modules are missing: run `go mod download` in {PROGRAM} once, with a network")
    built = tmp_path_factory.mktemp("go") / "clients"
    command = [go, "build", "-buildvcs=false", "-o", str(built), "."]
    result = subprocess.run(command, cwd=PROGRAM, capture_output=True, text=True, timeout=BUILD_TIMEOUT)
    assert result.returncode == 0, result.stderr
    return built


@pytest.fixture(scope="module", params=[SERVERS[0], pytest.param(SERVERS[1], marks=pytest.mark.long)])
def results(request: pytest.FixtureRequest, program: Path) -> Iterator[dict[str, Any]]:
    """What the program says about each check, against one server."""
    with start(Simulator()) as cloud:
        arguments = ("--dev", "--listen", "127.0.0.1:0", "--root-token", "root", "--provider", cloud.url)
        with Running(f"cloudid_servers.{request.param}", *arguments) as server:
            command = [str(program), server.url, "root", cloud.url]
            # An empty environment: the library reads VAULT_* variables and proxies from it.
            run = subprocess.run(command, env={}, capture_output=True, text=True, timeout=PATIENCE)
            assert run.returncode == 0, run.stderr
            yield {line["check"]: line for line in map(json.loads, run.stdout.splitlines())}


@pytest.mark.timeout(BUILD_TIMEOUT + 3 * PATIENCE)
@pytest.mark.parametrize("check", CHECKS)
def test_the_client_in_go(results: dict[str, Any], check: str) -> None:
    assert results[check]["ok"], results[check]["detail"]


def test_every_check_is_a_test(results: dict[str, Any]) -> None:
    """The names are read from the program's source; a table that is written otherwise would be overlooked."""
    assert tuple(results) == CHECKS
