"""`python -m cloudid_servers.role_tests`: see `cloudid_servers.role_tests.program`."""

from __future__ import annotations

import sys

from ..runtime.interrupts import until_interrupted
from .program import main

if __name__ == "__main__":
    sys.exit(until_interrupted(main))
