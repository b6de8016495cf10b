"""`python -m cloudid_servers.cli`: the same as `cloudid`."""

from __future__ import annotations

import sys

from . import main

if __name__ == "__main__":
    sys.exit(main())
