"""The programs of the page for embedders, one for each framework, on the servers of others that its table names."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import httpx
import pytest

from cloudid_servers.stores.postgres.temporary import free_port
from tests.pages.blocks import blocks_of
from tests.waiting import PATIENCE, PATIENT, wait_until

from .running import ROOT, initialise

PROGRAMS: Final = {
    block.marks["file"].removesuffix(".py"): block.text
    for block in blocks_of("docs/how-to/embed.md", "python")
    if block.marks.get("file", "").startswith(("with_", "app"))
}
PAGE: Final = (ROOT / "docs/how-to/embed.md").read_text()
COMMANDS: Final = {
    "uvicorn": ("uvicorn", "--http", "h11", "--port", "{port}", "{program}:app"),
    "hypercorn": ("hypercorn", "--bind", "127.0.0.1:{port}", "{program}:app"),
    "hypercorn on trio": ("hypercorn", "--worker-class", "trio", "--bind", "127.0.0.1:{port}", "{program}:app"),
    "granian": ("granian", "--interface", "asgi", "--no-ws", "--port", "{port}", "{program}:app"),
    "hypercorn for WSGI": ("hypercorn", "--bind", "127.0.0.1:{port}", "wsgi:{program}:app"),
    "granian for WSGI": ("granian", "--interface", "wsgi", "--port", "{port}", "{program}:app"),
    "aiohttp": ("aiohttp.web", "--port", "{port}", "{program}:made"),
}
EVERYWHERE: Final = ("uvicorn", "hypercorn", "hypercorn on trio", "granian")
ON_ASYNCIO: Final = ("uvicorn", "hypercorn", "granian")
RUNS: Final = {
    "app": EVERYWHERE,
    "with_starlette": EVERYWHERE,
    "with_litestar": EVERYWHERE,
    "with_quart": ON_ASYNCIO,
    "with_django": ON_ASYNCIO,
    "with_flask": ("hypercorn for WSGI", "granian for WSGI"),
    "with_aiohttp": ("aiohttp",),
}
PACKAGES: Final = {"app": "fastapi"}
"""Of the programs that are not named after their framework's package."""
MADE: Final = "\n\ndef made(arguments: list[str]) -> web.Application:\n    return app\n"
"""What the command of aiohttp calls."""

SHORT: Final = {"app": "hypercorn on trio", "with_litestar": "granian", "with_quart": "hypercorn"}
"""The one server on which the short targets run a program, if it is not the first of its list."""


def runs() -> list[object]:
    return [
        pytest.param(program, by, marks=() if by == SHORT.get(program, servers[0]) else pytest.mark.long)
        for program, servers in RUNS.items()
        for by in servers
    ]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store, as the page prepares it."""
    folder = tmp_path_factory.mktemp("prepared")
    [settings] = blocks_of("docs/how-to/embed.md", "toml")
    (folder / "cloudid.toml").write_text(settings.text)
    (folder / "root-token").write_text(initialise("aiohttp_server", folder / "cloudid.toml"))
    return folder


def test_the_table_of_the_page_says_where_its_programs_run() -> None:
    assert set(PROGRAMS) == set(RUNS)
    header, *rows = (
        [cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")
    )
    shown = {
        f"with_{framework.lower()}": {server for server, cell in zip(header[1:], cells, strict=True) if cell == "yes"}
        for names, *cells in rows
        for framework in names.split(", ")
    }
    shown["app"] = shown.pop("with_fastapi")
    names = {"hypercorn": "hypercorn on asyncio"}
    run = {
        program: {names.get(server, server) for server in (by.removesuffix(" for WSGI") for by in servers)}
        for program, servers in RUNS.items()
    }
    assert shown == {program: servers for program, servers in run.items() if servers != {"aiohttp"}}


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_a_program_takes_ten_lines(program: str) -> None:
    """Apart from its imports and blank lines."""
    lines = [line for line in PROGRAMS[program].splitlines() if line and not line.startswith(("from ", "import "))]
    assert len(lines) <= 10


@pytest.mark.parametrize("program, by", runs())
def test_the_program_serves_both_applications_and_stops(program: str, by: str, prepared: Path, tmp_path: Path) -> None:
    package = PACKAGES.get(program, program.removeprefix("with_"))
    server = COMMANDS[by][0].partition(".")[0]
    for name in (package, server):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    folder = tmp_path / "copy"
    shutil.copytree(prepared, folder)
    (folder / f"{program}.py").write_text(PROGRAMS[program] + (MADE if by == "aiohttp" else ""))
    port = free_port()
    module, *options = (word.format(port=port, program=program) for word in COMMANDS[by])
    url = f"http://127.0.0.1:{port}"
    with started([sys.executable, "-m", module, *options], folder, f"{url}/hello") as log:
        assert "Hello!" in httpx.get(f"{url}/hello", **PATIENT).text
        token = (folder / "root-token").read_text()
        own = httpx.get(f"{url}/cloudid/v1/auth/token/lookup-self", headers={"X-Vault-Token": token}, **PATIENT)
        assert own.json()["data"]["policies"] == ["root"]
        assert httpx.get(f"{url}/cloudid/v1/auth/token/lookup-self", **PATIENT).status_code == 403
        assert httpx.get(f"{url}/elsewhere", **PATIENT).status_code == 404
    assert "Traceback" not in log.read_text()
    assert "not handed over" not in log.read_text()


@contextmanager
def started(command: list[str], folder: Path, url: str) -> Iterator[Path]:
    """Run a server in a folder that has its program, from its first answer on; the path of what it prints."""
    log = folder / "log"
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)
    try:
        wait_until(lambda: is_answered(url, process, log))
        yield log
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)


def is_answered(url: str, process: subprocess.Popen[bytes], log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    try:
        return httpx.get(url, **PATIENT).status_code == 200
    except httpx.TransportError:
        return False
