"""Run a module with few descriptors: `python -m tests.servers.limited DESCRIPTORS LOG MODULE [ARGUMENT …]`.

Its stderr goes to the file LOG, so that a server that logs much does not wait for a reader.
"""

from __future__ import annotations

import os
import resource
import runpy
import sys


def main(descriptors: str, log: str, *command: str) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(descriptors), int(descriptors)))
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    module, *sys.argv[1:] = command
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
