"""Databases for the tests of several nodes: the same as for the tests of stores."""

from __future__ import annotations

from tests.stores.conftest import database, databases

__all__ = ["database", "databases"]
