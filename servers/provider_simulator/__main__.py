"""`python -m cloudid_servers.provider_simulator [--listen HOST:PORT] [--seed N] [--tls]`: serve a simulated cloud."""

from __future__ import annotations

import sys

from .. import extras

if __name__ == "__main__":
    with extras.required():
        from ..terminal import run
        from .command import simulate
    sys.exit(run(simulate, "python -m cloudid_servers.provider_simulator"))
