"""`python -m servers.aiohttp_server`: see `servers.command.options`."""

from __future__ import annotations

import sys

from ..command.cli import main
from .serve import perform, serve

if __name__ == "__main__":
    sys.exit(main("aiohttp_server", serve, perform))
