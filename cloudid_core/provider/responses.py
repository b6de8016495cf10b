"""Answers of the provider: read by their shape, and their errors by status and code."""

from __future__ import annotations

import re
from typing import Final, TypeVar

import msgspec

from ..effects import HttpResponse, Instant
from ..errors import ProviderProblem
from .retry import retry_after

T = TypeVar("T")

LARGEST: Final = 4 * 2**20
"""The largest body, in bytes, that is read. How deep it may be nested is bounded by the decoder."""

NONSENSE: Final = "nonsense"
"""The code of an answer that is not what we asked for."""

_WORD: Final = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_REQUEST_IDS: Final = ("x-ms-request-id", "request-id")


def read(response: HttpResponse, form: type[T]) -> T:
    """The body as JSON of a shape (a `msgspec.Struct`, or any type that msgspec knows); a problem otherwise."""
    if len(response.body) > LARGEST:
        raise nonsense(response)
    try:
        return msgspec.json.decode(response.body, type=form)
    except (ValueError, RecursionError):
        raise nonsense(response) from None  # the error's text could show parts of the body


def nonsense(response: HttpResponse | None = None) -> ProviderProblem:
    """The problem of an answer that makes no sense, whatever its status said."""
    if response is None:
        return ProviderProblem(200, NONSENSE)
    return ProviderProblem(response.status, NONSENSE, _request_id(response))


def problem_of(response: HttpResponse, now: Instant) -> ProviderProblem:
    """The problem that an error answer tells of: `error.code`, or of the token endpoint "AADSTS…", else its `error`."""
    return ProviderProblem(response.status, _code(response), _request_id(response), retry_after(response.headers, now))


class _Detail(msgspec.Struct):
    code: str = ""


class _ErrorAnswer(msgspec.Struct):
    error: _Detail | str = ""
    error_codes: list[int] = []  # msgspec copies the default


def _code(response: HttpResponse) -> str:
    try:
        answer = read(response, _ErrorAnswer)
    except ProviderProblem:
        return ""
    if isinstance(answer.error, _Detail):
        code = answer.error.code
    else:
        code = f"AADSTS{answer.error_codes[0]}" if answer.error_codes else answer.error
    return code if _WORD.fullmatch(code) else ""


def _request_id(response: HttpResponse) -> str:
    found = (response.headers.get(name, "") for name in _REQUEST_IDS)
    return next((text for text in found if _WORD.fullmatch(text)), "")
