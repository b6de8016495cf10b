"""Requests as a host hands them in, and answers as it would write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cloudid_core import Request, Response
from tests.installation import HOME, ROOT, Installation, Reply

NOT_HERE: Final[dict[str, list[str]]] = {"errors": []}


def send(
    service: Installation,
    method: str,
    target: str,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    token: str | None = ROOT,
) -> Response:
    """The answer to a request below `/v1/`; `token` goes into the first of the headers for it."""
    shown = {} if token is None else {"x-service-token": token}
    request = Request(method, f"/v1/{target}", {**shown, **(headers or {})}, body, HOME)
    return service.perform(service.service.handle(request))


def told(response: Response) -> Any:
    """The JSON of an answer."""
    return Reply.of(response).body


def codes(response: Response) -> list[str]:
    """The codes of an error."""
    return Reply.of(response).codes


def token_with(service: Installation, policy: str) -> str:
    """A token that may do what a policy says, and what everybody may."""
    service.must("PUT", "sys/policies/acl/some", {"policy": policy})
    token: str = service.must("POST", "auth/token/create", {"policies": ["some"]}).auth["client_token"]
    return token
