"""Stores: what hosts keep entries in, behind one small asynchronous protocol."""

from .backup import back_up, glance
from .copying import copy_store
from .group_commit import GroupCommit
from .memory import InMemory
from .sqlite import SqliteStore, compact
from .store import BlockingStore, Outcome, Store
