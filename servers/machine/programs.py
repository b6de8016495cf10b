"""Programs that the settings name: they run with few variables of the server's environment, and none of its secrets."""

from __future__ import annotations

import os
from typing import Final

KEPT: Final = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
)
"""The variables that such a program gets, where the server has them."""


def environment() -> dict[str, str]:
    """Return the environment of a program that the settings name."""
    return {name: os.environ[name] for name in KEPT if name in os.environ}
