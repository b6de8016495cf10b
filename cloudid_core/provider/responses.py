"""Responses of Azure: decoded by type, and their errors read by status and code."""

from __future__ import annotations

import re
import zlib
from base64 import urlsafe_b64decode
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from ..effects import HttpResponse, Instant, Program
from ..errors import ProviderProblem
from ..values import Secret
from .retry import retry_after

T = TypeVar("T")
U = TypeVar("U")

LARGEST: Final = 4 * 2**20
"""Maximum size of a body in bytes, compressed or not. The decoder limits its nesting."""

NONSENSE: Final = "nonsense"
"""The code of an invalid response."""

_GZIP: Final = b"\x1f\x8b"
"""The first bytes of gzip, and of no JSON text (RFC 1952 section 2.3.1)."""

_GZIP_FORMAT: Final = zlib.MAX_WBITS | 16
_WORD: Final = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_REQUEST_IDS: Final = ("x-ms-request-id", "request-id")
CLIENT_REQUEST_ID: Final = "client-request-id"
"""The header with the client's id of a request, in the request and in its response."""


def read(response: HttpResponse, form: type[T]) -> T:
    """Decode the body as JSON of a type (a `msgspec.Struct`, or any type that msgspec knows).

    Raise a problem if it differs.

    A gzipped body is accepted although none is requested, because some proxies compress anyway.
    """
    try:
        return msgspec.json.decode(_plain(response.body), type=form)
    except (ValueError, RecursionError):
        raise nonsense(response) from None  # the error's text could show parts of the body


def _plain(body: bytes) -> bytes:
    """Return the body without its compression. Raise `ValueError` if it is too large, or not a complete gzip file."""
    if len(body) > LARGEST:
        raise ValueError("too large")
    if not body.startswith(_GZIP):
        return body
    decompressor = zlib.decompressobj(_GZIP_FORMAT)
    try:
        plain = decompressor.decompress(body, LARGEST + 1)
    except zlib.error:
        raise ValueError("not gzip") from None
    if len(plain) > LARGEST or not decompressor.eof or decompressor.unused_data:
        raise ValueError("too large, truncated, or followed by other data")
    return plain


def unverified_claims(token: Secret, form: type[T]) -> T | None:
    """Return the claims of the service's own access token. `None` if they cannot be read.

    The token came from Azure or the platform, and nothing relies on its claims: its signature is not verified.
    """
    try:
        payload = token.reveal().split(".")[1]
        return msgspec.json.decode(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)), type=form)
    except (IndexError, ValueError, RecursionError):
        return None


async def unless(is_expected: Callable[[ProviderProblem], bool], work: Program[T], otherwise: U) -> T | U:
    """Return the result of a program, or `otherwise` if Azure answers with an expected error."""
    try:
        return await work
    except ProviderProblem as problem:
        if is_expected(problem):
            return otherwise
        raise


def is_absent(problem: ProviderProblem) -> bool:
    """Return whether Azure answers that an object does not exist. A 404 without a code may come from a proxy."""
    return problem.status == 404 and problem.code != ""


def nonsense(response: HttpResponse | None = None) -> ProviderProblem:
    """Return the problem of an invalid response, whatever its status."""
    if response is None:
        return ProviderProblem(200, NONSENSE)
    return ProviderProblem(response.status, NONSENSE, _request_id(response), client_request_id=_own_id(response))


def problem_of(response: HttpResponse, now: Instant) -> ProviderProblem:
    """Return the problem in an error response.

    Its code is `error.code`, or `code` if a service omits the enclosing `error`. For the token endpoint it is
    "AADSTS…", or else its `error`.
    """
    asked = retry_after(response.headers, now)
    return ProviderProblem(response.status, _code(response), _request_id(response), asked, _own_id(response))


class _Detail(msgspec.Struct):
    code: str | int | None = None


class _ErrorAnswer(msgspec.Struct):
    error: _Detail | str | None = None
    error_codes: list[int] | None = None
    code: str | int | None = None
    capital_code: str | int | None = msgspec.field(name="Code", default=None)


def _code(response: HttpResponse) -> str:
    try:
        answer = read(response, _ErrorAnswer)
    except ProviderProblem:
        return ""
    if isinstance(answer.error, _Detail):
        code = answer.error.code
    elif answer.error_codes:
        code = f"AADSTS{answer.error_codes[0]}"
    else:
        code = answer.error or answer.code or answer.capital_code
    text = "" if code is None else str(code)
    return text if _WORD.fullmatch(text) else ""


def _request_id(response: HttpResponse) -> str:
    found = (response.headers.get(name, "") for name in _REQUEST_IDS)
    return next((text for text in found if _WORD.fullmatch(text)), "")


def _own_id(response: HttpResponse) -> str:
    text = response.headers.get(CLIENT_REQUEST_ID, "")
    return text if _WORD.fullmatch(text) else ""
