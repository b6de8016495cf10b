"""The WSGI application over an opened service, which runs in a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import Future
from http import HTTPStatus
from importlib import import_module
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Final, Protocol, TypeAlias, TypeVar
from urllib.parse import quote

from cloudid_core import Request, Response
from cloudid_core.errors import Code, Refused

from ..http_rules import NO_CONTENT, NO_LENGTH
from .calls import NO_CALLER, Called, Caller
from .opened import Open, Opened, is_length, length_of
from .paths import checked_prefix, path_in, without_prefix

T = TypeVar("T")
Environ: TypeAlias = dict[str, Any]
Wsgi: TypeAlias = Callable[..., Any]
"""An application of a framework: each has types of its own for what it is called with."""

PIECE: Final = 1 << 16
"""Bytes of a body that are read at once."""

END_SECONDS: Final = 30.0
"""Seconds that `close` waits for the thread."""


class WsgiApplication:
    """Serves an opened service as a WSGI application. Each thread of the server waits for its own request.

    The service runs in a thread of its own, from `start` or the first request until `close` or the end of the process.
    A process that was forked from one with a running service opens its own.
    """

    def __init__(self, open_service: Open, prefix: str = "") -> None:
        self._open_service = open_service
        self._prefix = checked_prefix(prefix)
        self._lock = threading.Lock()
        self._running: _Running | None = None

    def start(self) -> None:
        """Open the service, unless it is open. Raises the reason if it cannot be opened."""
        self._started()

    def close(self) -> None:
        """Give back what no client received, hand over the background work, and close the service."""
        with self._lock:
            running, self._running = self._running, None
        if running is not None and running.pid == os.getpid():
            running.close()

    def __enter__(self) -> WsgiApplication:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def in_front_of(self, application: Wsgi) -> Wsgi:
        """Return an application that answers paths below `prefix` here, and leaves all others to another one."""
        if not self._prefix:
            raise ValueError("set prefix, so that paths of the service differ from those of the application")

        def both(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
            path = path_of(environ)
            behind: Wsgi = self if without_prefix(self._prefix, path) != path else application
            answer: Iterable[bytes] = behind(environ, start_response)
            return answer

        return both

    def call(
        self, method: str, path: str, body: object = None, *, token: str = "", caller: Caller = NO_CALLER
    ) -> Called:
        """Call the service from the application that it is embedded in, without a connection.

        `path` is below `/v1/`, and `body` becomes JSON. `caller`: for whom, as quotas, audit devices and tokens with
        `token_bound_cidrs` see it.
        """
        return self._started().call(method, path, body, token, caller)

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        running = self._started()
        head = head_of(environ, self._prefix)
        response = _answer_to(running, head, _Body(environ, head))
        content = b"" if response.status in NO_CONTENT else response.body
        headers = list(response.headers.items())
        if response.status not in NO_LENGTH:
            headers.append(("content-length", str(len(content))))
        written = running.deliver(response) if response.gives else None
        try:
            start_response(_status_line(response.status), headers)
        except BaseException:
            if written is not None:
                written.leave()
            raise
        content = b"" if head.method == "HEAD" else content
        return [content] if written is None else _Answer(content, written)

    def _started(self) -> _Running:
        with self._lock:
            if self._running is None or self._running.pid != os.getpid():
                self._running = _Running(self._open_service)
                _before_threads_end(self.close)
            return self._running


FRAMED: Final = ("HTTP/2", "HTTP/3")
"""Versions of HTTP that end a body without a length by themselves."""


class Readable(Protocol):
    """Has what `wsgi.input` needs."""

    def read(self, size: int, /) -> bytes: ...


class _Body:
    """Reads the body of a request piece by piece, in the thread of its request."""

    def __init__(self, environ: Mapping[str, Any], head: Request) -> None:
        self._input: Readable = environ["wsgi.input"]
        self._left = length_of(head)
        length = head.headers.get("content-length", "")
        is_framed = environ.get("SERVER_PROTOCOL", "").startswith(FRAMED) or bool(environ.get("wsgi.input_terminated"))
        self._reads_to_end = not length and is_framed
        """Whether the server ends a body without a length. In HTTP/1, only some servers say so."""
        self.is_unreadable = not (is_length(length) if length else is_framed or "transfer-encoding" not in head.headers)
        """Whether nothing says where the body ends. PEP 3333 knows only bodies with a length."""

    def read(self) -> bytes:
        """Return the next piece; empty at the end. Raises `ConnectionResetError` if the client leaves before."""
        if self._reads_to_end:
            return self._input.read(PIECE)
        if not self._left:
            return b""
        piece = self._input.read(min(PIECE, self._left))
        if not piece:
            raise ConnectionResetError("the client has left")
        self._left -= len(piece)
        return piece


def _answer_to(running: _Running, head: Request, body: _Body) -> Response:
    """Return the answer to a request, or a refusal if its body cannot be read: without its body, it is not executed."""
    if body.is_unreadable:
        refusal = Refused(
            Code.MALFORMED_REQUEST,
            "the body has no valid length, and the server does not decode chunks: send content-length",
        )
        return running.opened.refuse(refusal, head.remote_address)
    try:
        return running.answer(head, body)
    except OSError:  # the client has left: nothing that is written reaches it
        return running.opened.refuse(Refused(Code.CLIENT_TOO_SLOW), head.remote_address)


class _Running:
    """Runs an opened service in a thread with an event loop."""

    opened: Opened

    def __init__(self, open_service: Open) -> None:
        self.pid = os.getpid()
        self._loop: asyncio.AbstractEventLoop
        self._end: asyncio.Event
        self._ready: Future[None] = Future()
        self._thread = threading.Thread(
            target=asyncio.run, args=(self._live(open_service),), name="cloudid", daemon=True
        )
        self._thread.start()
        self._ready.result()

    async def _live(self, open_service: Open) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        try:
            async with open_service() as self.opened:
                self._ready.set_result(None)
                await self._end.wait()
        except BaseException as error:  # also SystemExit of a program of the embedder, or `start` waits forever
            if self._ready.done():
                raise
            self._ready.set_exception(error)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(END_SECONDS)

    def answer(self, head: Request, body: _Body) -> Response:
        """Answer a request, whose body is read in the thread that calls this. Raises `OSError` if its client leaves."""
        work: SimpleQueue[Future[bytes] | None] = SimpleQueue()

        async def receive() -> bytes:
            piece: Future[bytes] = Future()
            work.put(piece)
            return await asyncio.wrap_future(piece)

        answered = self._start(self.opened.answer(head, receive))
        answered.add_done_callback(lambda _: work.put(None))
        while (piece := work.get()) is not None:
            _settle(piece, body.read)
        return answered.result()

    def call(self, method: str, path: str, body: object, token: str, caller: Caller) -> Called:
        return self._start(self.opened.call(method, path, body, token=token, caller=caller)).result()

    def deliver(self, response: Response) -> _Written:
        """Begin to deliver an answer. What it gives is given back unless it is reported as written."""
        written = _Written(self._loop)
        self._start(self.opened.deliver(response, written.has_left, written.wait))
        return written

    def _start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)


def _settle(piece: Future[bytes], read: Callable[[], bytes]) -> None:
    """Read a piece, unless nothing waits for it any more."""
    if not piece.set_running_or_notify_cancel():
        return
    try:
        piece.set_result(read())
    except Exception as error:  # noqa: BLE001  # of the server's reader, whatever it is: the body is not whole
        piece.set_exception(error if isinstance(error, OSError) else ConnectionResetError("the body cannot be read"))


class _Written:
    """Waits until the thread of a request reports whether its answer was written."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._ended: Future[None] = Future()

    def end(self) -> None:
        """Report that the answer was written."""
        if not self._ended.done():
            self._ended.set_result(None)

    def leave(self) -> None:
        """Report that the answer cannot be written."""
        if not self._ended.done():
            self._ended.set_exception(ConnectionResetError("the client has left"))

    async def has_left(self) -> bool:
        return False  # no server of WSGI says so before the answer

    async def wait(self) -> None:
        await asyncio.shield(asyncio.wrap_future(self._ended, loop=self._loop))


class _Answer:
    """Iterates over the body of an answer that gives something. Servers exhaust it once they have written it."""

    def __init__(self, content: bytes, written: _Written) -> None:
        self._pieces: Iterator[bytes] = iter((content,))
        self._written = written

    def __iter__(self) -> _Answer:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._pieces)
        except StopIteration:
            self._written.end()
            raise

    def close(self) -> None:
        """Called by servers in any case, also when the client has left."""
        self._written.leave()


def head_of(environ: Environ, prefix: str = "") -> Request:
    """Return the head of a request, with the path below the prefix."""
    headers = {name[5:].replace("_", "-").lower(): value for name, value in environ.items() if name.startswith("HTTP_")}
    for name, field in (("CONTENT_TYPE", "content-type"), ("CONTENT_LENGTH", "content-length")):
        if environ.get(name):
            headers[field] = environ[name]
    path, query = without_prefix(prefix, path_of(environ)), environ.get("QUERY_STRING", "")
    port = environ.get("REMOTE_PORT", "")
    return Request(
        environ["REQUEST_METHOD"],
        f"{path}?{query}" if query else path,
        headers,
        remote_address=environ.get("REMOTE_ADDR", ""),
        is_folded=True,
        remote_port=int(port) if str(port).isascii() and str(port).isdigit() else 0,
    )


def path_of(environ: Environ) -> str:
    """Return the path as the client sent it, below `SCRIPT_NAME`. Its name is `RAW_URI` or `REQUEST_URI`."""
    script = environ.get("SCRIPT_NAME", "").encode("latin-1").decode("utf-8", "replace")
    sent = environ.get("RAW_URI") or environ.get("REQUEST_URI") or ""
    if sent:
        return without_prefix(script, path_in(sent))
    return quote(environ.get("PATH_INFO", "").encode("latin-1")) or "/"


def _status_line(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:  # some statuses of health checks have no phrase
        return f"{status} Unknown"


def _before_threads_end(work: Callable[[], None]) -> None:
    """Call at the end of the process. Threads of executors, which the service needs, end before `atexit`."""
    import_module("concurrent.futures.thread")  # it registers its own end, which must come after this one
    register = getattr(threading, "_register_atexit", atexit.register)
    register(work)
