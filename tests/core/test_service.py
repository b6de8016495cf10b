"""The service, as a host sees it."""

from __future__ import annotations

from contextlib import nullcontext
from typing import NoReturn

import msgspec
import pytest

from cloudid_core import Request, Response, Secret, Service, Settings, initialise, open_service, run_now
from cloudid_core.dispatch import UNASKED
from cloudid_core.errors import EntryDamaged, RecordFailed, Refused, StoreFailed
from cloudid_core.events import Event, LeadershipTaken, RequestAnswered
from cloudid_core.health.node import SEVERAL
from cloudid_core.health.problems import HealthProblem
from cloudid_core.store import keys

from .never_waits import NeverWaits

SETTINGS = Settings(master_key=Secret("5a" * 32))
LOOK_UP = Request("GET", "/v1/auth/token/lookup-self", {"x-service-token": "root"})


class Troubled(NeverWaits):
    """A host whose parts fail when they are told to."""

    failure: Exception | None = None
    fails_in = ""

    async def read_entry(self, key: str):  # type: ignore[no-untyped-def]  # as the base class
        if self.failure and self.fails_in == "store":
            raise self.failure
        return await super().read_entry(key)

    async def record(self, event: Event) -> None:
        if self.failure and self.fails_in == "audit":
            raise self.failure
        await super().record(msgspec.structs.replace(event, audit=None))  # its devices take everything


def _open(host: NeverWaits) -> Service:
    run_now(initialise(SETTINGS, Secret("root")), host)
    return run_now(open_service(SETTINGS), host)


def _codes(response: Response) -> list[str]:
    codes: list[str] = msgspec.json.decode(response.body)["codes"]
    return codes


def test_every_answer_has_a_request_id_of_its_own() -> None:
    host = NeverWaits()
    service = _open(host)
    ids = [msgspec.json.decode(run_now(service.handle(LOOK_UP), host).body)["request_id"] for _ in range(2)]
    assert len(set(ids)) == 2


@pytest.mark.parametrize(
    "fails_in, failure, status, code",
    [
        ("audit", RecordFailed("disk full"), 503, "audit_unavailable"),
        ("store", StoreFailed("gone"), 503, "store_unavailable"),
        ("store", ZeroDivisionError("secret-canary"), 500, "internal_error"),
    ],
)
def test_what_goes_wrong_is_answered_and_told_to_the_host(
    fails_in: str, failure: Exception, status: int, code: str
) -> None:
    """A host's failure is 503, a bug 500; the failure itself is for the host's log, and never in the answer."""
    host = Troubled()
    service = _open(host)
    host.fails_in, host.failure = fails_in, failure
    response = run_now(service.handle(LOOK_UP), host)
    assert (response.status, _codes(response), response.failure) == (status, [code], failure)
    assert b"canary" not in response.body


def test_a_request_that_finds_no_store_is_recorded_with_its_path() -> None:
    host = Troubled()
    service = _open(host)
    host.fails_in, host.failure = "store", StoreFailed("gone")
    run_now(service.handle(LOOK_UP), host)
    answered = host.events[-1]
    assert isinstance(answered, RequestAnswered)
    assert (answered.operation, answered.path, answered.status) == ("read", "auth/token/lookup-self", 503)


def test_nothing_is_answered_that_could_not_be_recorded() -> None:
    """The request is recorded before its program runs: nothing has been done when that fails."""
    host = Troubled()
    service = _open(host)
    headers = {"x-service-token": "root"}
    device = b'{"type":"file","options":{"file_path":"/dev/null"}}'
    assert run_now(service.handle(Request("PUT", "/v1/sys/audit/file", headers, device)), host).status == 204
    host.fails_in, host.failure = "audit", RecordFailed("disk full")
    write = Request("POST", "/v1/auth/cloud/config", headers, b'{"tenant_id":"t","resource":"r"}')
    before = host.store.revision
    assert run_now(service.handle(write), host).status == 503
    assert host.store.revision == before


@pytest.mark.parametrize("work", ["tick", "upkeep"])
def test_background_work_that_fails_again_and_again_is_in_health(work: str) -> None:
    host = Troubled()
    service = _open(host)
    for round_ in range(2 * SEVERAL):
        is_failing = round_ < SEVERAL
        host.fails_in, host.failure = ("store", StoreFailed("gone")) if is_failing else ("", None)
        with pytest.raises(StoreFailed) if is_failing else nullcontext():
            run_now(getattr(service, work)(), host)
        is_told = HealthProblem.BACKGROUND_FAILING in service.context.node.problems
        assert is_told == (round_ == SEVERAL - 1)


def test_a_damaged_entry_does_not_keep_other_steps_of_a_round_from_running() -> None:
    """The first step cannot read who leads. Health rests on the last one, the look at what is stored."""
    host = NeverWaits()
    service = _open(host)
    host.store.commit({}, {keys.LEADER_TERM: b"damaged", keys.applied("shop"): b"of an earlier version"}, ())
    with pytest.raises(EntryDamaged):
        run_now(service.upkeep(), host)
    assert HealthProblem.APPLIED_RECORD_UNADOPTED in service.context.node.problems


def test_a_wrong_master_key_opens_nothing() -> None:
    host = NeverWaits()
    _open(host)
    with pytest.raises(Refused, match="sealed"):
        run_now(open_service(Settings(master_key=Secret("00" * 32))), host)


def test_an_empty_store_is_told_from_a_sealed_one() -> None:
    with pytest.raises(Refused, match="not initialised"):
        run_now(open_service(SETTINGS), NeverWaits())


@pytest.mark.parametrize("name", ["X-Service-Token", "X-VAULT-TOKEN", "x-service-token", "Authorization"])
def test_names_of_headers_have_any_case(name: str) -> None:
    """Also where the longest body is asked for."""
    host = NeverWaits()
    service = _open(host)
    value = "Bearer root" if name == "Authorization" else "root"
    request = Request("GET", "/v1/sys/mounts", {name: value})
    assert run_now(service.handle(request), host).status == 200
    assert run_now(service.handle(Request("GET", "/v1/sys/mounts", {name: "other"})), host).status == 403
    long = Request("POST", "/v1/sys/policies/acl/a", {name: value})
    assert run_now(service.body_limit(long), host) > UNASKED


def test_header_names_that_a_host_has_folded_are_not_looked_at() -> None:
    class Unread(dict[str, str]):
        def items(self) -> NoReturn:
            raise AssertionError

    request = Request("GET", "/v1/sys/health", Unread(), is_folded=True)
    assert request.folded is request
    host = NeverWaits()
    assert run_now(_open(host).handle(request), host).status == 200


def test_a_host_asks_with_a_token_that_is_stored_nowhere() -> None:
    host = NeverWaits()
    service = _open(host)
    before = host.store.revision
    shown = run_now(service.make_token("apply", ("Default",), 60), host)
    answer = run_now(
        service.handle(msgspec.structs.replace(LOOK_UP, headers={"x-service-token": shown.reveal()})), host
    )
    data = msgspec.json.decode(answer.body)["data"]
    assert (data["display_name"], data["policies"], data["type"], data["ttl"]) == ("apply", ["default"], "batch", 60)
    assert host.store.revision == before


def test_a_service_leads_from_its_first_round_until_it_stops_and_tells_it_once() -> None:
    host = NeverWaits()
    service = _open(host)

    def leads() -> bool:
        return run_now(service.leads(), host)

    assert not leads()
    for _ in range(2):
        run_now(service.tick(), host)
        assert leads()
    assert sum(isinstance(event, LeadershipTaken) for event in host.events) == 1
    run_now(service.stop(), host)
    assert not leads()
