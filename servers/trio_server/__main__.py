"""`python -m cloudid_servers.trio_server`: see `cloudid_servers.command.options`."""

from __future__ import annotations

import sys

from ..command.cli import main
from .serve import perform, serve

if __name__ == "__main__":
    sys.exit(main("trio_server", serve, perform))
