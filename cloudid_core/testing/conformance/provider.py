"""Checks of provider calls, against a small scripted provider that tests serve over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from math import inf
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from attrs import frozen

from ...effects import CallProvider, HttpRequest, HttpResponse, Now, together
from ...errors import ProviderUnreachable
from .check import Check, NotConforming, checks_with, expect

TIMEOUT: Final = 60.0
SHORT: Final = 0.2
MOST_SKEW: Final = 60.0
EVERY_BYTE: Final = bytes(range(256))


@frozen
class Scripted:
    """An answer of the scripted provider: `delay` may be endless; `drop`: the connection breaks without an answer.

    `trickles`: its body comes byte by byte, and never to its end.
    """

    response: HttpResponse
    delay: float = 0.0
    drop: bool = False
    trickles: bool = False


def scripted_provider(request: HttpRequest) -> Scripted:
    """What the checks want of a provider, for a `World` or to be served over HTTP.

    `/echo` returns as JSON what arrived, `/bytes` answers all bytes, `/silent` never answers, and `/trickle` answers
    byte by byte without end. `/broken` breaks the connection, `/cookie` sets a cookie, `/redirect` leads to `/echo`,
    and `/status/N` answers with that status.
    """
    url = urlsplit(request.url)
    match url.path.strip("/").split("/"):
        case ["echo"]:
            told = {
                "method": request.method,
                "query": dict(parse_qsl(url.query, keep_blank_values=True)),
                "headers": {name.lower(): value for name, value in request.headers.items()},
                "body": request.body.hex(),
            }
            return Scripted(HttpResponse(200, {"content-type": "application/json"}, json.dumps(told).encode()))
        case ["bytes"]:
            return Scripted(HttpResponse(200, {"content-type": "application/octet-stream"}, EVERY_BYTE))
        case ["silent"]:
            return Scripted(HttpResponse(200), delay=inf)
        case ["broken"]:
            return Scripted(HttpResponse(200), drop=True)
        case ["trickle"]:
            return Scripted(HttpResponse(200), delay=inf, trickles=True)
        case ["cookie"]:
            return Scripted(HttpResponse(200, {"set-cookie": "session=1; Path=/"}))
        case ["redirect"]:
            return Scripted(HttpResponse(302, {"location": f"{url.scheme}://{url.netloc}/echo"}))
        case ["status", status]:
            return Scripted(HttpResponse(int(status), {"retry-after": "7"}, b"a body all the same"))
        case _:
            return Scripted(HttpResponse(404))


async def call(url: str, method: str = "GET", timeout: float = TIMEOUT, **given: Any) -> HttpResponse:
    return await CallProvider(HttpRequest(method, url, **given), timeout)


async def was_sent(url: str, timeout: float) -> bool:
    """What the failure of a call says about it."""
    try:
        response = await call(url, timeout=timeout)
    except ProviderUnreachable as failure:
        return failure.sent
    raise NotConforming(f"status {response.status} where no answer is right")


async def a_request_arrives_as_it_was_asked_for(url: str) -> None:
    """Method, path and query untouched, every header, and every byte of the body."""
    for method, body in (
        ("GET", b""),
        ("POST", EVERY_BYTE),
        ("PATCH", b"{}"),
        ("PUT", b"x" * 100_000),
        ("DELETE", b""),
    ):
        headers = {"authorization": "Bearer abc", "x-check": "a, b"}
        response = await call(f"{url}/echo?a=b%2Fc%20d&e=", method, headers=headers, body=body)
        told = json.loads(response.body)
        expect("the method", told["method"], method)
        expect("the query", told["query"], {"a": "b/c d", "e": ""})
        expect("the headers", {name: told["headers"].get(name) for name in headers}, headers)
        expect("the body", told["body"], body.hex())


async def a_body_comes_back_as_bytes(url: str) -> None:
    response = await call(f"{url}/bytes")
    expect("the body", response.body, EVERY_BYTE)
    expect("the type", response.headers.get("content-type"), "application/octet-stream")


async def any_status_is_an_answer(url: str) -> None:
    """With its body, and header names in lower case; nothing is tried again."""
    for status in (201, 400, 401, 404, 429, 500, 503):
        response = await call(f"{url}/status/{status}")
        expect("the status", response.status, status)
        expect("the body", response.body, b"a body all the same")
        expect("a header", response.headers.get("retry-after"), "7")


async def a_redirect_is_not_followed(url: str) -> None:
    response = await call(f"{url}/redirect")
    expect("the status", response.status, 302)
    expect("whether it says where", "location" in response.headers, True)


async def silence_ends_at_the_timeout(url: str) -> None:
    """The request may have been worked on."""
    before = await Now()
    expect("whether a request without answer was sent", await was_sent(f"{url}/silent", SHORT), True)
    if await Now() - before > TIMEOUT:
        raise NotConforming("the timeout was not kept")


async def a_broken_connection_may_have_sent_the_request(url: str) -> None:
    expect("whether a request without answer was sent", await was_sent(f"{url}/broken", TIMEOUT), True)


async def an_answer_that_trickles_ends_at_the_timeout(url: str) -> None:
    """The time is that of the whole call, not of each byte."""
    expect("whether a request whose answer never ends was sent", await was_sent(f"{url}/trickle", SHORT), True)


async def no_cookie_is_kept(url: str) -> None:
    await call(f"{url}/cookie")
    told = json.loads((await call(f"{url}/echo")).body)
    expect("the cookie of a later call", told["headers"].get("cookie"), None)


async def the_clock_is_that_of_others(url: str) -> None:
    """Of the provider, as its answers say; tokens and their ends depend on it."""
    date = (await call(f"{url}/bytes")).headers.get("date")
    now = await Now()
    if date is not None and abs(parsedate_to_datetime(date).timestamp() - now) > MOST_SKEW:
        raise NotConforming(f"the clock is {now - parsedate_to_datetime(date).timestamp():+.0f} seconds off")


async def a_call_that_may_not_be_repeated_is_sent_once(calls: Calls) -> None:
    """Also when the connection breaks before an answer: the provider may have done what it was asked for."""
    for method in ("POST", "PATCH"):
        before = calls.count(method)
        for _ in range(3):
            await was_not_answered(f"{calls.url}/broken", method)
        expect(
            f"how often three {method} requests arrive at a provider that breaks connections",
            calls.count(method) - before,
            3,
        )


async def was_not_answered(url: str, method: str) -> None:
    try:
        await call(url, method, body=b"{}", idempotent=False)
    except ProviderUnreachable:
        return
    raise NotConforming("an answer where the connection breaks")


async def a_certificate_that_is_not_trusted_is_refused(url: str) -> None:
    expect(
        "whether a request was sent to a server whose certificate is not trusted", await was_sent(url, TIMEOUT), False
    )


async def a_refused_connection_sent_nothing(url: str) -> None:
    expect("whether a request was sent to an address without a listener", await was_sent(f"{url}/echo", TIMEOUT), False)


async def calls_run_side_by_side(url: str) -> None:
    """A call that waits for its answer keeps no other call waiting."""

    async def is_answered() -> int:
        return (await call(f"{url}/bytes")).status

    sent, status = await together(was_sent(f"{url}/silent", SHORT), is_answered())
    expect("the two outcomes", (sent, status), (True, 200))


@frozen
class Calls:
    """A scripted provider that counts the requests it gets."""

    url: str
    count: Callable[[str], int]
    """How many requests with a method have arrived."""


def served_provider_checks(calls: Calls, untrusted_url: str) -> tuple[Check, ...]:
    """Checks that need to know what arrived, and a provider at `untrusted_url` with a certificate of its own."""
    counted = checks_with(calls, a_call_that_may_not_be_repeated_is_sent_once)
    return (*counted, *checks_with(untrusted_url, a_certificate_that_is_not_trusted_is_refused))


def provider_checks(url: str, closed_url: str) -> tuple[Check, ...]:
    """Checks against the scripted provider at `url`, and an address without a listener; neither ends in a slash."""
    answered = checks_with(
        url,
        a_request_arrives_as_it_was_asked_for,
        a_body_comes_back_as_bytes,
        any_status_is_an_answer,
        a_redirect_is_not_followed,
        silence_ends_at_the_timeout,
        a_broken_connection_may_have_sent_the_request,
        calls_run_side_by_side,
        an_answer_that_trickles_ends_at_the_timeout,
        no_cookie_is_kept,
        the_clock_is_that_of_others,
    )
    return (*answered, *checks_with(closed_url, a_refused_connection_sent_nothing))
