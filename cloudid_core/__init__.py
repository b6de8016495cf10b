"""Turn an Azure machine's identity into access: the sans-IO library behind cloudid.

An embedder needs `initialise`, `open_service` and `run`, and its own `Host`; see docs/how-to/embed.md.

The public API is what this module exports, and the modules `clouds`, `effects`, `errors`, `events`, `testing` and
`verify` with all names that do not begin with an underscore. Everything else is internal, and may change in any
release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .effects import Host, HttpRequest, HttpResponse
from .messages import Request, Response
from .run import run, run_now
from .settings import Settings
from .store import MemoryStore
from .values import Secret

if TYPE_CHECKING:
    from .service import Service, initialise, open_service

__all__ = [
    "Host",
    "HttpRequest",
    "HttpResponse",
    "MemoryStore",
    "Request",
    "Response",
    "Secret",
    "Service",
    "Settings",
    "initialise",
    "open_service",
    "run",
    "run_now",
]


def __getattr__(name: str) -> Any:
    """Import on first use what needs the whole service, so that clients start faster."""
    if name not in ("Service", "initialise", "open_service"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import service

    return getattr(service, name)
