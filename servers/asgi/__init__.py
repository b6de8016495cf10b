"""A ready ASGI 3 application: the service behind any ASGI server, alone or mounted in another application."""

from .application import AsgiApplication, asgi_application

__all__ = ["AsgiApplication", "asgi_application"]
