"""Embedding: a service within an application of somebody else, behind a server of somebody else.

That server reads the requests' heads and writes the answers; what it does not do is here.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from cloudid_core.dispatch.body_limit import UNASKED
from cloudid_core.errors import CloudidError, Code, Refused, TimeIsUp
from cloudid_core.messages.response import Response
from cloudid_core.run import run
from cloudid_core.values.secret import Secret

from .command import Options, Setup, set_up
from .host import App, Host, Proxies
from .http1 import Head
from .machine import Platform
from .settings import ServerSettings, SettingsError, http_address
from .stores import Store

Given: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]
"""Settings: the path of a TOML file as the servers have it, or what would be in it."""

SetUp: TypeAlias = Callable[[], AbstractContextManager[Setup]]
"""Opens everything that a service is started with; called when its application starts."""

OpenHost: TypeAlias = Callable[[Store, Platform, Proxies], AbstractAsyncContextManager[Host]]

EXPECTED: Final = (SettingsError, CloudidError, OSError)
"""Why a service cannot be opened, with a text for its operator."""

_IS_LENGTH: Final = re.compile("[0-9]{1,18}").fullmatch


def set_up_of(settings: Given | None, dev_root_token: str, provider: str) -> SetUp:
    """What a server would be started with.

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


def head_of(method: str, target: str, headers: Mapping[str, str]) -> Head:
    """The head of a request that another server has read. Its names of headers are in lower case."""
    length = headers.get("content-length", "")
    return Head(method, target, headers, closes=False, length=int(length) if _IS_LENGTH(length) else None)


class Embedded:
    """An opened service. It reads bodies within limits, and gives back what nobody received."""

    def __init__(self, app: App, host: Host, server: ServerSettings) -> None:
        self.host = host
        self._app = app
        self._server = server

    async def answer(self, head: Head, peer: str, receive: Callable[[], Awaitable[bytes]]) -> Response:
        """The answer to a request. `receive` gives the next piece of its body; empty: that was all.

        Raises what `receive` raises, and nothing else.
        """
        try:
            body = await self.host.in_time(self._server.body_timeout, partial(self._read, head, peer, receive))
        except TimeIsUp:
            return self._app.refuse(Refused(Code.CLIENT_TOO_SLOW), peer)
        except Refused as refusal:
            return self._app.refuse(refusal, peer)
        return await self._app.answer_in_time(self._app.begin(head, body, peer))

    async def _read(self, head: Head, peer: str, receive: Callable[[], Awaitable[bytes]]) -> bytes | None:
        """The body of a request; `None`: it is longer than it may be, and was not read to its end."""
        body, size = bytearray(), head.length or 0
        limit, is_asked = UNASKED, False
        while True:
            if size > limit and not is_asked:
                limit, is_asked = await self._app.body_limit(head, peer), True
            if size > limit:
                return None
            piece = await receive()
            if not piece:
                return bytes(body)
            body += piece
            size = max(size, len(body))

    async def deliver(
        self, response: Response, has_left: Callable[[], Awaitable[bool]], write: Callable[[], Awaitable[object]]
    ) -> None:
        """Write an answer, or give back what it holds.

        Raises what `write` raises, and `ConnectionError` if the client `has_left` or does not read.
        """
        with self._app.delivering(response):
            if response.gives and await has_left():
                raise ConnectionResetError("the client has left")
            try:
                await self.host.in_time(self._server.write_timeout, write)
            except TimeIsUp:
                raise ConnectionAbortedError("the client does not read") from None

    def refuse(self, refusal: Refused, peer: str) -> Response:
        """The answer to what cannot be read."""
        return self._app.refuse(refusal, peer)


@asynccontextmanager
async def embedded(set_up: SetUp, open_host: OpenHost) -> AsyncIterator[Embedded]:
    """A service with its background work, for as long as the block lasts. Raises what is `EXPECTED`."""
    with set_up() as setup:
        log, log_event = setup.open_log(adopts_libraries=False)
        async with open_host(setup.store, setup.platform, setup.proxies) as host:
            setup.connect(host, log, log_event)
            app = setup.app(await run(setup.open(""), host), host, log)
            try:
                yield Embedded(app, host, setup.server)
            finally:
                await app.finish()
