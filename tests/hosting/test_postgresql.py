"""The SQL for Azure Database for PostgreSQL, on a PostgreSQL of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest

from cloudid_servers.stores.postgres.temporary import NoPostgres, Server, guarded_folder
from tests.pages.blocks import ROOT, blocks_of
from tests.waiting import PATIENCE

SQL: Final = ROOT / "deploy/postgresql/create.sql"
PAGE: Final = "docs/hosting/postgresql.md"
ON_AZURE: Final = "DATABASE.postgres.database.azure.com/cloudid?sslmode=verify-full&sslrootcert=system"

pytestmark = pytest.mark.tools


def run(*command: str, folder: Path, **environment: str) -> str:
    ran = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=PATIENCE
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_init_accepts_the_database_that_the_page_creates(tmp_path: Path) -> None:
    [settings] = [block.text for block in blocks_of(PAGE, "toml")]
    [command] = [block.text for block in blocks_of(PAGE, "console") if "psql" in block.text]
    assert f"--file {SQL.relative_to(ROOT)}" in command
    if not shutil.which("psql"):
        pytest.skip("psql is missing: install the client of PostgreSQL")
    try:
        with guarded_folder(None) as home:
            server = Server(home)
            server.create()
            server.start()
            host = urlsplit(server.admin).netloc.rpartition("@")[2]
            (tmp_path / "db-password").write_text("of the role\n")
            variables = ("--set", "ON_ERROR_STOP=1", "--set", "password=of the role")
            run("psql", server.admin, *variables, "--file", str(SQL), folder=tmp_path)
            (tmp_path / "cloudid.toml").write_text(settings.replace(ON_AZURE, f"{host.rpartition('/')[2]}/cloudid"))
            (tmp_path / "db-password").chmod(0o600)
            program = (sys.executable, "-m", "cloudid_servers.cli", "init", "--settings", "cloudid.toml")
            assert run(*program, folder=tmp_path, PYTHONPATH=str(ROOT)).startswith("root token: ")
    except NoPostgres as missing:
        pytest.skip(str(missing))
