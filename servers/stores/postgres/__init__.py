"""The store on PostgreSQL: several nodes, each of them reading and writing, share one database."""

from __future__ import annotations

from .address import Address
from .schema import Mode
from .store import PostgresStore

__all__ = ["Address", "Mode", "PostgresStore"]
