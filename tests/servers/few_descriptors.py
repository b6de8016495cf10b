"""The fake server with few descriptors: `python -m tests.servers.few_descriptors COUNT RUNTIME [SETTING=VALUE …]`."""

from __future__ import annotations

import resource
import sys

from .fake_server import main

if __name__ == "__main__":
    count = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))
    main(*sys.argv[2:])
