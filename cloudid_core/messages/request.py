"""Requests: path, operation, parameters and token, parsed from the raw message with limits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from ..errors import Code, Refused
from ..settings import Settings
from ..values import boolean, duration, json_text
from .operations import Operation
from .response import Request

PREFIX: Final = "/v1/"
TARGET_LIMIT: Final = 8192
QUERY_LIMIT: Final = 100
TOKEN_LIMIT: Final = 16_384
TOKEN_HEADERS: Final = ("x-service-token", "x-vault-token")
DEADLINE_HEADER: Final = "x-service-deadline"
NAMESPACE_HEADER: Final = "x-vault-namespace"
WRAP_HEADERS: Final = ("x-service-wrap-ttl", "x-vault-wrap-ttl")
UNAUDITED_HEADERS: Final = frozenset({*TOKEN_HEADERS, "authorization", "proxy-authorization", "cookie", *WRAP_HEADERS})
"""Headers that are never audited, because they may contain a token, or entries have their contents anyway."""

ADDRESSED: Final = frozenset({*TOKEN_HEADERS, "authorization", *WRAP_HEADERS, NAMESPACE_HEADER, DEADLINE_HEADER})
"""Headers that say something to the service."""

FORM: Final = "application/x-www-form-urlencoded"
MERGE_PATCH: Final = "application/merge-patch+json"
_SECONDS: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")


def body_of(
    request: Request, operation: Operation | None, query: Mapping[str, Any], settings: Settings
) -> Mapping[str, Any]:
    """Return the parameters of a request, from its body or its query. Raise `Refused` if the body cannot be parsed."""
    if operation is Operation.WRITE:
        try:
            return parse_body(request.body, settings.body_limit)
        except Refused as refusal:
            if refusal.code is Code.MALFORMED_JSON and _media_type(request.headers) == FORM:
                raise Refused(Code.MALFORMED_JSON, "the body is a form: send JSON instead") from None
            raise
    if operation is Operation.DELETE and request.body:
        return {**query, **parse_body(request.body, settings.body_limit)}
    return query


def countable_path(target: str) -> str:
    """Return the path of a malformed target, for quotas."""
    return unquote(target[:TARGET_LIMIT].partition("?")[0].removeprefix(PREFIX)).strip("/")


def split_target(target: str) -> tuple[str, dict[str, Any]]:
    """Return the path and the query of a target. Raise `Refused` if it cannot be parsed."""
    if len(target) > TARGET_LIMIT:
        raise Refused(Code.TARGET_TOO_LONG)
    raw_path, _, raw_query = target.partition("?")
    if not raw_path.startswith(PREFIX):
        raise Refused(Code.NOT_FOUND)
    raw_path = raw_path.removeprefix(PREFIX)
    if "%" in raw_path:
        if "%2f" in raw_path.lower():
            raise Refused(Code.MALFORMED_PATH, "it has an encoded slash")
        raw_path = unquote(raw_path, errors="strict") if _is_utf8(raw_path) else "\0"
    segments = raw_path.removesuffix("/").split("/")
    if not raw_path.isprintable() or any(segment in ("", ".", "..") for segment in segments):
        raise Refused(Code.MALFORMED_PATH, "it has an empty or relative segment, or characters that are not printable")
    return raw_path, _query(raw_query) if raw_query else {}


def _is_utf8(text: str) -> bool:
    try:
        unquote(text, errors="strict")
    except UnicodeDecodeError:
        return False
    return True


def _query(raw: str) -> dict[str, Any]:
    try:
        pairs = parse_qsl(raw, keep_blank_values=True, max_num_fields=QUERY_LIMIT)
    except ValueError:
        raise Refused(Code.MALFORMED_REQUEST, "the query has too many fields") from None
    query: dict[str, Any] = {}
    for name, value in pairs:
        if name in query:
            earlier = query[name]
            query[name] = [*earlier, value] if isinstance(earlier, list) else [earlier, value]
        else:
            query[name] = value
    return query


def operation_of(request: Request, query: Mapping[str, Any]) -> tuple[Operation, bool]:
    """Return the operation of a method, and whether it is a HEAD. Raise `Refused` if it is not supported."""
    match request.method:
        case "GET" | "HEAD":
            return (Operation.LIST if flag(query, "list") else Operation.READ), request.method == "HEAD"
        case "LIST":
            return Operation.LIST, False
        case "POST" | "PUT":
            return Operation.WRITE, False
        case "DELETE":
            return Operation.DELETE, False
        case "PATCH" if _media_type(request.headers) != MERGE_PATCH:
            raise Refused(Code.UNSUPPORTED_MEDIA_TYPE)
        case _:
            raise Refused(Code.UNSUPPORTED_OPERATION)


def flag(query: Mapping[str, Any], name: str) -> bool:
    """Return a boolean parameter of the query."""
    if name not in query:
        return False
    try:
        return boolean(query[name])
    except ValueError as error:
        raise Refused(Code.FIELD_INVALID, f'"{name}" {error}') from None


def _media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def parse_body(raw: bytes, limit: int) -> Mapping[str, Any]:
    """Parse the JSON object of a body. An empty body and `null` mean the empty object."""
    if len(raw) > limit:
        raise Refused(Code.BODY_TOO_LARGE)
    if not raw or raw.isspace():
        return {}
    try:
        body = json_text.decode(raw)
    except json_text.TooComplex as error:
        raise Refused(Code.BODY_TOO_COMPLEX, f"it {error}") from None
    except ValueError:
        raise Refused(Code.MALFORMED_JSON) from None
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise Refused(Code.MALFORMED_JSON, "the top level must be an object")
    return body


def token_in(headers: Mapping[str, str]) -> str:
    """Return the token of a request. The first of several headers is used."""
    for name in TOKEN_HEADERS:
        if shown := headers.get(name):
            return shown[:TOKEN_LIMIT]
    scheme, _, shown = headers.get("authorization", "").partition(" ")
    return shown.strip()[:TOKEN_LIMIT] if scheme.lower() == "bearer" else ""


def deadline_seconds(headers: Mapping[str, str], most: float) -> float:
    """Return the maximum duration of the request, which the header can only shorten."""
    text = headers.get(DEADLINE_HEADER)
    if text is None:
        return most
    seconds = float(text) if _SECONDS.fullmatch(text) else 0.0
    if not seconds:
        raise Refused(Code.MALFORMED_REQUEST, "X-Service-Deadline must be a positive number of seconds")
    return min(seconds, most)


def patience(headers: Mapping[str, str], most: float) -> float:
    """Return the duration like `deadline_seconds`, for the host that waits. An invalid header is ignored."""
    if DEADLINE_HEADER not in headers:
        return most
    try:
        return deadline_seconds(headers, most)
    except Refused:
        return most


def wrap_ttl_in(headers: Mapping[str, str], most: int) -> int:
    """Return the seconds for which a request wants its response wrapped. The first of several headers is used."""
    for name in WRAP_HEADERS:
        if text := headers.get(name):
            try:
                seconds = duration.seconds(text)
            except ValueError as error:
                raise Refused(Code.MALFORMED_REQUEST, f"{name} {error}") from None
            if seconds > most:
                raise Refused(Code.TTL_EXCEEDS_MAX, name)
            return seconds
    return 0


def check_namespace(headers: Mapping[str, str]) -> None:
    """Refuse a request for a namespace: there is none but the root."""
    if headers.get(NAMESPACE_HEADER, "").strip("/") not in ("", "root"):
        raise Refused(Code.NAMESPACE_UNKNOWN)  # no 404: existing clients drop the text of one
