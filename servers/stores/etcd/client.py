"""Client: asks one member of the cluster, and another where that cannot be reached. No wait is without a deadline.

etcd answers the calls of its gRPC interface as JSON over HTTP too: https://etcd.io/docs/v3.5/dev-guide/api_grpc_gateway/.
httpcore runs on trio and on asyncio alike.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from statistics import median_low
from typing import Any, Final

import httpcore
import msgspec

from cloudid_core.effects import ClockReading
from cloudid_core.errors import StoreFailed, TimeIsUp

from ...runtime import Runtime
from .address import Address

ANSWER_SECONDS: Final = 5.0
ANSWER_LIMIT: Final = 64 * 2**20
CERTAIN: Final = {3: "refused", 7: "permission denied", 8: "no room", 9: "refused", 16: "not authenticated"}
"""gRPC's codes for what a member refuses before it proposes, or the cluster applies, anything of it."""

STALE_TOKENS: Final = ("etcdserver: invalid auth token", "etcdserver: revision of auth store is old")
NOT_SENT: Final = (httpcore.ConnectError, httpcore.ConnectTimeout)
FAILURES: Final = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, TimeIsUp, OSError)


class Refused(StoreFailed):
    """The cluster did nothing of what it was asked."""


class Lost(StoreFailed):
    """No answer, or one that says too little. What was asked for was done, may still be done, or never will."""


class _Body:
    """A request's body in one piece. httpcore's own leaves a generator behind when a connection is lost."""

    def __init__(self, content: bytes) -> None:
        self._pieces = iter((content,))

    def __aiter__(self) -> _Body:
        return self

    async def __anext__(self) -> bytes:
        for piece in self._pieces:
            return piece
        raise StopAsyncIteration


class Client:
    """Asks the member that answered last. `open` first."""

    _runtime: Runtime
    _pool: httpcore.AsyncConnectionPool

    def __init__(self, address: Address) -> None:
        self._address = address
        self._turn = 0
        self._token = ""

    def open(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._pool = httpcore.AsyncConnectionPool(ssl_context=self._address.tls, keepalive_expiry=60.0)
        runtime.start(self._hold)

    async def _hold(self) -> None:
        """Close connections when the runtime ends what it runs."""
        async with self._pool:
            await self._runtime.new_event().wait()

    async def ask(self, call: str, question: object) -> Mapping[str, Any]:
        """Raises `Refused` when nothing was done, or `Lost`."""
        try:
            return await self._ask_as_user(call, question)
        except Refused as refusal:
            if not str(refusal).startswith(STALE_TOKENS):
                raise
        self._token = ""
        return await self._ask_as_user(call, question)

    async def _ask_as_user(self, call: str, question: object) -> Mapping[str, Any]:
        if self._address.user and not self._token:
            try:
                claim = await self._runtime.in_thread(Address.claim, self._address)
                self._token = (await self._ask_any("auth/authenticate", claim))["token"]
            except StoreFailed as failure:
                raise Refused(str(failure)) from None
            except (Lost, KeyError):
                raise Refused("no member of the cluster authenticates this node") from None
        return await self._ask_any(call, question)

    async def _ask_any(self, call: str, question: object) -> Mapping[str, Any]:
        """Ask the members in turn until one has been reached. What was sent is never sent again here."""
        body = msgspec.json.encode(question)
        deadline = time.monotonic() + ANSWER_SECONDS
        for _ in self._address.members:
            member = self._address.members[self._turn % len(self._address.members)]
            try:
                return _read(*await self._fetch("POST", f"{member}/v3/{call}", body, deadline - time.monotonic()))
            except (*FAILURES, Lost) as failure:
                self._turn += 1
                reason = str(failure) or type(failure).__name__
                if not isinstance(failure, NOT_SENT):
                    raise Lost(reason) from None
        raise Refused(f"no member of the cluster can be reached ({reason})")

    async def _fetch(self, method: str, url: str, body: bytes, seconds: float) -> tuple[httpcore.Response, bytes]:
        # A machine that is gone answers nothing: the other members are asked while there is time.
        share = seconds / len(self._address.members)
        headers = [("content-length", str(len(body))), *([("authorization", self._token)] if self._token else [])]
        timeouts = {"connect": share, "read": seconds, "write": seconds, "pool": share}

        async def fetch() -> tuple[httpcore.Response, bytes]:
            content = bytearray()
            async with self._pool.stream(
                method, url, headers=headers, content=_Body(body), extensions={"timeout": timeouts}
            ) as response:
                async for part in response.aiter_stream():
                    if len(content) <= ANSWER_LIMIT:
                        content += part  # to leave the loop would leave generators behind
            if len(content) > ANSWER_LIMIT:
                raise httpcore.RemoteProtocolError("the response is too large")
            return response, bytes(content)

        return await self._runtime.in_time(seconds, fetch)

    async def clock(self) -> ClockReading | None:
        """The middle one of the clocks that the members' machines show: etcd itself has no clock."""
        found: list[tuple[float, float]] = []
        for member in self._address.members:
            started = time.time()
            try:
                answer, _ = await self._fetch("GET", f"{member}/version", b"", ANSWER_SECONDS)
                date = next(value for name, value in answer.headers if name.lower() == b"date").decode("latin-1")
                shown = parsedate_to_datetime(date).timestamp() + 0.5  # of a time in whole seconds, the middle
            except (*FAILURES, ValueError, StopIteration):
                continue
            ended = time.time()
            found.append((shown - (started + ended) / 2, (ended - started) / 2 + 0.5))
        return ClockReading(*median_low(found)) if found else None


def _read(answer: httpcore.Response, body: bytes) -> Mapping[str, Any]:
    try:
        content = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError:
        raise Lost("a response that is not JSON") from None
    if answer.status == 200:
        return content
    text = str(content.get("message") or content.get("error"))
    raise (Refused if content.get("code") in CERTAIN else Lost)(text)
