"""An opened service behind a server of another project, which reads the heads of requests and writes the answers.

What such a server leaves out is here: limits and deadlines of bodies, and giving back what no client received.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from typing import Final, TypeAlias

from msgspec import json
from msgspec.structs import replace

from cloudid_core import Request, Response
from cloudid_core.dispatch.body_limit import UNASKED
from cloudid_core.errors import CloudidError, Code, Refused, TimeIsUp
from cloudid_core.values import without_tokens

from ..runtime import Runtime
from ..settings import SettingsError
from .calls import NO_CALLER, Called, Caller

Receive: TypeAlias = Callable[[], Awaitable[bytes]]
"""Returns the next piece of a body; empty at its end. Raises `OSError` if the client leaves before."""

EXPECTED: Final = (SettingsError, CloudidError, OSError)
"""Why a service cannot be opened, with a text for its operator."""

is_length: Final = re.compile("[0-9]{1,18}").fullmatch
"""Matches the value of a header content-length."""
_NOTHING_THERE: Final = b'{"errors":[]}'


class Opened(ABC):
    """Answers requests with an opened service.

    Their heads have no body, header names in lower case, and the peer as remote address.
    """

    def __init__(self, runtime: Runtime, body_timeout: float, write_timeout: float) -> None:
        self.runtime = runtime
        self._body_timeout = body_timeout
        self._write_timeout = write_timeout

    @abstractmethod
    async def body_limit(self, head: Request) -> int:
        """Return how many bytes the body of a request may have. Raises `Refused` if it is to be refused unread."""

    @abstractmethod
    async def handle(self, head: Request, body: bytes | None) -> Response:
        """Answer a request in its time. `None`: its body is too long, and was not read to its end. Raises nothing."""

    @abstractmethod
    def delivering(self, response: Response) -> AbstractContextManager[None]:
        """Give back what an answer gives, if the block that writes it fails or is cancelled."""

    @abstractmethod
    def refuse(self, refusal: Refused, peer: str) -> Response:
        """Return the answer to a request that cannot be read."""

    async def answer(self, head: Request, receive: Receive) -> Response:
        """Answer a request, whose body `receive` returns. Raises what `receive` raises, and nothing else."""
        try:
            body = await self.runtime.in_time(self._body_timeout, partial(self._read, head, receive))
        except TimeIsUp:
            return self.refuse(Refused(Code.CLIENT_TOO_SLOW), head.remote_address)
        except Refused as refusal:
            return self.refuse(refusal, head.remote_address)
        return with_path(await self.handle(head, body), head.target)

    async def call(
        self, method: str, path: str, body: object = None, *, token: str = "", caller: Caller = NO_CALLER
    ) -> Called:
        """Call the service from this process. `path` is below `/v1/`, and `body` becomes JSON."""
        headers = {"x-vault-token": token} if token else {}
        if caller.forwarded_for:
            headers["x-forwarded-for"] = caller.forwarded_for
        content = b"" if body is None else json.encode(body)
        target = f"/v1/{path.lstrip('/')}"
        head = Request(method, target, headers, remote_address=caller.address, is_folded=True)
        return Called.of(await self.handle(head, content))

    async def _read(self, head: Request, receive: Receive) -> bytes | None:
        """Return the body of a request; `None` if it is longer than it may be."""
        body, size = bytearray(), length_of(head)
        limit, is_asked = UNASKED, False
        while True:
            if size > limit and not is_asked:
                limit, is_asked = await self.body_limit(head), True
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
        """Write an answer, or give back what it gives.

        Raises what `write` raises, and `ConnectionError` if the client `has_left` or does not read.
        """
        with self.delivering(response):
            if response.gives and await has_left():
                raise ConnectionResetError("the client has left")
            try:
                await self.runtime.in_time(self._write_timeout, write)
            except TimeIsUp:
                raise ConnectionAbortedError("the client does not read") from None


Open: TypeAlias = Callable[[], AbstractAsyncContextManager[Opened]]
"""Opens a service for as long as the block lasts."""


def length_of(head: Request) -> int:
    """Return how long the body of a request is, by its head; 0 if that is not said."""
    length = head.headers.get("content-length", "")
    return int(length) if is_length(length) else 0


def with_path(response: Response, target: str) -> Response:
    """Return an answer. An empty 404 outside the API shows the path, because the prefix of a mount may be in it."""
    path = without_tokens(target.partition("?")[0])
    if response.status != 404 or path.startswith("/v1/") or response.body.strip() != _NOTHING_THERE:
        return response
    text = f"nothing is at {path}: paths begin with /v1/. If this one begins with the path of a mount, set prefix"
    return replace(response, body=json.encode({"errors": [text]}) + b"\n")
