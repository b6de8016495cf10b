"""`python -m cloudid_servers.audit verify FILE …`: see `cloudid_servers.audit.program`."""

from __future__ import annotations

import sys

from .. import extras

if __name__ == "__main__":
    with extras.required():
        from ..terminal import run
        from .program import audit
    sys.exit(run(audit, "python -m cloudid_servers.audit"))
