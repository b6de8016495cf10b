"""The ASGI 3 application over an opened service, on asyncio and on trio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from cloudid_core import Request, Response

from ..http_rules import NO_CONTENT, NO_LENGTH, joined
from ..runtime import Runtime
from .calls import NO_CALLER, Called, Caller
from .dependency import required
from .opened import EXPECTED, Open, Opened
from .paths import checked_prefix, path_in, without_prefix

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Asgi: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
AnyAsgi: TypeAlias = Callable[..., Awaitable[object]]
"""An application of a framework: each has types of its own for what it is called with."""

TURNS: Final = 3
"""Turns of the event loop that a server needs to report that the client of a request has left."""


class AsgiApplication:
    """Serves an opened service as an ASGI 3 application.

    A server that serves it alone opens and closes it. Applications that mount it enter its `lifespan`, because servers
    do not report their start and end to a mounted application.
    """

    def __init__(self, open_service: Open, prefix: str = "") -> None:
        self._open_service = open_service
        self._prefix = checked_prefix(prefix)
        self._opened: Opened | None = None
        self._is_entered = False

    @asynccontextmanager
    async def lifespan(self, outer: object = None) -> AsyncIterator[None]:
        """Serve requests and work in the background for as long as the block lasts.

        It is what Starlette and FastAPI take as `lifespan`; `outer` is the application there. Raises `SettingsError`,
        `CloudidError` or `OSError` with the reason if the service cannot be opened, and `RuntimeError` if it is open.
        """
        if self._is_entered:  # a second service would replace the first, and its end would close both
            raise RuntimeError("cloudid is open already: give its `lifespan` to one application or router only")
        self._is_entered = True
        try:
            async with self._open_service() as self._opened:
                try:
                    yield
                finally:
                    self._opened = None
        finally:
            self._is_entered = False

    def in_front_of(self, application: AnyAsgi) -> Asgi:
        """Return an application that answers paths below `prefix` here, and leaves all others to another application.

        It opens the service before the other application starts, and closes it after the other one has ended.
        """
        if not self._prefix:
            raise ValueError("set prefix, so that paths of the service differ from those of the application")

        async def both(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "lifespan":
                await self._live_around(application, scope, receive, send)
            elif self._is_below_prefix(scope):
                await self(scope, receive, send)
            else:
                await application(scope, receive, send)

        return both

    async def call(
        self, method: str, path: str, body: object = None, *, token: str = "", caller: Caller = NO_CALLER
    ) -> Called:
        """Call the service from the application that it is embedded in, without a connection.

        `path` is below `/v1/`, and `body` becomes JSON. `caller`: for whom, as quotas, audit devices and tokens with
        `token_bound_cidrs` see it. Raises `RuntimeError` if the service is not open.
        """
        return await self._service().call(method, path, body, token=token, caller=caller)

    def require(self, path: str, capability: str) -> Callable[[Any], Awaitable[list[str]]]:
        """Return a dependency of FastAPI that admits callers whose token has a capability at a path.

        The token is in `X-Vault-Token` or `Authorization: Bearer`. Without a valid token, the answer is 401; without
        the capability, 403. The dependency returns all capabilities of the token at the path. The check is a request of
        the token: it needs `update` at `sys/capabilities-self`, which the policy `default` grants.

        Raises `ValueError` for a path or a capability that no policy can grant.
        """
        return required(self.call, path, capability)

    def _service(self) -> Opened:
        if self._opened is None:
            raise RuntimeError("cloudid is not open: give its `lifespan` to the application that it is mounted in")
        return self._opened

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
            if not await self._is_opened_in(opened, send):
                return
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _is_opened_in(self, stack: AsyncExitStack, send: Send) -> bool:
        """Open the service until the stack ends, or report to the server why that fails."""
        try:
            await stack.enter_async_context(self.lifespan())
        except EXPECTED as error:
            await send({"type": "lifespan.startup.failed", "message": f"cloudid cannot start: {error}"})
            return False
        return True

    async def _live_around(self, application: AnyAsgi, scope: Scope, receive: Receive, send: Send) -> None:
        """Keep the service open while another application runs. The server learns of the end of both."""
        startup = await receive()
        unread, ended = [startup], list[Message]()

        async def receive_again() -> Message:
            return unread.pop() if unread else await receive()

        async def keep_end(message: Message) -> None:
            if message["type"] in ("lifespan.shutdown.complete", "lifespan.shutdown.failed"):
                ended.append(message)
            else:
                await send(message)

        async with AsyncExitStack() as opened:
            if not await self._is_opened_in(opened, send):
                return
            try:
                await application(scope, receive_again, keep_end)
            except Exception:
                if not unread:
                    raise
                # An application that knows no lifespan, as Django's, raises before it receives a message.
                await send({"type": "lifespan.startup.complete"})
                await receive()
        await send(ended[0] if ended else {"type": "lifespan.shutdown.complete"})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        opened = self._service()
        client = _Client(opened.runtime, receive, send)
        peer, port = scope.get("client") or ("", 0)
        target = target_of(scope, self._prefix)
        head = Request(
            scope["method"], target, joined(scope["headers"]), b"", peer, is_folded=True, remote_port=port or 0
        )
        try:
            response = await opened.answer(head, client.receive)
            write = partial(client.send, response, is_head=head.method == "HEAD")
            await opened.deliver(response, client.has_left, write)
        except OSError:
            pass  # the client has left

    def _is_below_prefix(self, scope: Scope) -> bool:
        path = without_prefix(scope.get("root_path", ""), _path_of(scope))
        return without_prefix(self._prefix, path) != path


def target_of(scope: Scope, mounted_at: str = "") -> str:
    """Return path and query as the client sent them, without the prefix that the application is mounted at.

    `mounted_at` is a prefix that is not in `root_path`.
    """
    path = without_prefix(mounted_at, without_prefix(scope.get("root_path", ""), _path_of(scope)))
    query: str = scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def _path_of(scope: Scope) -> str:
    """Return the path as the client sent it. Some servers have no raw path, or one with the query."""
    return path_in((scope.get("raw_path") or quote(scope["path"]).encode()).decode("latin-1"))


class _Client:
    """Reads from and writes to the client of one request, through an ASGI server."""

    def __init__(self, runtime: Runtime, receive: Receive, send: Send) -> None:
        self._runtime = runtime
        self._receive = receive
        self._send = send
        self._is_body_whole = False
        self._is_listened_to = False
        self._has_left = False

    async def receive(self) -> bytes:
        """Return the next piece of the body; empty at its end. Raises `ConnectionResetError` if the client leaves."""
        while not self._is_body_whole:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ConnectionResetError("the client has left")
            self._is_body_whole = not message.get("more_body", False)
            if piece := message.get("body", b""):
                return bytes(piece)
        return b""

    async def has_left(self) -> bool:
        """Return whether the server knows that the client has left. Call it after the body was read.

        Do not call it after the answer: then servers report of every client that it has left, which ends the task.
        """
        if not self._is_listened_to:
            self._is_listened_to = True
            self._runtime.start(self._listen)
        for _ in range(TURNS):
            await self._runtime.next_turn()
        return self._has_left

    async def _listen(self) -> None:
        # Once. The body is whole, so servers have nothing else to report, and middleware may repeat the body forever.
        self._has_left = (await self._receive())["type"] == "http.disconnect"

    async def send(self, response: Response, *, is_head: bool) -> None:
        """Write an answer. Raises `OSError` if the client left before it had one that must be given back then."""
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers.items()]
        content = b"" if response.status in NO_CONTENT else response.body
        if response.status not in NO_LENGTH:
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
