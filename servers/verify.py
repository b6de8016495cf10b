"""Verification with keys that are fetched: a `KeyRing` for threads, and one for asyncio and trio.

    callers = AsyncVerifier(Verifier(tenant_id=…, audience=…, bound_…=…))
    verdict = await callers.verify(token)

Keys are fetched with the first token, once an hour, and when a token names a key that is not known, but at most once in
30 seconds. If that fails, the older keys are used for 24 hours.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from cloudid_core.effects import HttpRequest
from cloudid_core.verify import NO_FACTS, Facts, Fetch, KeyRing, Refused, Verdict, Verifier

from . import extras, web

if TYPE_CHECKING:
    import anyio
    import httpx

__all__ = ["AsyncVerifier", "ThreadVerifier"]

TIMEOUT: Final = 10.0
"""Seconds for a fetch. It must be shorter than the 30 seconds between fetches."""
LONGEST_KEY_SET: Final = 1 << 20
"""Bytes."""


class ThreadVerifier:
    """Verifies tokens in any number of threads. Keys are fetched with urllib, one fetch at a time.

    - `verifiers`: one for each tenant.
    - `clock`: returns the time in seconds since the epoch.
    """

    def __init__(self, *verifiers: Verifier, clock: Callable[[], float] = time.time) -> None:
        self._ring = KeyRing(*verifiers)
        self._clock = clock
        self._changed = threading.Condition()

    def verify(self, token: str, facts: Facts = NO_FACTS) -> Verdict:
        """Return the verdict on a token, after a fetch of keys if one is needed. Raises nothing."""
        with self._changed:
            verdict = self._ring.verify(token, self._clock(), facts)
            if _should_wait(self._ring, verdict, self._clock()):
                self._changed.wait_for(lambda: not self._ring.is_fetching(self._clock()), TIMEOUT)
                verdict = self._ring.verify(token, self._clock(), facts)
        while isinstance(verdict, Fetch):
            text = _get_with_urllib(verdict.url)
            with self._changed:
                self._ring.fetched(verdict, text, self._clock())
                self._changed.notify_all()
                verdict = self._ring.verify(token, self._clock(), facts)
        return verdict


class AsyncVerifier:
    """Verifies tokens on asyncio or trio. Keys are fetched with httpx.

    - `verifiers`: one for each tenant.
    - `open_client`: opens the client for a fetch, for proxies or authorities of your own.
    - `clock`: returns the time in seconds since the epoch.
    """

    def __init__(
        self,
        *verifiers: Verifier,
        open_client: Callable[[], httpx.AsyncClient] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        with extras.named():
            import httpx
        self._ring = KeyRing(*verifiers)
        self._open_client = open_client or httpx.AsyncClient
        self._clock = clock
        self._ended: anyio.Event | None = None

    async def verify(self, token: str, facts: Facts = NO_FACTS) -> Verdict:
        """Return the verdict on a token, after a fetch of keys if one is needed. Raises nothing but cancellation."""
        import anyio

        verdict = self._ring.verify(token, self._clock(), facts)
        if self._ended and _should_wait(self._ring, verdict, self._clock()):
            with anyio.move_on_after(TIMEOUT):
                await self._ended.wait()
            verdict = self._ring.verify(token, self._clock(), facts)
        while isinstance(verdict, Fetch):
            text, self._ended = None, anyio.Event()
            try:
                text = await _get_with_httpx(verdict.url, self._open_client)
            finally:  # a caller that is cancelled must not keep the others waiting
                self._ring.fetched(verdict, text, self._clock())
                self._ended.set()
            verdict = self._ring.verify(token, self._clock(), facts)
        return verdict


def _should_wait(ring: KeyRing, verdict: Verdict | Fetch, now: float) -> bool:
    """Return whether the keys that another caller is fetching may change the verdict."""
    return isinstance(verdict, Refused) and verdict.lacks_key and ring.is_fetching(now)


def _get_with_urllib(url: str) -> bytes | None:
    """Return the body, or `None` if there is none."""
    try:
        answer = web.send(HttpRequest("GET", url, {"accept": "application/json"}), TIMEOUT)
    except web.Unreachable:
        return None
    return answer.body if answer.status == 200 and len(answer.body) <= LONGEST_KEY_SET else None


async def _get_with_httpx(url: str, open_client: Callable[[], httpx.AsyncClient]) -> bytes | None:
    """Return the body, or `None` if there is none."""
    import anyio
    import httpx

    body, status = b"", 0
    try:
        with anyio.fail_after(TIMEOUT):
            async with open_client() as client, client.stream("GET", url) as answer:
                status = answer.status_code
                async for piece in answer.aiter_bytes():  # to its end: on trio, httpx warns of a body that was left
                    body = (body + piece)[: LONGEST_KEY_SET + 1]
    except (httpx.HTTPError, httpx.InvalidURL, OSError, TimeoutError):
        return None
    return body if status == 200 and len(body) <= LONGEST_KEY_SET else None
