"""Requests and responses as they travel."""

from .operations import METHODS, Operation
from .request import (
    PREFIX,
    UNAUDITED_HEADERS,
    ParsedRequest,
    Target,
    countable_path,
    parse_head,
    parse_request,
    parse_target,
    token_in,
)
from .response import (
    HEADERS,
    NO_HEADERS,
    NOTHING,
    Answer,
    AuthBlock,
    Request,
    Response,
    WrapInfo,
    rate_limit_headers,
    render,
    render_refusal,
    with_headers,
)

__all__ = [
    "HEADERS",
    "METHODS",
    "NOTHING",
    "NO_HEADERS",
    "PREFIX",
    "UNAUDITED_HEADERS",
    "Answer",
    "AuthBlock",
    "Operation",
    "ParsedRequest",
    "Request",
    "Response",
    "Target",
    "WrapInfo",
    "countable_path",
    "parse_head",
    "parse_request",
    "parse_target",
    "rate_limit_headers",
    "render",
    "render_refusal",
    "token_in",
    "with_headers",
]
