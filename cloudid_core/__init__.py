"""cloudid: a machine's cloud identity turned into access, as a sans-IO library.

An embedder needs `initialise`, `open_service` and `run`, and a `Host` of its own; see docs/how-to/embed.md.

Public are the names that this module exports, and the modules `clouds`, `effects`, `errors`, `events`, `testing` and
`verify` with their names that do not begin with an underscore. Everything else is internal: any release may change it.
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
    """What needs the whole service is imported when it is asked for: clients start quicker without it."""
    if name not in ("Service", "initialise", "open_service"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import service

    return getattr(service, name)
