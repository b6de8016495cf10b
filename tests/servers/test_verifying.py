"""Verification with keys that are fetched over HTTP: the page's programs, threads, asyncio and trio."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import anyio
import httpx
import pytest
from attrs import define, field

from cloudid_core.effects import HttpRequest, HttpResponse
from cloudid_core.testing.conformance import Scripted
from cloudid_core.verify import Admitted, MachineFacts, RefusalCode, Refused, Verdict, Verifier
from cloudid_servers.provider_simulator import Simulator, start
from cloudid_servers.verify import LONGEST_KEY_SET, AsyncVerifier, ThreadVerifier
from tests.core.verify.test_verifier import HOSTILE, ORDERS, jwks
from tests.hosts.opened import RUNTIMES, serving
from tests.minting import AUDIENCE, HEADER, KEY_ID, NOW, PRINCIPAL, TENANT, VM, mint, said
from tests.pages.blocks import python_of
from tests.waiting import PATIENT

from .story import identity

PROGRAM, RING, FACTS = python_of("docs/how-to/verify-only.md")
CALLERS: Final = 12
RUNNERS: Final = ("threads", *RUNTIMES)


@define
class Publisher:
    """Publishes a tenant's keys, and counts how often they are fetched."""

    body: bytes = field(factory=lambda: published(KEY_ID))
    status: int = 200
    fetches: int = 0
    delay: float = 0.0

    def answer(self, request: HttpRequest) -> Scripted:
        self.fetches += 1
        return Scripted(HttpResponse(self.status, {}, self.body), self.delay)


def published(*kids: str) -> bytes:
    return json.dumps(jwks(*kids)).encode()


def token(kid: str = KEY_ID, **claims: Any) -> str:
    return mint(said(**claims), header={**HEADER, "kid": kid}, key=kid)


@define
class Clock:
    now: float = NOW

    def __call__(self) -> float:
        return self.now


def verifier_at(url: str) -> Verifier:
    """A verifier whose keys are published there, for tokens of the real issuer."""
    issuers = [f"https://sts.windows.net/{TENANT}/"]
    given: dict[str, Any] = {"tenant_id": TENANT, "authority": url, "issuers": issuers, "audience": AUDIENCE}
    return Verifier(**given, bound_service_principal_ids=[PRINCIPAL])


@define(slots=False)
class Callers:
    """Verifies tokens in threads, or on an event loop, at the same time."""

    verifier: Verifier
    runner: str
    clock: Clock

    def __attrs_post_init__(self) -> None:
        kind = ThreadVerifier if self.runner == "threads" else AsyncVerifier
        self.shell: Any = kind(self.verifier, clock=self.clock)

    def verify(self, *tokens: str) -> list[Verdict]:
        if self.runner == "threads":
            with ThreadPoolExecutor(len(tokens)) as pool:
                return list(pool.map(self.shell.verify, tokens))
        verdicts: dict[int, Verdict] = {}

        async def one(number: int) -> None:
            verdicts[number] = await self.shell.verify(tokens[number])

        async def all_of_them() -> None:
            async with anyio.create_task_group() as group:
                for number in range(len(tokens)):
                    group.start_soon(one, number)

        anyio.run(all_of_them, backend=self.runner)
        return [verdicts[number] for number in range(len(tokens))]


@pytest.fixture(params=RUNNERS)
def site(request: pytest.FixtureRequest) -> Iterator[tuple[Publisher, Callers]]:
    publisher = Publisher()
    with serving(publisher.answer) as url:
        yield publisher, Callers(verifier_at(url), request.param, Clock())


def codes(verdicts: list[Verdict]) -> set[RefusalCode | None]:
    return {verdict.code if isinstance(verdict, Refused) else None for verdict in verdicts}


def test_callers_at_the_start_wait_for_one_fetch(site: tuple[Publisher, Callers]) -> None:
    publisher, callers = site
    publisher.delay = 0.2
    assert codes(callers.verify(*[token()] * CALLERS)) == {None}
    assert publisher.fetches == 1


def test_callers_with_rotated_keys_wait_for_one_fetch(site: tuple[Publisher, Callers]) -> None:
    publisher, callers = site
    callers.verify(token())
    publisher.body, publisher.delay, callers.clock.now = published(KEY_ID, "newer"), 0.2, NOW + 60
    assert codes(callers.verify(*[token("newer")] * CALLERS)) == {None}
    assert publisher.fetches == 2


def test_strangers_with_invented_keys_cause_one_fetch_in_30_seconds(site: tuple[Publisher, Callers]) -> None:
    publisher, callers = site
    callers.verify(token())
    callers.clock.now += 30
    for _ in range(3):
        assert codes(callers.verify(*[token("other")] * CALLERS)) == {RefusalCode.KEY_UNKNOWN}
    assert publisher.fetches == 2


@pytest.mark.parametrize("body", [b"", b"<html>", b" " * (LONGEST_KEY_SET + 1), b'{"keys": []}'])
@pytest.mark.parametrize("status", [200, 500])
def test_keys_stay_when_a_fetch_fails(site: tuple[Publisher, Callers], status: int, body: bytes) -> None:
    publisher, callers = site
    callers.verify(token())
    publisher.status, publisher.body, callers.clock.now = status, body, NOW + 23 * 3600
    text = token(exp=NOW + 48 * 3600)
    assert codes(callers.verify(text)) == {None}
    assert publisher.fetches == 2
    callers.clock.now = NOW + 24 * 3600
    assert codes(callers.verify(text)) == {RefusalCode.KEYS_UNAVAILABLE}
    publisher.status, publisher.body, callers.clock.now = 200, published(KEY_ID), NOW + 25 * 3600
    assert codes(callers.verify(text)) == {None}


@pytest.mark.parametrize("runner", RUNNERS)
def test_without_a_key_server_the_answer_is_503(runner: str) -> None:
    with serving() as url:
        pass
    [verdict] = Callers(verifier_at(url), runner, Clock()).verify(token())
    assert isinstance(verdict, Refused)
    assert (verdict.code, verdict.status) == (RefusalCode.KEYS_UNAVAILABLE, 503)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_cancelled_fetch_keeps_no_one_waiting(runtime: str) -> None:
    publisher = Publisher(delay=3600.0)

    async def scenario(shell: AsyncVerifier) -> Verdict:
        with anyio.move_on_after(0.2):
            await shell.verify(token())
        return await shell.verify(token())

    with serving(publisher.answer) as url:
        verdict = anyio.run(scenario, AsyncVerifier(verifier_at(url), clock=Clock()), backend=runtime)
    assert codes([verdict]) == {RefusalCode.KEYS_UNAVAILABLE}


@pytest.fixture
def cloud() -> Iterator[str]:
    with start(Simulator()) as simulator:
        yield simulator.url


def world(cloud: str) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{cloud}/simulator/world", **PATIENT).json()
    return found


def rotate(cloud: str) -> None:
    httpx.post(f"{cloud}/simulator/keys/rotate", json={"remove_old": True}, **PATIENT).raise_for_status()


def loaded(cloud: str, block: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that a program of the page defines, in the simulated tenant."""
    monkeypatch.setenv("TENANT_ID", world(cloud)["tenant"])
    monkeypatch.setenv("AUTHORITY", f"{cloud}/login")
    names: dict[str, Any] = {"__name__": "orders"}
    exec(block, names)
    return names


Ask = Callable[[str], Awaitable[httpx.Response]]


def asking(app: Any, scenario: Callable[[Ask], Awaitable[None]]) -> None:
    async def run() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://orders") as client:

            async def ask(shown: str) -> httpx.Response:
                return await client.get("/orders", headers={"authorization": f"Bearer {shown}"})

            await scenario(ask)

    asyncio.run(run())


def test_the_program_of_the_page_survives_a_rotation_of_keys(cloud: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names, clock = loaded(cloud, PROGRAM, monkeypatch), Clock(time.time())
    names["callers"]._clock = clock

    async def scenario(ask: Ask) -> None:
        before = identity(cloud, "web", resource=ORDERS)
        assert (await ask(before)).status_code == 200
        for _ in range(2):
            await anyio.to_thread.run_sync(rotate, cloud)
            after = identity(cloud, "web", resource=ORDERS)
            assert (await ask(after)).status_code == 401, "keys were fetched less than 30 seconds ago"
            clock.now += 31
            assert (await ask(after)).status_code == 200
            assert (await ask(before)).status_code == 401, "its key was withdrawn"

    asking(names["app"], scenario)


def test_the_program_of_the_page_answers_as_rfc_6750_says(cloud: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = [text for text in (make() for make, _ in HOSTILE.values()) if text.isascii()]

    async def scenario(ask: Ask) -> None:
        wrong = await ask(identity(cloud, "web", resource="api://other"))
        assert wrong.status_code == 401
        assert wrong.headers["www-authenticate"].startswith('Bearer error="invalid_token"')
        assert wrong.json()["detail"].startswith("jwt_audience_mismatch: ")
        for text in hostile:
            assert (await ask(text)).status_code == 401

    asking(loaded(cloud, PROGRAM, monkeypatch)["app"], scenario)


def test_the_ring_of_the_page_fetches_keys(cloud: str) -> None:
    tenant = world(cloud)["tenant"]
    block = RING.replace("d139e43a-d8e3-4eb1-9321-87d0bdd0ee10", tenant)
    block = block.replace('audience="api://orders"', f'audience="api://orders", authority="{cloud}/login"')
    names: dict[str, Any] = {}
    exec(block, names)
    verdict = names["verdict_on"](identity(cloud, "web", resource=ORDERS))
    assert codes([verdict]) == {RefusalCode.APPLICATION_ROLE_MISSING}


def test_the_facts_of_the_page_are_passed_on() -> None:
    names: dict[str, Any] = {}
    exec(FACTS, names)
    asked: list[str] = []

    def look_up(machine: str) -> MachineFacts:
        asked.append(machine)
        return MachineFacts(location="westeurope", principals=[PRINCIPAL])

    publisher = Publisher()
    with serving(publisher.answer) as url:
        issuers = [f"https://sts.windows.net/{TENANT}/"]
        verifier = Verifier(
            tenant_id=TENANT, authority=url, issuers=issuers, audience=AUDIENCE, bound_locations=["westeurope"]
        )
        verdict = names["verdict_with_facts"](ThreadVerifier(verifier, clock=Clock()), token(), look_up)
    assert isinstance(verdict, Admitted)
    assert asked == [VM]
