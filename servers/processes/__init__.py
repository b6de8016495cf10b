"""Listeners, workers, and what a signal changes in a running server."""

from .listeners import ACCEPTED_AT_ONCE, BACKLOG, AddressTaken, bind
from .reload import Reload, reloaded
from .workers import Supervisor, Worker
