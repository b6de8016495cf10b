"""A ready ASGI 3 application, on asyncio and on trio: the service behind any ASGI server, alone or mounted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cloudid_core.events import Event

from . import extras
from .adapters import AsgiApplication, Open

with extras.named():
    from .embedding import Given, OpenHost, SetUp, embedded, set_up_of
    from .settings import SettingsError

__all__ = ["AsgiApplication", "application_of", "asgi_application", "opener"]


def asgi_application(
    settings: Given | None = None,
    *,
    dev_root_token: str = "",
    provider: str = "",
    prefix: str = "",
    on_event: Callable[[Event], None] | None = None,
) -> AsgiApplication:
    """Return the service as an ASGI application. Nothing is opened before its lifespan starts.

    `settings` is the path of a settings file, or a mapping with its tables; `init` of a server prepares its store.
    `dev_root_token` is for tests and for trying things out: everything is in memory, initialised with this root token,
    on a simulated cloud. `provider` is the address of a simulated cloud that runs already. `prefix` is the path that
    the service is mounted at, such as `/cloudid`, for frameworks that leave it in the path, as Litestar and Django do.

    `on_event` is called with each event of the service (`cloudid_core.events`), after audit devices have it. It must
    neither block nor raise.

    Raises `ValueError` if `prefix` is no path, or if neither settings nor a token is given, or both are.
    """
    return application_of(set_up_of(settings, dev_root_token, provider), prefix, on_event)


def application_of(set_up: SetUp, prefix: str = "", on_event: Callable[[Event], None] | None = None) -> AsgiApplication:
    """Return an application over the setup that it opens when it starts."""
    return AsgiApplication(opener(set_up, on_event), prefix)


def opener(set_up: SetUp, on_event: Callable[[Event], None] | None = None) -> Open:
    """Return what opens a service on the event loop that runs then."""
    return lambda: embedded(set_up, _open_host(), on_event)


def _open_host() -> OpenHost:
    """Return what opens a host for the running event loop. Raises `SettingsError` if its packages are missing."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        extra = "trio"
    else:
        extra = "aiohttp"
    try:
        if extra == "trio":
            from .trio_server.host import open_host as on_trio

            return on_trio
        from .aiohttp_server.host import open_host as on_asyncio
    except ImportError:
        raise SettingsError(f"this event loop needs more packages: pip install 'cloudid[{extra}]'") from None
    return on_asyncio
