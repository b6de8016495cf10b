"""Requests and responses as hosts exchange them, and the JSON envelope.

A route's program returns an `Answer`, and `render` converts it to a `Response`. All details of the HTTP response
(status, headers, members and their order) are decided here.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec.structs import asdict, replace

from ..effects import Instant
from ..errors import Code, Problem, Refused
from ..forms import Json
from ..values import without_tokens

HEADERS: Final[Mapping[str, str]] = MappingProxyType({"content-type": "application/json", "cache-control": "no-store"})
"""The headers of every response. The content type is exact, because existing clients compare the whole string."""

NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})

ERROR_CODE_HEADER: Final = "x-service-error-code"
"""The header with the first code of an error. A 404's body has no codes."""


class Request(msgspec.Struct, frozen=True):
    """A request as a host received it.

    `target` is the path and query as received. `is_folded` means that all header names are in lower case, so that they
    need not be converted. `remote_address` is the address of the peer, or the one that a trusted proxy reported, and
    `remote_port` its port, or 0 if unknown. `body_is_cut` means that the body is longer than `Service.body_limit`
    allows, and that the host has not read all of it.
    """

    method: str
    target: str
    headers: Mapping[str, str] = {}
    body: bytes = b""
    remote_address: str = ""
    body_is_cut: bool = False
    is_folded: bool = False
    remote_port: int = 0

    @property
    def folded(self) -> Request:
        """Return the request with header names in lower case."""
        if self.is_folded:
            return self
        return replace(self, headers={name.lower(): value for name, value in self.headers.items()}, is_folded=True)

    def __repr__(self) -> str:
        return f"<Request {self.method} {without_tokens(self.target.partition('?')[0])} from {self.remote_address}>"


class Response(msgspec.Struct, frozen=True):
    """A response for a host to send: status, headers and body are final.

    If a response `gives` something and cannot be delivered, pass it to `Service.undelivered`. `holds` names the lease,
    if there is one; `held` is for the service. `wake_at` asks the host to run `tick` by that time. `failure` is for the
    host's log: a failure of the service or of Azure, if the body has fewer details. It has no traceback, which is in
    the event of the request.
    """

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = HEADERS
    holds: str = ""
    wake_at: Instant | None = None
    failure: Exception | None = None
    request_id: str = ""
    codes: tuple[str, ...] = ()
    """The codes of a refusal."""
    held: object = None

    @property
    def gives(self) -> bool:
        """Return whether it must be revoked if the caller does not receive it.

        This is so if it contains a lease, a token or a wrapped response.
        """
        return bool(self.holds or self.held)

    def __repr__(self) -> str:
        return f"<Response {self.status} to {self.request_id}>"


class AuthBlock(msgspec.Struct, frozen=True, kw_only=True):
    """The `auth` member of the envelope: a token, as its holder sees it, with all members in order."""

    client_token: str
    accessor: str
    policies: tuple[str, ...]
    token_policies: tuple[str, ...]
    """Equal to `policies`, because a token has no other policies."""
    metadata: Mapping[str, str] | None
    lease_duration: int
    renewable: bool
    entity_id: str = ""
    token_type: str = "service"
    orphan: bool = True
    mfa_requirement: None = None
    num_uses: int = 0

    def __repr__(self) -> str:
        return f"<AuthBlock {self.accessor}>"


class WrapInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The `wrap_info` member of the envelope: the wrapping token."""

    token: str
    accessor: str
    ttl: int
    creation_time: str
    creation_path: str
    wrapped_accessor: str = ""

    def __repr__(self) -> str:
        return f"<WrapInfo {self.accessor}>"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a program. An empty answer means 204.

    `rendered` is the body of a response that was rendered earlier and is repeated unchanged. `plain` returns `data`
    without an envelope; `copy_up` also repeats its members beside `data`, as old clients of the `sys` routes expect.
    `status` overrides the usual status.
    """

    data: Mapping[str, Json] | None = None
    auth: AuthBlock | None = None
    lease_id: str = ""
    lease_duration: int = 0
    renewable: bool = False
    warnings: tuple[str, ...] = ()
    status: int | None = None
    plain: bool = False
    copy_up: bool = False
    headers: Mapping[str, str] = HEADERS
    holds: str = ""
    new_token: str = ""
    """The id of the service token that this answer returns for the first time."""
    wrap_info: WrapInfo | None = None
    rendered: str = ""
    wake_at: Instant | None = None

    def __repr__(self) -> str:
        return f"<Answer {', '.join(self.data or ())}>"

    @property
    def is_empty(self) -> bool:
        return not (
            self.data is not None or self.auth or self.lease_id or self.warnings or self.wrap_info or self.rendered
        )

    @property
    def can_be_wrapped(self) -> bool:
        """Return whether there is an envelope that can be wrapped, and that is not itself about a wrapped response."""
        return self.status in (None, 200) and not (self.is_empty or self.plain or self.wrap_info or self.rendered)


class _Envelope(msgspec.Struct, frozen=True):
    """The members of every answer that is not plain, in order."""

    request_id: str
    lease_id: str
    renewable: bool
    lease_duration: int
    data: Mapping[str, Json] | None
    wrap_info: WrapInfo | None
    warnings: tuple[str, ...] | None
    auth: AuthBlock | None
    mount_type: str

    def __repr__(self) -> str:
        return f"<_Envelope {self.request_id}>"


NOTHING: Final = Answer()
"""The answer of a write or deletion without data."""

encode: Final = msgspec.json.Encoder().encode


WITHOUT_CONTENT: Final = frozenset({204, 205, 304})
"""Statuses without content (RFC 9110 sections 15.3.5, 15.3.6 and 15.4.5)."""


def render(answer: Answer, *, request_id: str, mount_type: str, held: object = None) -> Response:
    """Render an answer: 204 if it is empty, otherwise 200 (or its own status) with the envelope."""
    if answer.is_empty:
        status = answer.status or 204
        return Response(status, b"", answer.headers, answer.holds, answer.wake_at, None, request_id, (), held)
    if answer.rendered:
        body = answer.rendered.encode()
        return Response(200, body, answer.headers, answer.holds, answer.wake_at, None, request_id, (), held)
    members: Mapping[str, Json] | _Envelope
    if answer.plain:
        members = answer.data or {}
    else:
        members = _Envelope(
            request_id,
            answer.lease_id,
            answer.renewable,
            answer.lease_duration,
            answer.data,
            answer.wrap_info,
            answer.warnings or None,
            answer.auth,
            mount_type,
        )
        if answer.copy_up and answer.data:
            members = {**answer.data, **asdict(members)}
    status = answer.status or 200
    body = b"" if status in WITHOUT_CONTENT else encode(members) + b"\n"
    return Response(status, body, answer.headers, answer.holds, answer.wake_at, None, request_id, (), held)


def rate_limit_headers(limit: int, remaining: int, full_in: float) -> dict[str, str]:
    """Return the rate limit headers.

    They contain how many requests a source may make, how many are left, and in how many seconds all are available
    again.
    """
    return {
        "x-ratelimit-limit": str(limit),
        "x-ratelimit-remaining": str(remaining),
        "x-ratelimit-reset": str(ceil(full_in)),
    }


def with_headers(response: Response, headers: Mapping[str, str]) -> Response:
    """Return the response with additional headers."""
    return replace(response, headers={**response.headers, **headers})


ACCEPTED: Final = 202
METHOD_NOT_ALLOWED: Final = 405
METHODS: Final = "DELETE, GET, HEAD, LIST, POST, PUT"
"""The `Allow` header of a 405 that does not depend on the path (RFC 9110 section 15.5.6)."""


def error_body(problems: tuple[Problem, ...]) -> bytes:
    """Return `{"errors": […], "codes": […]}`, with one element of each for every problem.

    A 404 has only `errors`, because existing clients otherwise do not treat it as "not found". It is empty if there is
    no text. No text ends with a full stop, because clients join several with commas.
    """
    told = (problem for problem in problems if problem.detail or problem.code is not Code.NOT_FOUND)
    body: dict[str, Json] = {"errors": [problem.text.removesuffix(".") for problem in told]}
    if not problems or problems[0].code.status != 404:
        body["codes"] = [problem.code.wire for problem in problems]
    return encode(body) + b"\n"


def render_refusal(refusal: Refused, failure: Exception | None = None, request_id: str = "") -> Response:
    """Render a refusal, with its first code in a header. `failure` is for the host's log."""
    headers = {**HEADERS, ERROR_CODE_HEADER: refusal.code.wire}
    if refusal.retry_after is not None:
        headers["retry-after"] = str(max(1, round(refusal.retry_after)))
    if refusal.status == METHOD_NOT_ALLOWED:
        headers["allow"] = refusal.allow or METHODS
    codes = tuple(problem.code.wire for problem in refusal.problems)
    body = error_body(refusal.problems)
    return Response(refusal.status, body, headers, failure=failure, request_id=request_id, codes=codes)
