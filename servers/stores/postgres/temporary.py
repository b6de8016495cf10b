"""PostgreSQL servers of one's own, for a demo, a benchmark or tests: nothing is left of them, however their user ends.

A guard, a process of its own, reads from a pipe that its user holds. When that closes the pipe, or is killed, the guard
ends the servers below a folder and removes it.
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
    """PostgreSQL is not installed, or did not do what it was asked; the text says what to do."""


@contextmanager
def temporary_server(folder: Path | None = None) -> Iterator[str]:
    """The address of an empty database on a server that runs for as long as the block lasts.

    `folder`: where its data are made. Raises `NoPostgres`.
    """
    with guarded_folder(folder) as home:
        server = Server(home)
        server.create()
        server.start()
        yield server.admin


class Server:
    """A server whose data are in a folder. The user `postgres` runs it when root asks. Methods raise `NoPostgres`."""

    def __init__(self, folder: Path, password: str = "") -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        self.password = password or secrets.token_urlsafe(12)
        self.admin = f"postgresql://postgres:{self.password}@127.0.0.1:{self.port}/postgres"
        """The address of a superuser's connection."""
        self._programs = _programs()

    def create(self, *options: str) -> None:
        """Make an empty database, with some options of `initdb` besides."""
        password = self.folder / "password"
        password.write_text(self.password)
        password.chmod(0o644)
        options = ("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", f"--pwfile={password}", *options)
        self.run("initdb", "-D", self.data, "-U", "postgres", *options)
        self.configure()

    def configure(self, lines: str = "") -> None:
        """Add settings to its own."""
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
    """A new folder for servers, which PostgreSQL's own user can reach. In the end they are ended and it is removed."""
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
    """Wait until the user of the servers below this folder has ended."""
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
    """Its process, unless that has ended: its number may be another one's by now."""
    with suppress(OSError, ValueError, IndexError):
        pid = int(file.read_text().split()[0])
        if Path(f"/proc/{pid}/cwd").samefile(file.parent):
            return pid
    return None


def _programs() -> Path:
    """The folder of the server's programs: Debian's newest, or the one on the path."""
    if installed := sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name)):
        return installed[-1]
    found = shutil.which("postgres")
    if found is None:
        raise NoPostgres(HOW)
    return Path(found).parent


def free_port() -> int:
    """A port of 127.0.0.1 that is still free when a server has it later, or again after a restart.

    It is below those that systems give to clients, which are many.
    """
    while True:
        port = 20000 + secrets.randbelow(12000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


if __name__ == "__main__":
    _guard(Path(sys.argv[1]))
