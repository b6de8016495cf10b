"""Embedding: a service within another application, behind any server.

That server reads the requests' heads and writes the answers; what it does not do is in `adapters`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from cloudid_core import Request, Response
from cloudid_core.errors import Refused
from cloudid_core.events import Event
from cloudid_core.run import run
from cloudid_core.values.secret import Secret

from .adapters import Opened, length_of
from .command import Options, Setup, set_up
from .host import App, Host, Proxies
from .http1 import Head
from .machine import Platform
from .settings import ServerSettings, http_address
from .stores import Store

Given: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]
"""Settings: the path of a TOML file as the servers have it, or what would be in it."""

SetUp: TypeAlias = Callable[[], AbstractContextManager[Setup]]
"""Opens everything that a service is started with; called when its application starts."""

OpenHost: TypeAlias = Callable[[Store, Platform, Proxies], AbstractAsyncContextManager[Host]]


def set_up_of(settings: Given | None, dev_root_token: str, provider: str) -> SetUp:
    """Return what opens everything that a server is started with.

    Raises `ValueError` unless there is either settings or a token, and when `provider` is no address.
    """
    if (settings is None) == (not dev_root_token):
        raise ValueError("give either settings or dev_root_token")
    try:
        address = http_address(provider) if provider else ""
    except ValueError as error:
        raise ValueError(f"provider {error}") from None
    options = Options(
        settings=settings if settings is None or isinstance(settings, Mapping) else Path(settings),
        is_dev=bool(dev_root_token),
        root_token=Secret(dev_root_token),
        provider=address,
    )
    return partial(set_up, options)


class Embedded(Opened):
    """Answers requests with a service that was opened as the servers open it."""

    def __init__(self, app: App, host: Host, server: ServerSettings) -> None:
        super().__init__(host, server.body_timeout, server.write_timeout)
        self._app = app

    async def body_limit(self, head: Request) -> int:
        return await self._app.body_limit(_head_of(head), head.remote_address)

    async def handle(self, head: Request, body: bytes | None) -> Response:
        exchange = self._app.begin(_head_of(head), body, head.remote_address, head.remote_port)
        return await self._app.answer_in_time(exchange)

    def delivering(self, response: Response) -> AbstractContextManager[None]:
        return self._app.delivering(response)

    def refuse(self, refusal: Refused, peer: str) -> Response:
        return self._app.refuse(refusal, peer)


def _head_of(request: Request) -> Head:
    return Head(request.method, request.target, request.headers, closes=False, length=length_of(request))


@asynccontextmanager
async def embedded(
    set_up: SetUp, open_host: OpenHost, on_event: Callable[[Event], None] | None = None
) -> AsyncIterator[Embedded]:
    """Run a service with its background work until the block ends. Raises what `adapters.opened.EXPECTED` lists."""
    with set_up() as setup:
        log, log_event = setup.open_log(adopts_libraries=False)
        async with open_host(setup.store, setup.platform, setup.proxies) as host:
            setup.connect(host, log, log_event)
            if on_event is not None:
                host.sinks.append(on_event)
            app = setup.app(await run(setup.open(""), host), host, log)
            try:
                yield Embedded(app, host, setup.server)
            finally:
                await app.finish()
