"""A ready WSGI application: the service behind any WSGI server, alone or beside another application."""

from __future__ import annotations

from . import extras
from .adapters import WsgiApplication

with extras.named():
    from .aiohttp_server.host import open_host
    from .embedding import Given, SetUp, embedded, set_up_of

__all__ = ["WsgiApplication", "application_of", "wsgi_application"]


def wsgi_application(
    settings: Given | None = None, *, dev_root_token: str = "", provider: str = "", prefix: str = ""
) -> WsgiApplication:
    """Return the service as a WSGI application. Nothing is opened before `start`, or the first request.

    Takes and raises what `cloudid_servers.asgi.asgi_application` does. The service runs in a thread of its own.
    """
    return application_of(set_up_of(settings, dev_root_token, provider), prefix)


def application_of(set_up: SetUp, prefix: str = "") -> WsgiApplication:
    """Return an application over the setup that it opens when it starts."""
    return WsgiApplication(lambda: embedded(set_up, open_host), prefix)
