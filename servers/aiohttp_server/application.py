"""A ready application of aiohttp: `app.add_subapp("/cloudid/", aiohttp_application("cloudid.toml"))`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Final

from cloudid_core.errors import Code, Refused
from cloudid_core.messages import Request, Response

from .. import extras
from ..machine import streams

with extras.named():
    from aiohttp import web

    from ..embedding import Embedded, Given, SetUp, embedded, set_up_of
    from ..http_rules import NO_CONTENT, joined
    from .host import open_host


IDENTITY: Final = "identity"
"""The `Content-Encoding` of a body that is not compressed. aiohttp would expand every other one for its handlers.

Its parser in C goes by the last of several such headers, its parser in Python by the first: each of them counts.
"""


def aiohttp_application(
    settings: Given | None = None, *, dev_root_token: str = "", provider: str = ""
) -> web.Application:
    """Return the service as an application of aiohttp, to be served alone or added to another one.

    Takes and raises what `cloudid_servers.asgi.asgi_application` does. The service is open between start-up and
    clean-up of the outermost application. One that cannot be opened raises `SettingsError`, `CloudidError` or
    `OSError` there.
    """
    return application_of(set_up_of(settings, dev_root_token, provider))


def application_of(set_up: SetUp) -> web.Application:
    """Return an application over the setup that it opens when it starts."""
    application, handler = web.Application(), _Handler(set_up)
    application.cleanup_ctx.append(handler.open)
    application.router.add_route("*", "/{path:.*}", handler.answer)
    return application


class _Handler:
    """Answers requests that aiohttp has received."""

    _embedded: Embedded

    def __init__(self, set_up: SetUp) -> None:
        self._set_up = set_up

    async def open(self, application: web.Application) -> AsyncIterator[None]:
        async with embedded(self._set_up, open_host) as self._embedded:
            yield

    async def answer(self, request: web.Request) -> web.StreamResponse:
        service, peer = self._embedded, request.remote or ""
        if any(coding.lower() != IDENTITY for coding in request.headers.getall("Content-Encoding", ())):
            return await _refuse_unread(request, service.refuse(Refused(Code.UNSUPPORTED_CONTENT_ENCODING), peer))
        try:
            response = await service.answer(_head(request), request.content.readany)
        except web.RequestPayloadError:
            response = service.refuse(Refused(Code.MALFORMED_REQUEST), peer)
        body = None if response.status in NO_CONTENT else response.body
        answer = web.Response(status=response.status, headers=response.headers, body=body)
        if response.gives:  # others may still be changed by the middlewares of the outer application
            await service.deliver(response, partial(_has_left, request), partial(_write, request, answer))
        return answer


def _head(request: web.Request) -> Request:
    """Return the head without the prefix that the application is added at."""
    resource = request.match_info.route.resource
    assert resource is not None
    prefix = resource.canonical.removesuffix("/{path}")
    target = request.rel_url.raw_path_qs.removeprefix(prefix)
    return Request(
        request.method, target, joined(request.raw_headers), remote_address=request.remote or "", is_folded=True
    )


async def _refuse_unread(request: web.Request, response: Response) -> web.Response:
    """Answer, and end the connection: otherwise aiohttp reads the rest of the body, and expands it for that."""
    answer = web.Response(status=response.status, headers=response.headers, body=response.body)
    answer.force_close()
    await _write(request, answer)
    request.protocol.force_close()
    return answer


async def _has_left(request: web.Request) -> bool:
    socket = request.get_extra_info("socket")
    return request.transport is None or socket is None or streams.has_hung_up(socket.fileno())


async def _write(request: web.Request, answer: web.Response) -> None:
    await answer.prepare(request)
    await answer.write_eof()
