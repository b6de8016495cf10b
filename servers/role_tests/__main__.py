"""`python -m cloudid_servers.role_tests`: see `cloudid_servers.role_tests.program`."""

from __future__ import annotations

import sys

from .. import extras

if __name__ == "__main__":
    with extras.required():
        from ..terminal import run
        from .program import test
    sys.exit(run(test, "python -m cloudid_servers.role_tests"))
