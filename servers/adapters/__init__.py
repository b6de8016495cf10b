"""Adapters: a service behind any ASGI or WSGI server, over any `Host`.

    app = asgi_adapter(open_host, partial(open_service, settings))

`open_host` opens a host for as long as a block lasts; `open_service` is the program that opens the service on it. What
is the same for all hosts is done here: limits and deadlines of bodies, clients that leave, background work and its end.
"""

from __future__ import annotations

from .asgi import AsgiApplication
from .calls import Called
from .opened import Open, Opened, length_of
from .own_host import OpenHost, OpenService, hosted
from .wsgi import WsgiApplication

__all__ = ["AsgiApplication", "Called", "WsgiApplication", "asgi_adapter", "wsgi_adapter"]


def asgi_adapter(open_host: OpenHost, open_service: OpenService, *, prefix: str = "") -> AsgiApplication:
    """Return an ASGI 3 application for a host on asyncio or trio, whichever runs the server.

    `prefix` is the path that it is mounted at, for frameworks that leave it in the path.
    """
    return AsgiApplication(lambda: hosted(open_host, open_service), prefix)


def wsgi_adapter(open_host: OpenHost, open_service: OpenService, *, prefix: str = "") -> WsgiApplication:
    """Return a WSGI application for a host on asyncio, which runs in a thread of its own."""
    return WsgiApplication(lambda: hosted(open_host, open_service), prefix)
