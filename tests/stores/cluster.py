"""A real PostgreSQL that tests start themselves, or a running one that a variable names."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

VARIABLE: Final = "CLOUDID_TEST_POSTGRES"
PASSWORD: Final = "c4n4ry-of-a-password"
INSTALLED: Final = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
HOW: Final = f"no PostgreSQL: apt-get install postgresql, or set {VARIABLE}=postgresql://USER@HOST/DATABASE"
SETTINGS: Final = """
unix_socket_directories = '{folder}'
listen_addresses = '127.0.0.1'
port = {port}
fsync = off
max_connections = 60
wal_keep_size = 64MB
log_destination = stderr
"""
"""A process that is killed loses nothing without fsync, only a machine does."""


def programs() -> Path | None:
    """The folder of the server's programs."""
    found = shutil.which("postgres")
    return INSTALLED[-1] if INSTALLED else Path(found).parent if found else None


class Databases:
    """A server on which databases can be made. `admin` is the address of a superuser's connection."""

    _numbers: count[int] = count(1)

    def __init__(self, admin: str) -> None:
        self.admin = admin

    def execute(self, statement: str, *parameters: Any, database: str = "") -> list[tuple[Any, ...]]:
        """Run a statement of its own; its rows."""
        with psycopg.connect(database or self.admin, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), parameters)
            return cursor.fetchall() if cursor.description else []

    def address(self, database: str) -> str:
        """How the tests' role connects to a database."""
        head, _, _ = self.admin.partition("?")
        return f"{head.rpartition('/')[0]}/{database}"

    @contextmanager
    def database(self, options: str = "TEMPLATE template0 ENCODING 'UTF8'") -> Iterator[str]:
        """The address of a new, empty database."""
        name = f"cloudid_{os.getpid()}_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} {options}")
        try:
            yield self.address(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")


class Cluster(Databases):
    """A server of the tests' own: it can be stopped, killed and copied. `postgres` runs it when the tests are root."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        binaries = programs()
        assert binaries is not None
        self._binaries = binaries
        self.folder = folder
        self.data = folder / "data"
        self.port = port or free_port()
        super().__init__(f"postgresql://postgres:{PASSWORD}@127.0.0.1:{self.port}/postgres")

    def create(self) -> None:
        (self.folder / "password").write_text(PASSWORD)
        self.run(
            "initdb",
            "-D",
            self.data,
            "-U",
            "postgres",
            "--auth=scram-sha-256",
            "--no-sync",
            "--encoding=UTF8",
            "--locale=C",
            f"--pwfile={self.folder / 'password'}",
        )
        self.configure(SETTINGS.format(folder=self.folder, port=self.port))

    def configure(self, lines: str) -> None:
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(lines)

    def start(self) -> None:
        self.run("pg_ctl", "-D", self.data, "-l", self.folder / "log", "-w", "-t", "60", "start")

    def stop(self, how: str = "fast") -> None:
        self.run("pg_ctl", "-D", self.data, "-m", how, "-w", "-t", "60", "stop")

    def promote(self) -> None:
        self.run("pg_ctl", "-D", self.data, "-w", "promote")

    def standby(self, folder: Path) -> Cluster:
        """A server that follows this one."""
        twin = Cluster(folder)
        twin.run(
            "pg_basebackup", "-d", self.admin, "-D", twin.data, "-R", "-X", "stream", "--checkpoint=fast", "--no-sync"
        )
        twin.configure(SETTINGS.format(folder=folder, port=twin.port))
        return twin

    def run(self, program: str, *arguments: str | Path) -> None:
        as_postgres: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
        with (self.folder / "output").open("ab") as output:
            done = subprocess.run(
                [self._binaries / program, *arguments],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=90,
                check=False,
                **as_postgres,
            )
        assert done.returncode == 0, (self.folder / "output").read_text()


@contextmanager
def synchronous_standby(primary: Cluster, folder: Path) -> Iterator[Cluster]:
    """A server that has every commit before its answer. The primary may be gone at the end, and is back then."""
    standby = primary.standby(folder)
    standby.start()
    primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.execute("SELECT pg_reload_conf()")
    try:
        while primary.execute("SELECT sync_state FROM pg_stat_replication") != [("sync",)]:
            time.sleep(0.02)
        yield standby
    finally:
        standby.stop("immediate")
        (primary.data / "postgresql.auto.conf").write_text("")
        if (primary.data / "postmaster.pid").exists():
            primary.stop("immediate")
        primary.start()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


@contextmanager
def server_folder() -> Iterator[Path]:
    """A folder that PostgreSQL's own user can reach, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="cloudid-pg-", dir="/tmp"))
    try:
        if os.getuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """A server for as long as the block lasts; skips the test where none can be had."""
    if programs() is None:
        pytest.skip(HOW)
    with server_folder() as folder:
        cluster = Cluster(folder)
        cluster.create()
        cluster.start()
        try:
            yield cluster
        finally:
            if (cluster.data / "postmaster.pid").exists():
                cluster.stop("immediate")


@contextmanager
def some_databases() -> Iterator[Databases]:
    """The running server that the variable names, or one of our own."""
    if address := os.environ.get(VARIABLE):
        yield Databases(address)
    else:
        with running_cluster() as cluster:
            yield cluster
