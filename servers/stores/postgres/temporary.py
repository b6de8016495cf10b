"""A PostgreSQL server of one's own, for a demo or a benchmark: nothing is left of it."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

START_SECONDS: Final = 60
SETTINGS: Final = """
unix_socket_directories = '{folder}'
listen_addresses = '127.0.0.1'
port = {port}
max_connections = 100
"""


class NoPostgres(Exception):
    """PostgreSQL is not installed, or did not start; the text tells what to do."""


@contextmanager
def temporary_server(folder: Path | None = None) -> Iterator[str]:
    """The address of an empty database on a server that runs for as long as the block lasts.

    The user `postgres` runs it when root asks. `folder`: where its data are made. Raises `NoPostgres`.
    """
    programs = _programs()
    home = Path(tempfile.mkdtemp(prefix="cloudid-postgres-", dir=folder))
    try:
        if os.getuid() == 0:
            shutil.chown(home, "postgres", "postgres")
            home.parent.chmod(home.parent.stat().st_mode | 0o011)
        port, password = _free_port(), secrets.token_urlsafe(12)
        (home / "password").write_text(password)
        (home / "password").chmod(0o644)
        data = home / "data"
        options = ("-U", "postgres", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C")
        _run(programs / "initdb", home, "-D", data, *options, f"--pwfile={home / 'password'}")
        with (data / "postgresql.conf").open("a") as file:
            file.write(SETTINGS.format(folder=home, port=port))
        control = (programs / "pg_ctl", home, "-D", data, "-w", "-t", str(START_SECONDS))
        _run(*control, "-l", home / "log", "start")
        try:
            yield f"postgresql://postgres:{password}@127.0.0.1:{port}/postgres"
        finally:
            _run(*control, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _programs() -> Path:
    """The folder of the server's programs."""
    if found := shutil.which("postgres"):
        return Path(found).parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if not installed:
        raise NoPostgres("PostgreSQL is not installed: apt-get install postgresql")
    return installed[-1]


def _run(program: Path, home: Path, *arguments: str | Path) -> None:
    as_postgres: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
    with (home / "output").open("ab") as output:
        done = subprocess.run(
            [program, *arguments],
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=2 * START_SECONDS,
            check=False,
            **as_postgres,
        )
    if done.returncode:
        raise NoPostgres(f"{program.name} failed: {(home / 'output').read_text('utf-8', 'replace')[-2000:]}")


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
