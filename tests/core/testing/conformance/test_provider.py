"""The checks of provider calls: the world passes, and each notices a host that is wrong."""

from __future__ import annotations

import json

import pytest
from attrs import evolve

from cloudid_core.effects import HttpRequest, HttpResponse
from cloudid_core.errors import ProviderUnreachable
from cloudid_core.testing import NotConforming, World, provider_checks, scripted_provider
from cloudid_core.testing.conformance import Scripted
from cloudid_core.testing.conformance.check import Check
from tests.hosts.test_wrong_hosts import NOTICED as NOTICED_ELSEWHERE

OPEN, CLOSED = "http://open.test", "http://closed.test"
CHECKS = provider_checks(OPEN, CLOSED)


def provider(request: HttpRequest) -> Scripted:
    if request.url.startswith(CLOSED):
        raise ProviderUnreachable("nobody listens", sent=False)
    return scripted_provider(request)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_the_world_passes(check: Check) -> None:
    for seed in range(5):
        World(seed, provider).perform(check())


class Decoding(World):
    """Takes an address apart and puts it together again."""

    async def call_provider(self, request: HttpRequest, timeout: float) -> HttpResponse:
        return await super().call_provider(evolve(request, url=request.url.replace("%2F", "/").rstrip("&e=")), timeout)


class Bodiless(World):
    """Sends no body but with POST."""

    async def call_provider(self, request: HttpRequest, timeout: float) -> HttpResponse:
        return await super().call_provider(request if request.method == "POST" else evolve(request, body=b""), timeout)


class Textual(World):
    """Reads answers as text."""

    async def call_provider(self, request: HttpRequest, timeout: float) -> HttpResponse:
        response = await super().call_provider(request, timeout)
        return evolve(response, body=response.body.decode(errors="replace").encode())


class Raising(World):
    """Takes a status of 400 or more for a failure."""

    async def call_provider(self, request: HttpRequest, timeout: float) -> HttpResponse:
        response = await super().call_provider(request, timeout)
        if response.status >= 400:
            raise ProviderUnreachable(f"status {response.status}", sent=True)
        return response


class Capital(World):
    """Passes header names on as they came."""

    async def call_provider(self, request: HttpRequest, timeout: float) -> HttpResponse:
        response = await super().call_provider(request, timeout)
        return evolve(response, headers={name.title(): value for name, value in response.headers.items()})


class Following(World):
    """Follows redirects."""

    async def call_provider(self, request: HttpRequest, timeout: float) -> HttpResponse:
        response = await super().call_provider(request, timeout)
        location = response.headers.get("location")
        return await self.call_provider(evolve(request, url=location), timeout) if location else response


class Careless(World):
    """Cannot tell whether a request was sent, and says that it was not."""

    async def call_provider(self, request: HttpRequest, timeout: float) -> HttpResponse:
        try:
            return await super().call_provider(request, timeout)
        except ProviderUnreachable as failure:
            raise ProviderUnreachable(str(failure), sent=False) from None


class Anxious(World):
    """Cannot tell whether a request was sent, and says that it was; and waits far too long."""

    async def call_provider(self, request: HttpRequest, timeout: float) -> HttpResponse:
        try:
            return await super().call_provider(request, 1000 * timeout)
        except ProviderUnreachable as failure:
            raise ProviderUnreachable(str(failure), sent=True) from None


NOTICED = [
    (Decoding, "a_request_arrives_as_it_was_asked_for"),
    (Bodiless, "a_request_arrives_as_it_was_asked_for"),
    (Textual, "a_body_comes_back_as_bytes"),
    (Capital, "a_body_comes_back_as_bytes"),
    (Raising, "any_status_is_an_answer"),
    (Capital, "any_status_is_an_answer"),
    (Following, "a_redirect_is_not_followed"),
    (Careless, "silence_ends_at_the_timeout"),
    (Anxious, "silence_ends_at_the_timeout"),
    (Careless, "a_broken_connection_may_have_sent_the_request"),
    (Careless, "calls_run_side_by_side"),
    (Anxious, "a_refused_connection_sent_nothing"),
]


@pytest.mark.parametrize("wrong, name", NOTICED, ids=lambda value: getattr(value, "__name__", value))
def test_a_wrong_host_is_noticed(wrong: type[World], name: str) -> None:
    (check,) = (check for check in CHECKS if check.name == name)
    with pytest.raises((NotConforming, ProviderUnreachable)):
        wrong(0, provider).perform(check())


def test_every_check_notices_something() -> None:
    names = {check.name for check in CHECKS}
    assert {name for _, name in NOTICED} | (NOTICED_ELSEWHERE & names) == names


def test_the_script_tells_what_arrived() -> None:
    answer = scripted_provider(HttpRequest("PUT", f"{OPEN}/echo?a=1", {"X-A": "b"}, b"\xff"))
    told = {"method": "PUT", "query": {"a": "1"}, "headers": {"x-a": "b"}, "body": "ff"}
    assert json.loads(answer.response.body) == told


def test_the_script_knows_nothing_else() -> None:
    assert scripted_provider(HttpRequest("GET", f"{OPEN}/other")).response.status == 404
