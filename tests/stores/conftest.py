"""Databases for the tests of stores: one server for each process of the test run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .cluster import Cluster, Databases, running_cluster, some_databases


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    with some_databases() as databases:
        yield databases


@pytest.fixture
def database(databases: Databases) -> Iterator[str]:
    """The address of a new, empty database."""
    with databases.database() as address:
        yield address


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A server that a test may stop, kill and configure."""
    with running_cluster() as cluster:
        yield cluster
