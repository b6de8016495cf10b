"""`cloudid`, one command for those who run the service and those who use it. `main` has the list of its commands."""

from __future__ import annotations

from .. import extras


def main() -> int:
    """Do what the command line of this process says, and answer the exit code."""
    with extras.required():
        from .main import run  # click is optional
    return run()
