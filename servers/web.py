"""One HTTP request and its answer, which is bounded.

The standard library does it: the client runs on every machine that logs in and needs no package beyond the core's, and
urllib knows the proxies of the environment. Redirects are answers: tokens would travel along with them.
"""

from __future__ import annotations

import json
import ssl
from http.client import HTTPException, InvalidURL, RemoteDisconnected
from typing import IO, Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

from cloudid_core.effects import HttpRequest, HttpResponse
from cloudid_core.errors import CloudidError

from .machine import is_loopback

WITHOUT_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"})
"""What OpenSSL says of an answer that is no TLS; which, depends on its version."""
LONGEST_ANSWER: Final = 1 << 24
"""Bytes."""


class Unreachable(CloudidError):
    """No answer came, or none that can be understood. The text names no address and no header."""


class Untrusted(Unreachable):
    """The certificate is not one that counts, or of another name or time. `code`: OpenSSL's, of why."""

    def __init__(self, reason: str, code: int) -> None:
        self.code = code
        super().__init__(f"the certificate is not trusted: {reason}")


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def send(
    request: HttpRequest, timeout: float, *, tls: ssl.SSLContext | None = None, through_proxies: bool = True
) -> HttpResponse:
    """The answer, whatever its status; names of headers in lower case. Raises `Unreachable`.

    `timeout`: seconds for the connection, and for each wait for more of the answer. `through_proxies`: as the
    environment says; requests that stay on this machine never go through one.
    """
    if not request.url.startswith(("http://", "https://")):
        raise Unreachable("the URL must begin with http:// or https://")
    proxies = ProxyHandler() if through_proxies and not _stays_here(request.url) else ProxyHandler({})
    opener = build_opener(proxies, HTTPSHandler(context=tls or authorities(request.url)), _NoRedirect())
    try:
        sent = Request(request.url, request.body or None, dict(request.headers), method=request.method)
        try:
            with opener.open(sent, timeout=timeout) as answer:
                return _read(answer.status, answer.headers.items(), answer)
        except HTTPError as refusal:
            with refusal:
                return _read(refusal.code, refusal.headers.items(), refusal)
    except (OSError, HTTPException, ValueError) as error:
        raise _failure(error, request.url) from None


def authorities(url: str, file: str | None = None) -> ssl.SSLContext:
    """Whose certificates count: those of a file, or else the system's. Those take long to read, and http needs none."""
    if file or url.startswith("https://"):
        return ssl.create_default_context(cafile=file)
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _read(status: int, headers: Any, body: IO[bytes]) -> HttpResponse:
    content = body.read(LONGEST_ANSWER + 1)
    if len(content) > LONGEST_ANSWER:
        raise Unreachable(f"the response is longer than {LONGEST_ANSWER} bytes")
    return HttpResponse(status, {name.lower(): value for name, value in headers}, content)


def _failure(error: Exception, url: str) -> Unreachable:
    if isinstance(error, URLError) and isinstance(error.reason, Exception):
        error = error.reason
    if isinstance(error, ssl.SSLCertVerificationError):
        return Untrusted(error.verify_message, error.verify_code)
    return Unreachable(_reason(error, url))


def _reason(error: Exception, url: str) -> str:
    """Why there was no answer, in words that repeat nothing of the request."""
    if isinstance(error, ssl.SSLError) and error.reason in WITHOUT_TLS:
        return "the server does not use TLS: perhaps the URL must begin with http://"
    if isinstance(error, RemoteDisconnected):
        hint = (
            "" if url.startswith("https://") else ": perhaps the server uses TLS, and the URL must begin with https://"
        )
        return f"the connection was closed without a response{hint}"
    if isinstance(error, TimeoutError):
        return "it took too long"
    if isinstance(error, ValueError | InvalidURL):
        return "the URL is malformed"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__


def document(response: HttpResponse) -> dict[str, Any]:
    """The JSON object that was answered; empty if the answer is none."""
    try:
        found = json.loads(response.body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def is_private(address: str) -> bool:
    """Whether no one else can read what is sent there: it is encrypted, or does not leave this machine."""
    return address.startswith("https://") or _stays_here(address)


def _stays_here(address: str) -> bool:
    try:
        return is_loopback(urlsplit(address).hostname or "")
    except ValueError:  # it is no address
        return False
