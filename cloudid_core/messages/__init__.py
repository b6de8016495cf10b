"""Requests and responses as they travel."""

from .operations import DELETE, LIST, METHODS, READ, WRITE, Operation
from .request import (
    PREFIX,
    UNAUDITED_HEADERS,
    ParsedRequest,
    Target,
    countable_path,
    parse_head,
    parse_request,
    parse_target,
    patience,
    token_in,
)
from .response import (
    ACCEPTED,
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
