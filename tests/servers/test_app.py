"""The application on both runtimes: answers that cannot be delivered are given back, at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from typing import Any, Final

import pytest

from cloudid_core.effects import Instant, Now, Sleep
from cloudid_core.errors import Code, Refused, StoreFailed
from cloudid_core.messages.response import Request, Response, render_refusal
from cloudid_servers.host import app
from cloudid_servers.host.app import App
from cloudid_servers.host.host import Host
from cloudid_servers.http1.heads import Head
from cloudid_servers.logs.logs import open_log
from tests.hosts.opened import RUNTIMES, on
from tests.waiting import until

from .handling import Handling

pytestmark = pytest.mark.parametrize("runtime", RUNTIMES)
FAR: Final = 3600.0
STEP: Final = 0.01
HOLDING: Final = Response(200, b"{}\n", holds="a lease")


class Lending(Handling):
    """A service whose answers hold a lease. It notes what it was asked for."""

    def __init__(self, failure: Exception | None = None, pause: float = 0.0) -> None:
        self.asked: list[str] = []
        self.stops = 0
        self._failure = failure
        self._pause = pause

    async def handle(self, request: Request) -> Response:
        if self._failure:
            raise self._failure
        return HOLDING

    async def limit_in_time(self, head: Request) -> int:
        if self._failure:
            raise self._failure
        return 4096

    async def undelivered(self, response: Response) -> None:
        await Sleep(self._pause)
        if self._failure:
            raise self._failure
        self.asked.append(f"undelivered {response.holds}")

    async def tick(self) -> Instant:
        self.asked.append("tick")
        return await Now() + FAR

    async def stop(self) -> None:
        await Sleep(self._pause)
        self.stops += 1
        if self._failure:
            raise self._failure

    async def upkeep(self) -> Instant:
        return await Now() + FAR


def run_app(runtime: str, service: Lending, scenario: Callable[[App, Host], Coroutine[Any, Any, None]]) -> None:
    """The scenario, once the first round of background work is over; then the application finishes."""
    full = os.open("/dev/full", os.O_WRONLY)

    async def opened(host: Host) -> None:
        app = App(service, host, open_log("debug", full), ())
        await until(host.sleep, lambda: "tick" in service.asked)
        await scenario(app, host)
        await app.finish()

    on(runtime, opened)
    os.close(full)


class Storeless(Lending):
    """A service whose store takes no writes. It notes each look."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    async def handle(self, request: Request) -> Response:
        return render_refusal(Refused(Code.STORE_UNAVAILABLE))

    async def upkeep(self) -> Instant:
        self.looks += 1
        return await Now() + FAR


def test_the_store_is_looked_at_soon_after_a_request_that_it_failed(runtime: str) -> None:
    """Health rests on that look. Many such requests lead to one look a second."""
    service = Storeless()

    async def scenario(app: App, host: Host) -> None:
        for _ in range(20):
            await app.answer(app.begin(Head("GET", "/v1/x", {}, closes=False), b"", "127.0.0.1"))
        assert service.looks == 1
        await until(host.sleep, lambda: service.looks == 2)

    run_app(runtime, service, scenario)


async def lose(app: App) -> None:
    with pytest.raises(ConnectionError), app.delivering(HOLDING):
        raise ConnectionResetError


def test_background_work_follows_an_undelivered_answer_at_once(runtime: str) -> None:
    service = Lending()

    async def scenario(app: App, host: Host) -> None:
        await lose(app)
        await until(host.sleep, lambda: len(service.asked) == 3)

    run_app(runtime, service, scenario)
    assert service.asked == ["tick", "undelivered a lease", "tick"]


def test_a_cancelled_delivery_is_given_back(runtime: str) -> None:
    service = Lending()

    async def deliver(app: App) -> None:
        with app.delivering(HOLDING):
            await Sleep(FAR)

    async def scenario(app: App, host: Host) -> None:
        program = deliver(app)
        program.send(None)
        program.close()

    run_app(runtime, service, scenario)
    assert service.asked[:2] == ["tick", "undelivered a lease"]


def test_a_delivered_answer_is_not_given_back(runtime: str) -> None:
    service = Lending()

    async def scenario(app: App, host: Host) -> None:
        with app.delivering(HOLDING):
            pass
        await host.sleep(5 * STEP)

    run_app(runtime, service, scenario)
    assert service.asked == ["tick"]


def test_a_server_that_ends_waits_for_what_is_given_back(runtime: str) -> None:
    service = Lending(pause=20 * STEP)

    async def scenario(app: App, host: Host) -> None:
        await lose(app)
        await lose(app)

    run_app(runtime, service, scenario)
    assert service.asked.count("undelivered a lease") == 2


def test_giving_back_may_fail(runtime: str) -> None:
    service = Lending(failure=StoreFailed("disk full"))

    async def scenario(app: App, host: Host) -> None:
        await lose(app)

    run_app(runtime, service, scenario)
    assert service.asked == ["tick"]


@pytest.mark.parametrize("failure", [None, StoreFailed("disk full")])
def test_a_server_that_ends_hands_the_background_work_over_once(runtime: str, failure: Exception | None) -> None:
    """When that fails, it ends all the same."""

    async def scenario(app: App, host: Host) -> None:
        assert service.stops == 0

    service = Lending(failure)
    run_app(runtime, service, scenario)
    assert service.stops == 1


def test_a_server_that_ends_waits_for_the_store_for_some_seconds_only(
    runtime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "STOP_SECONDS", STEP)

    async def scenario(app: App, host: Host) -> None:
        """The service takes an hour to stop."""

    service = Lending(pause=FAR)
    run_app(runtime, service, scenario)
    assert service.stops == 0


@pytest.mark.parametrize("failure, status", [(None, 200), (LookupError("a bug"), 500)])
def test_a_request_is_answered_though_its_log_line_cannot_be_written(
    runtime: str, failure: Exception | None, status: int
) -> None:
    service = Lending(failure)

    async def scenario(app: App, host: Host) -> None:
        head = Head("GET", "/v1/cloud/creds/app", {}, closes=False)
        assert (await app.answer(app.begin(head, b"", "127.0.0.1"))).status == status

    run_app(runtime, service, scenario)
