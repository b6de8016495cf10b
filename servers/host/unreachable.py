"""Say why a host of the provider cannot be reached, in the same words for each HTTP library."""

from __future__ import annotations

import os
import socket
import ssl
from typing import Final
from urllib.parse import urlsplit

TIMED_OUT: Final = "timed out"
TOO_LARGE: Final = "the response is too large"
BROKEN: Final = "the connection was closed, or the response is not HTTP"
UNSENDABLE: Final = "the request cannot be sent"


def unreachable(url: str, reason: str) -> str:
    """Return the host of a URL and why it did not respond."""
    return f"{host_of(url)}: {reason}"


def host_of(url: str) -> str:
    return urlsplit(url).hostname or "no host"


def why_unreachable(error: Exception, url: str, proxy: str | None = None, proxy_status: str = "") -> str:
    """Return the host and why it did not respond.

    `proxy` is the proxy of the call, which the connection is made to instead of the host. `proxy_status` is the proxy's
    response to the request for a tunnel.
    """
    if proxy_status:
        return unreachable(url, f"the proxy {host_of(proxy or '')} answered {proxy_status}")
    for cause in reversed(_causes(error)):  # a library's own errors are of the system's types too
        if word := _word(cause):
            is_of_proxy = proxy is not None and isinstance(cause, socket.gaierror | ConnectionRefusedError)
            return unreachable(url, f"proxy {host_of(proxy or '')}: {word}" if is_of_proxy else word)
    return unreachable(url, UNSENDABLE if isinstance(error, ValueError) else BROKEN)


def _word(cause: BaseException) -> str:
    match cause:
        case socket.gaierror():
            return "the name cannot be resolved"
        case ConnectionRefusedError():
            return "connection refused"
        case ssl.SSLCertVerificationError():
            return f"TLS: {cause.verify_message}"
        case ssl.SSLEOFError() | ConnectionResetError() | BrokenPipeError():
            return BROKEN
        case ssl.SSLError() if cause.reason:
            return f"TLS: {cause.reason.lower().replace('_', ' ')}"
        case TimeoutError():
            return TIMED_OUT
        case OSError() if cause.errno is not None:
            return os.strerror(cause.errno).lower()  # its own text names addresses
    return ""


def _causes(error: BaseException) -> list[BaseException]:
    """Return the error and the errors that caused it, in this order."""
    causes, waiting = dict[int, BaseException](), [error]
    while waiting:
        cause = waiting.pop()
        if id(cause) in causes:
            continue
        causes[id(cause)] = cause
        inner = (cause.__context__, cause.__cause__, getattr(cause, "os_error", None))
        waiting += [each for each in inner if isinstance(each, BaseException)]
        if isinstance(cause, BaseExceptionGroup):
            waiting += cause.exceptions
    return list(causes.values())
