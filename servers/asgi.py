"""A ready ASGI 3 application, on asyncio and on trio: the service behind any ASGI server, alone or mounted."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Final, TypeAlias
from urllib.parse import quote, unquote

from cloudid_core.messages.response import Response

from . import extras

with extras.named():
    from .embedding import EXPECTED, Embedded, Given, OpenHost, SetUp, embedded, head_of, set_up_of
    from .host import Host
    from .http1 import wire
    from .settings import SettingsError

_ORIGIN: Final = re.compile("^https?://[^/]+", re.IGNORECASE)
Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

TURNS: Final = 3
"""Of the event loop: so many a server needs to tell that the client of a request has left."""


def asgi_application(settings: Given | None = None, *, dev_root_token: str = "", provider: str = "") -> AsgiApplication:
    """The service as an ASGI application. Nothing is opened before its lifespan starts.

    `settings` is the path of a settings file, or a mapping with its tables; `init` of a server prepares its store.
    `dev_root_token` is for tests and for trying things out: everything is in memory, initialised with this root token,
    on a simulated cloud. `provider` is the address of a simulated cloud that runs already.

    Raises `ValueError` if neither settings nor a token is given, or both are.
    """
    return AsgiApplication(set_up_of(settings, dev_root_token, provider))


class AsgiApplication:
    """An ASGI 3 application. Applications that mount it open it with `lifespan`, since no server tells it to start."""

    def __init__(self, set_up: SetUp) -> None:
        self._set_up = set_up
        self._embedded: Embedded | None = None

    @asynccontextmanager
    async def lifespan(self, outer: object = None) -> AsyncIterator[None]:
        """Serve requests and work in the background for as long as the block lasts.

        It is what Starlette and FastAPI take as `lifespan`; `outer` is the application there. Raises `SettingsError`,
        `CloudidError` or `OSError` with the reason if the service cannot be opened.
        """
        async with embedded(self._set_up, _open_host()) as self._embedded:
            try:
                yield
            finally:
                self._embedded = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "lifespan":
                await self._live(receive, send)
            case "http":
                await self._answer(scope, receive, send)
            case "websocket":
                await send({"type": "websocket.close"})
            case other:
                raise ValueError(f"this application does not speak {other}")

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with AsyncExitStack() as opened:
            try:
                await opened.enter_async_context(self.lifespan())
            except EXPECTED as error:
                await send({"type": "lifespan.startup.failed", "message": f"cloudid cannot start: {error}"})
                return
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        service = self._embedded
        if service is None:
            raise RuntimeError("cloudid is not open: give its `lifespan` to the application that it is mounted in")
        client = _Client(service.host, receive, send)
        head = head_of(scope["method"], target_of(scope), wire.joined(scope["headers"]))
        peer = (scope.get("client") or ("",))[0]
        try:
            response = await service.answer(head, peer, client.receive)
            write = partial(client.send, response, is_head=head.method == "HEAD")
            await service.deliver(response, client.has_left, write)
        except OSError:
            pass  # the client has left


def _open_host() -> OpenHost:
    """For the event loop that runs. Raises `SettingsError` if its packages are not installed."""
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


def target_of(scope: Scope) -> str:
    """Path and query as the client sent them, without the prefix that the application is mounted at.

    Servers that know no prefix leave it out, and some have no raw path. Some leave the host in the absolute form of a
    target (RFC 9112, section 3.2.2).
    """
    path: str = (scope.get("raw_path") or quote(scope["path"]).encode()).decode("latin-1")
    if not path.startswith("/"):
        path = _ORIGIN.sub("", path) or "/"
    root: str = scope.get("root_path", "")
    segments = path.split("/")
    prefix = "/".join(segments[: root.count("/") + 1])
    if root and unquote(prefix) == root:
        path = path[len(prefix) :]
    query: str = scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


class _Client:
    """The client of one request, as an ASGI server shows it."""

    def __init__(self, host: Host, receive: Receive, send: Send) -> None:
        self._host = host
        self._receive = receive
        self._send = send
        self._is_body_whole = False
        self._is_listened_to = False
        self._has_left = False

    async def receive(self) -> bytes:
        """The next piece of the body; empty at its end. Raises `ConnectionResetError` if the client leaves before."""
        while not self._is_body_whole:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ConnectionResetError("the client has left")
            self._is_body_whole = not message.get("more_body", False)
            if piece := message.get("body", b""):
                return bytes(piece)
        return b""

    async def has_left(self) -> bool:
        """Whether the server knows that the client has left. Call it when the body was read, and not after the answer.

        Servers tell the same of every client when the answer is written, which ends the task.
        """
        if not self._is_listened_to:
            self._is_listened_to = True
            self._host.start(self._listen)
        for _ in range(TURNS):
            await self._host.next_turn()
        return self._has_left

    async def _listen(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._has_left = True

    async def send(self, response: Response, *, is_head: bool) -> None:
        """Raises `OSError` if the client has left before an answer was written that must be given back then."""
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers.items()]
        content = b"" if response.status in wire.NO_CONTENT else response.body
        if response.status not in wire.NO_LENGTH:
            headers.append((b"content-length", b"%d" % len(content)))
        await self._send({"type": "http.response.start", "status": response.status, "headers": headers})
        if is_head:
            content = b""
        if response.gives:
            for piece in (content, b""):  # servers wait until a piece is written only when the next one comes
                await self._send({"type": "http.response.body", "body": piece, "more_body": True})
            if await self.has_left():
                raise ConnectionResetError("the client has left")
            content = b""
        await self._send({"type": "http.response.body", "body": content})
