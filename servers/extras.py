"""Extras: which optional packages a program needs, and what to install where one is missing.

It imports nothing but the standard library, so that it works where nothing else is installed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

EXTRAS: Final = {
    "aiohttp": "aiohttp",
    "click": "server",
    "h11": "server",
    "httpcore": "trio",
    "httpx": "trio",
    "prometheus_client": "server",
    "psycopg": "postgres",
    "structlog": "server",
    "trio": "trio",
}
"""The extra of the project that has a package, by the name that the package is imported by."""


POSIX_ONLY: Final = frozenset({"fcntl", "pwd", "resource"})
"""Modules of the standard library that Windows does not have."""


def remedy(error: ImportError) -> str | None:
    """Return what to do if a package or a module of the platform is missing; `None` for every other failure."""
    package = (error.name or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError):
        return None
    if package in POSIX_ONLY:
        return "cloudid is tested on Linux and does not run on Windows; use the Windows Subsystem for Linux"
    if package in EXTRAS:
        return f"the package {package} is missing: pip install 'cloudid[{EXTRAS[package]}]'"
    return None


@contextmanager
def named() -> Iterator[None]:
    """Has the error of an import say what to install, where the block lacks an optional package."""
    try:
        yield
    except ImportError as error:
        if text := remedy(error):
            raise ModuleNotFoundError(text, name=error.name) from None
        raise


@contextmanager
def required() -> Iterator[None]:
    """Ends the program with one line that says what to install, where the block lacks an optional package."""
    try:
        yield
    except ImportError as error:
        if text := remedy(error):
            sys.exit(f"error: {text}")
        raise
