"""Requests as handlers see them, and what handlers answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import msgspec
from attrs import define, field, frozen

from cloudid_core.effects import HttpRequest, HttpResponse

Json: TypeAlias = dict[str, Any]

MAX_FIELDS: Final = 100
ENCODED_SLASH: Final = "%2F"


@frozen
class Answer:
    """The outcome of a request: the response, and what a fault does to it on its way back."""

    response: HttpResponse
    delay: float = 0.0
    """Seconds after which the response is sent. The work is already done."""
    drop: bool = False
    """Whether the connection breaks instead."""


@define(eq=False)
class Refusal(Exception):
    """A request that is answered with an error. Each service renders it in its own format."""

    status: int
    code: str
    message: str
    headers: Mapping[str, str] = field(factory=dict, repr=False)


def json_response(status: int, value: Any, headers: Mapping[str, str] | None = None) -> HttpResponse:
    return HttpResponse(
        status, {"content-type": "application/json; charset=utf-8", **(headers or {})}, json.dumps(value).encode()
    )


@frozen
class Caller:
    """Who sent a request, according to its token."""

    object_id: str = ""
    client_id: str = ""


ANONYMOUS: Final = Caller()


@frozen
class Call:
    """A request as a handler sees it: decoded, with the names that its route found in the path."""

    method: str
    path: str
    query: Mapping[str, str] = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    names: Mapping[str, str] = field(factory=dict)
    writes: bool = False
    """Whether its route changes something, for which its caller needs more rights."""
    caller: Caller = ANONYMOUS
    login: str = "/login"
    """Where the client finds the login service: documents name addresses below it."""

    @classmethod
    def of(cls, request: HttpRequest) -> Call:
        """Decode a request. An encoded slash within a segment stays encoded, so it never separates segments.

        A slash at the end means nothing, as at the provider: some of its libraries put one before the query.
        """
        url = urlsplit(request.url)
        segments = url.path.removesuffix("/").split("/")
        return cls(
            method=request.method.upper(),
            path="/".join(unquote(part).replace("/", ENCODED_SLASH) for part in segments),
            query=_pairs(url.query),
            headers={name.lower(): value for name, value in request.headers.items()},
            body=request.body,
        )

    def form(self) -> Mapping[str, str]:
        return _pairs(self.body.decode("ascii", "replace"))

    def json(self, code: str = "BadRequest") -> Any:
        """The body; `Refusal` 400 with the code if it is not JSON."""
        try:
            return msgspec.json.decode(self.body)
        except (ValueError, RecursionError):
            raise Refusal(400, code, "The body is not JSON.") from None


def _pairs(encoded: str) -> Mapping[str, str]:
    """Pairs of a query or form; those beyond the first hundred are ignored."""
    return dict(parse_qsl("&".join(encoded.split("&", MAX_FIELDS)[:MAX_FIELDS]), keep_blank_values=True))


def page(items: Sequence[Any], call: Call, base_url: str, size: int) -> tuple[Sequence[Any], str | None]:
    """One page of a list, and the URL of the next page, if there is one."""
    token = call.query.get("$skiptoken", "0")
    if not re.fullmatch(r"[0-9]{1,9}", token):
        raise Refusal(400, "BadRequest", "The skip token is not valid.")
    start = int(token)
    end = start + size
    following = urlencode({**call.query, "$skiptoken": end})
    return items[start:end], f"{base_url}{quote(call.path)}?{following}" if end < len(items) else None
