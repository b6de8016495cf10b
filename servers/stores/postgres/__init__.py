"""The store on PostgreSQL: several nodes, each of them reading and writing, share one database.

address      where the database is: a `postgresql://` address without its password
connection   one connection over libpq, on trio and on asyncio
schema       tables and functions: made by `init`, compared by everybody else
statements   what is asked of the database, and how values travel
session      a pair of connections, and which commits can still happen on an older one
connector    always one session: a lost one is replaced
store        the `Store`: batches, outcomes, coalesced reads
temporary    servers of one's own, for demos, benchmarks and tests
"""

from __future__ import annotations

from .address import Address
from .schema import Mode
from .session import public_database
from .store import PostgresStore
