"""cloudid: a machine's cloud identity turned into access, as a sans-IO library.

An embedder needs `initialise`, `open_service` and `run`, and a `Host` of its own; see the README.
"""

from .effects import Host, HttpRequest, HttpResponse
from .messages import Request, Response
from .run import run, run_now
from .service import Service, initialise, open_service
from .settings import Settings
from .values import Secret

__all__ = [
    "Host",
    "HttpRequest",
    "HttpResponse",
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
