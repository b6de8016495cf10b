"""`python -m cloudid_servers.aiohttp_server`: see `cloudid_servers.command.program`."""

from __future__ import annotations

import sys

from .. import extras

if __name__ == "__main__":
    with extras.required():
        from ..command.program import main
        from .serve import SERVER
    sys.exit(main("aiohttp_server", SERVER))
