"""The vendor's libraries and a peer's client for Node: the program in `node/` checks, each check is a test here."""

from __future__ import annotations

import json
import os
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

PROGRAM: Final = Path(__file__).parent / "node"
CHECKS: Final = tuple(re.findall(r'^  \["(.+)", \w+\.\w+\],$', (PROGRAM / "main.mjs").read_text(), re.MULTILINE))
SERVERS: Final = ("trio_server", "aiohttp_server")
OLDEST: Final = 20
"""The first release of Node that the libraries support."""


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program beside its packages; skips where Node or the packages are missing."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip(
            f"no Node: install Node {OLDEST} or newer from https://nodejs.org and put `node` and `npm` on the PATH"
        )
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True, timeout=PATIENCE).stdout
    if int(version.strip().removeprefix("v").split(".")[0]) < OLDEST:
        pytest.skip(f"Node {version.strip()} is too old: install Node {OLDEST} or newer from https://nodejs.org")
    folder = shutil.copytree(
        PROGRAM, tmp_path_factory.mktemp("node") / "program", ignore=shutil.ignore_patterns("node_modules")
    )
    command = [npm, "ci", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund"]
    installed = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    if installed.returncode:
        pytest.skip(
            f"the packages are missing: run `npm ci` in {PROGRAM} once, with a network, which fills npm's cache"
        )
    return folder / "main.mjs"


@pytest.fixture(scope="module", params=[pytest.param(SERVERS[0], marks=pytest.mark.long), SERVERS[1]])
def results(request: pytest.FixtureRequest, program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """What the program says about each check, against one server, a cloud, and a cloud over TLS."""
    certificate = tmp_path_factory.mktemp("tls") / "certificate.pem"
    with start(Simulator()) as cloud, start(Simulator(), certificate=certificate) as secure:
        arguments = ("--dev", "--listen", "127.0.0.1:0", "--root-token", "root", "--provider", cloud.url)
        with Running(f"cloudid_servers.{request.param}", *arguments) as server:
            command = ["node", str(program), server.url, "root", cloud.url, secure.url]
            # Nothing else of the environment: the libraries read AZURE_* and VAULT_* variables and proxies from it.
            environment = {"PATH": os.environ["PATH"], "NODE_EXTRA_CA_CERTS": str(certificate)}
            run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
            assert run.returncode == 0, run.stderr
            yield {line["check"]: line for line in map(json.loads, run.stdout.splitlines())}


@pytest.mark.timeout(4 * PATIENCE)
@pytest.mark.parametrize("check", CHECKS)
def test_the_clients_in_node(results: dict[str, Any], check: str) -> None:
    assert results[check]["ok"], results[check]["detail"]


def test_every_check_is_a_test(results: dict[str, Any]) -> None:
    """The names are read from the program's source; a table that is written otherwise would be overlooked."""
    assert tuple(results) == CHECKS


def test_the_lock_names_no_registry() -> None:
    """Packages come from the registry of whoever runs the tests."""
    assert '"resolved"' not in (PROGRAM / "package-lock.json").read_text()
