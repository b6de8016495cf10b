"""Memory: how the garbage collector treats a server."""

from __future__ import annotations

import gc
from typing import Final

THRESHOLD: Final = 20_000
"""New objects until the youngest are looked through. A request makes hundreds and leaves no cycle behind."""


def settle() -> None:
    """Call once, when all is loaded: what exists now stays, and is not looked through again.

    Otherwise a collection would go through all modules and caches while requests wait.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(THRESHOLD, 20, 20)
