"""What the hosts of both servers share, and the application between reading a request and writing its answer."""

from . import host
from .app import App, Service
from .connection import BaseConnection, Gone, Shared
from .documents import credential_in
from .host import Host
from .metrics_listener import MetricsListener
from .proxies import NO_PROXIES, Proxies
from .unreachable import TIMED_OUT, TOO_LARGE, unreachable, why_unreachable
