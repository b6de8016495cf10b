"""A real PostgreSQL that tests start themselves, or a running one that a variable names."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from cloudid_servers.stores.postgres.temporary import NoPostgres, Server, guarded_folder

VARIABLE: Final = "CLOUDID_TEST_POSTGRES"
PASSWORD: Final = "c4n4ry-of-a-password"
SETTINGS: Final = """
fsync = off
wal_keep_size = 64MB
"""
"""A process that is killed loses nothing without fsync, only a machine does."""


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


class Cluster(Server, Databases):
    """A server of the tests' own: it can be stopped, killed and copied."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, PASSWORD)

    def configure(self, lines: str = "") -> None:
        super().configure(SETTINGS + lines)

    def promote(self) -> None:
        self.run("pg_ctl", "-D", self.data, "-w", "promote")

    def restart(self, how: str) -> None:
        self.stop(how)
        self.start()

    def fail_over_to(self, standby: Cluster) -> None:
        """It dies, and its standby takes its place."""
        self.stop("immediate")
        standby.promote()

    def with_standby(self, database: str, standby: Cluster) -> str:
        """The address of a database that names both servers."""
        return database.replace(f":{self.port}/", f":{self.port},127.0.0.1:{standby.port}/")

    @contextmanager
    def standby(self) -> Iterator[Cluster]:
        """A server that follows this one, and runs."""
        with guarded_folder() as folder:
            twin = Cluster(folder)
            options = ("-R", "-X", "stream", "--checkpoint=fast", "--no-sync")
            twin.run("pg_basebackup", "-d", self.admin, "-D", twin.data, *options)
            twin.configure()
            twin.start()
            yield twin


@contextmanager
def synchronous_standby(primary: Cluster) -> Iterator[Cluster]:
    """A server that has every commit before its answer. The primary may be gone at the end, and is back then."""
    with primary.standby() as standby:
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


def require_installed() -> None:
    """Skip the test where no server can be started."""
    try:
        Server(Path())
    except NoPostgres as reason:
        pytest.skip(str(reason))


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """A server for as long as the block lasts; skips the test where none can be had."""
    with guarded_folder() as folder:
        try:
            cluster = Cluster(folder)
        except NoPostgres as reason:
            pytest.skip(f"{reason}, or set {VARIABLE}=postgresql://USER@HOST/DATABASE")
        cluster.create("--no-sync")
        cluster.start()
        yield cluster


@contextmanager
def some_databases() -> Iterator[Databases]:
    """The running server that the variable names, or one of our own."""
    if address := os.environ.get(VARIABLE):
        yield Databases(address)
    else:
        with running_cluster() as cluster:
            yield cluster
