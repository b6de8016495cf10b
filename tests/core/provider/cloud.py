"""A scripted cloud: answers by method and path, and what was asked of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from msgspec.structs import replace

from cloudid_core.clouds import Cloud
from cloudid_core.context.context import Context
from cloudid_core.deadline import Deadline
from cloudid_core.effects import HttpRequest, HttpResponse, Sleep
from cloudid_core.errors import ProviderUnreachable
from cloudid_core.provider.client import Client, Credentials
from cloudid_core.provider.retry import RetryPolicy
from cloudid_core.testing import World
from cloudid_core.testing.world import Platform
from cloudid_core.values.secret import Secret

from ..contexts import new_context

START: Final = 1_700_000_000.0
TENANT: Final = "11111111-2222-3333-4444-555555555555"
LOGIN: Final = "https://login.test"
ARM: Final = "https://arm.test"
GRAPH: Final = "https://graph.test"
CLOUD: Final = Cloud(login=LOGIN, resource_manager=ARM, resource_audience="https://arm.audience/", directory=GRAPH)
SCOPE: Final = CLOUD.resource_scope
TOKEN_PATH: Final = f"/{TENANT}/oauth2/v2.0/token"

Reply: TypeAlias = HttpResponse | Exception


def reply(status: int, body: Any = None, **headers: str) -> HttpResponse:
    """A JSON answer; `retry_after="3"` is the header `retry-after`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpResponse(status, named, b"" if body is None else json.dumps(body).encode())


def error(status: int, code: str = "Trouble", **headers: str) -> HttpResponse:
    """An error as the resource manager and the directory word it."""
    return reply(status, {"error": {"code": code, "message": "do not repeat me"}}, **headers)


def token(text: str = "token", expires_in: int = 3600) -> HttpResponse:
    return reply(200, {"token_type": "Bearer", "expires_in": expires_in, "access_token": text})


def unreachable(sent: bool = True) -> ProviderUnreachable:
    return ProviderUnreachable("nobody there", sent=sent)


class ScriptedCloud:
    """Replies by "METHOD path": each of a list in turn, the last one for ever. It has one access token to give."""

    def __init__(self) -> None:
        self.requests: list[HttpRequest] = []
        self._scripts: dict[str, list[Reply]] = {}
        self.script(f"POST {TOKEN_PATH}", token())

    def script(self, what: str, *replies: Reply) -> None:
        self._scripts[what] = list(replies)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        self.requests.append(request)
        replies = self._scripts.get(f"{request.method} {urlsplit(request.url).path}")
        if replies is None:
            return error(404, "NotScripted")
        answer = replies.pop(0) if len(replies) > 1 else replies[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def asked(self, path: str) -> list[HttpRequest]:
        """The requests for a path so far."""
        return [request for request in self.requests if urlsplit(request.url).path == path]

    @property
    def paths(self) -> list[str]:
        return [urlsplit(request.url).path for request in self.requests]


class Setting:
    """A scripted cloud, a world that reaches it, and a client."""

    def __init__(self, seed: int = 0, platform: Platform | None = None, **settings: Any) -> None:
        self.cloud = ScriptedCloud()
        self.world = World(seed, provider=self.cloud, start=START, platform=platform)
        self.context = new_context(**settings)
        self.client = client(self.context)

    def later(self, seconds: float) -> Client:
        """The client of a request that comes so much later."""
        self.world.advance(seconds)
        self.client = replace(self.client, deadline=Deadline(self.world.clock + 90))
        return self.client

    @property
    def pauses(self) -> list[float]:
        """How long programs slept."""
        return [effect.seconds for _, effect in self.world.trace if isinstance(effect, Sleep)]


def client(context: Context, **changes: Any) -> Client:
    usual = Client(
        settings=context.settings,
        caches=context.caches,
        cloud=CLOUD,
        tenant=TENANT,
        credentials=Credentials(client_id="app", client_secret=Secret("s3cret&=")),
        owner="mount:1",
        mount="cloud",
        deadline=Deadline(START + 90),
        retry=RetryPolicy(),
        records=context.records,
    )
    return replace(usual, **changes)


def form_of(request: HttpRequest) -> Mapping[str, str]:
    return dict(parse_qsl(request.body.decode()))
