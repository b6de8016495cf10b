"""The page for people at `/ui/`: static files, which ask the service with the token that a person gives the page.

Beside the simulated cloud of `dev` the page also reaches that cloud, below `/ui/cloud/`. A header that no page of
another site can send keeps others out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Final

import attrs
import msgspec

from cloudid_core.advice import ADVICE
from cloudid_core.effects import HttpRequest, HttpResponse
from cloudid_core.messages.response import Request, Response

PLACE: Final = "/ui/"
CLOUD: Final = "/ui/cloud/"
OURS: Final = "x-cloudid-ui"
CODES: Final = "codes.json"
"""Cause and fix of each error code, which the page shows below a refusal."""
TYPES: Final[Mapping[str, str]] = {
    "index.html": "text/html; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "icon-problem.svg": "image/svg+xml",
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    CODES: "application/json",
}
SECURITY: Final[Mapping[str, str]] = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    "cache-control": "no-cache",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}

Cloud = Callable[[HttpRequest], HttpResponse]
"""Answers a request to the simulated cloud."""


class Page:
    """Answers what is asked below `/ui/`."""

    def __init__(self, cloud: Cloud | None = None) -> None:
        folder = files(__package__) / "static"
        self._files = {name: (folder / name).read_bytes() for name in TYPES if name != CODES}
        self._files[CODES] = msgspec.json.encode({code.wire: attrs.asdict(advice) for code, advice in ADVICE.items()})
        self._cloud = cloud

    def answer(self, request: Request) -> Response | None:
        """The answer to a request; `None` where it is for the service."""
        path = request.target.partition("?")[0]
        if path != PLACE.rstrip("/") and not path.startswith(PLACE):
            return None
        if path.startswith(CLOUD) and self._cloud is not None:
            return self._pass_on(request, self._cloud)
        if request.method not in ("GET", "HEAD"):
            return _plain(405, {"allow": "GET, HEAD"})
        if path == PLACE.rstrip("/"):
            return _plain(308, {"location": PLACE.lstrip("/")})  # behind whatever prefix it is mounted at
        name = path.removeprefix(PLACE) or "index.html"
        if name not in TYPES:
            return _plain(404)
        return Response(200, self._files[name], {**SECURITY, "content-type": TYPES[name]})

    def _pass_on(self, request: Request, cloud: Cloud) -> Response:
        if not request.headers.get(OURS):
            return _plain(403)
        headers = {"content-type": "application/json", "metadata": "true"}
        target = "/" + request.target.removeprefix(CLOUD)
        answer = cloud(HttpRequest(request.method, target, headers, request.body))
        return Response(answer.status, answer.body, {**SECURITY, "content-type": "application/json"})


def _plain(status: int, headers: Mapping[str, str] | None = None) -> Response:
    return Response(status, b"", {**SECURITY, **(headers or {})})
