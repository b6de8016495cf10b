"""`python -m servers.trio_server`: see `servers.common.options`."""

from __future__ import annotations

import sys

from ..common.cli import main
from .serve import perform, serve

if __name__ == "__main__":
    sys.exit(main("trio_server", serve, perform))
