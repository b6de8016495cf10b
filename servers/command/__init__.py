"""The command, the same for both servers: options, and everything that a server is started with."""

from . import commands
from .bootstrap import Options, Setup, open_store, set_up
from .commands import Server
from .first_steps import MACHINE, METADATA, STRANGER, first_writes, machine_of
