"""Requests and responses of the HTTP API."""

from .operations import DELETE, LIST, METHODS, READ, WRITE, Operation
from .request import (
    ADDRESSED,
    PREFIX,
    UNAUDITED_HEADERS,
    body_of,
    check_namespace,
    countable_path,
    deadline_seconds,
    flag,
    operation_of,
    patience,
    split_target,
    token_in,
    wrap_ttl_in,
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
