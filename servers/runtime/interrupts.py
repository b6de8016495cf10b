"""Ctrl-C, for programs, and for servers that do not handle signals yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

INTERRUPTED: Final = 130
"""The exit code that shells have for it."""


def until_interrupted(work: Callable[[], int]) -> int:
    """The exit code of some work: its own, or `INTERRUPTED` when Ctrl-C ends it."""
    code = INTERRUPTED
    try:
        code = work()
    except* KeyboardInterrupt:  # trio raises it in a group
        pass
    return code
