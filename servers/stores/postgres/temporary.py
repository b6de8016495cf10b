"""Temporary PostgreSQL servers for demos, benchmarks and tests. They leave nothing behind, however their user ends.

A separate guard process reads from a pipe that the user holds. When the pipe closes, also because the user was killed,
the guard stops all servers in a folder and removes the folder.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

START_SECONDS: Final = 60
HOW: Final = "PostgreSQL is not installed: apt-get install postgresql"
SETTINGS: Final = """
unix_socket_directories = '{folder}'
listen_addresses = '127.0.0.1'
port = {port}
max_connections = 100
log_destination = stderr
"""


class NoPostgres(Exception):
    """PostgreSQL is not installed, or it failed. The text says what to do."""


@contextmanager
def temporary_server(folder: Path | None = None) -> Iterator[str]:
    """Run a server for the length of this context, and return the address of an empty database on it.

    `folder` is the parent folder of its data. Raises `NoPostgres`.
    """
    with guarded_folder(folder) as home:
        server = Server(home)
        server.create()
        server.start()
        yield server.admin


class Server:
    """A server with its data in a folder. If root starts it, it runs as the user `postgres`.

    Methods raise `NoPostgres`.
    """

    def __init__(self, folder: Path, password: str = "") -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        self.password = password or secrets.token_urlsafe(12)
        self.admin = f"postgresql://postgres:{self.password}@127.0.0.1:{self.port}/postgres"
        """The address for connections as superuser."""
        self._programs = _programs()

    def create(self, *options: str) -> None:
        """Create an empty database, with additional options of `initdb`."""
        password = self.folder / "password"
        password.write_text(self.password)
        password.chmod(0o644)
        options = ("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", f"--pwfile={password}", *options)
        self.run("initdb", "-D", self.data, "-U", "postgres", *options)
        self.configure()

    def configure(self, lines: str = "") -> None:
        """Add settings."""
        lines = SETTINGS.format(folder=self.folder, port=self.port) + lines
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(lines)

    def start(self) -> None:
        self.run("pg_ctl", "-D", self.data, "-l", self.folder / "log", "-w", "-t", str(START_SECONDS), "start")

    def stop(self, how: str = "fast") -> None:
        self.run("pg_ctl", "-D", self.data, "-m", how, "-w", "-t", str(START_SECONDS), "stop")

    def run(self, program: str, *arguments: str | Path) -> None:
        as_postgres: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
        with (self.folder / "output").open("ab") as output:
            done = subprocess.run(
                [self._programs / program, *arguments],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=2 * START_SECONDS,
                check=False,
                **as_postgres,
            )
        if done.returncode:
            raise NoPostgres(f"{program} failed: {(self.folder / 'output').read_text('utf-8', 'replace')[-2000:]}")


@contextmanager
def guarded_folder(parent: Path | None = None) -> Iterator[Path]:
    """Create a folder for servers that the user `postgres` can access.

    At the end, stop the servers and remove the folder.
    """
    home = Path(tempfile.mkdtemp(prefix="cloudid-postgres-", dir=parent))
    guard = subprocess.Popen(
        [sys.executable, "-I", __file__, home],
        stdin=subprocess.PIPE,
        start_new_session=True,  # an interrupt from the terminal is for its user only
    )
    try:
        if os.getuid() == 0:
            shutil.chown(home, "postgres", "postgres")
            home.parent.chmod(home.parent.stat().st_mode | 0o011)
        yield home
    finally:
        assert guard.stdin is not None
        guard.stdin.close()
        guard.wait()


def _guard(home: Path) -> None:
    """Wait until the user of this folder has ended, then stop its servers and remove it."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    while home.exists():
        while pids := [pid for file in home.glob("**/postmaster.pid") if (pid := _pid_of_server(file))]:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGQUIT)  # an immediate shutdown
            time.sleep(0.05)
        shutil.rmtree(home, ignore_errors=True)


def _pid_of_server(file: Path) -> int | None:
    """Return the server's process id, or `None` if it has ended, because another process may have that number now."""
    with suppress(OSError, ValueError, IndexError):
        pid = int(file.read_text().split()[0])
        if Path(f"/proc/{pid}/cwd").samefile(file.parent):
            return pid
    return None


def _programs() -> Path:
    """Return the folder of the PostgreSQL programs: Debian's newest version, or the one on the path."""
    if installed := sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name)):
        return installed[-1]
    found = shutil.which("postgres")
    if found is None:
        raise NoPostgres(HOW)
    return Path(found).parent


def free_port() -> int:
    """Return a free port of 127.0.0.1 that stays free until a server uses it, and during restarts.

    It is outside the range from which the system chooses the ports of clients.
    """
    while True:
        port = 20000 + secrets.randbelow(12000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


if __name__ == "__main__":
    _guard(Path(sys.argv[1]))
