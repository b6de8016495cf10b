"""The command, the same for both servers: options, and everything that a server is started with."""

from . import commands
from .bootstrap import Setup, open_store, set_up
from .commands import Server
from .first_steps import METADATA, STRANGER
from .options import Options

__all__ = ["METADATA", "STRANGER", "Options", "Server", "Setup", "commands", "open_store", "set_up"]
