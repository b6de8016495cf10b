"""Certificates of applications, at the simulated cloud."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import evolve
from msgspec.structs import replace

from cloudid_core.credentials.application_keys import self_signed
from cloudid_core.deadline import Deadline
from cloudid_core.effects import HttpRequest, HttpResponse, Program
from cloudid_core.errors import ProviderAmbiguous, ProviderProblem, ProviderUnreachable, Refused
from cloudid_core.provider.certificates import add_certificate, remove_certificate
from cloudid_core.provider.client import Client
from cloudid_core.testing.rsa_keys import private_key_pem
from cloudid_core.values import Secret
from cloudid_servers.provider_simulator import Answer
from cloudid_servers.provider_simulator.world.objects import Application

from .cloud import START
from .test_simulated import Simulated

DER = self_signed(Secret(private_key_pem("key 0 of a world")), 1, START - 60, START + 60)
NOBODY = "5f0b0c5e-0000-4000-8000-000000000000"


LONGEST_DELAY = 20


@pytest.fixture
def simulated() -> Simulated:
    """Its second application has no certificate."""
    simulated = Simulated()
    empty_list(simulated)
    return simulated


def application_of(simulated: Simulated) -> str:
    object_id: str = simulated.scene["applications"][1]["object_id"]
    return object_id


def stands(simulated: Simulated) -> Application:
    application = simulated.simulator.world.directory.applications.get(application_of(simulated))
    assert application is not None
    return application


def names(simulated: Simulated) -> list[str | None]:
    return [one.display_name for one in stands(simulated).certificates]


def empty_list(simulated: Simulated) -> None:
    """Somebody else removes all."""
    without = evolve(stands(simulated), certificates=())
    simulated.simulator.world.directory.applications.put(application_of(simulated), without)


def within(simulated: Simulated, seconds: float) -> Client:
    """The client of a request that has so long from now."""
    return replace(simulated.client, deadline=Deadline(simulated.world.clock + seconds))


def adding(simulated: Simulated, name: str, der: bytes = DER, seconds: float = 90) -> Program[None]:
    return add_certificate(
        within(simulated, seconds),
        application_of(simulated),
        name=name,
        key_id=f"{len(name):08}-0000-4000-8000-000000000000",
        der=der,
        starts_at=START - 60,
        ends_at=START + 60,
    )


def add(simulated: Simulated, name: str, seconds: float = 90) -> None:
    simulated.world.perform(adding(simulated, name, seconds=seconds))


def remove(simulated: Simulated, name: str, object_id: str = "") -> bool:
    removing = remove_certificate(within(simulated, 90), object_id or application_of(simulated), name)
    return simulated.world.perform(removing)


def pass_settle_time(simulated: Simulated) -> None:
    simulated.world.advance(simulated.client.settings.settle_time + 1)


def lag(simulated: Simulated) -> None:
    """What is read is that old."""
    simulated.control("POST", "/simulator/behaviour", {"delays": {"reads": LONGEST_DELAY}})


def delay_answers(simulated: Simulated, seconds: float) -> None:
    handle = simulated.simulator.handle

    def handle_slowly(request: HttpRequest) -> Answer:
        return evolve(handle(request), delay=seconds)

    simulated.world.provider = handle_slowly


def entries(simulated: Simulated) -> tuple[str, ...]:
    return simulated.world.store.list("", "", 10)


def test_each_is_added_and_removed_beside_the_others(simulated: Simulated) -> None:
    for name in ("a", "bb", "ccc"):
        add(simulated, name)
    assert [remove(simulated, "bb"), remove(simulated, "bb"), remove(simulated, "a", NOBODY)] == [True, False, False]
    assert names(simulated) == ["a", "ccc"]


def test_what_is_removed_meanwhile_does_not_come_back(simulated: Simulated) -> None:
    """The list that is written back was read before somebody removed one of it."""
    add(simulated, "a")
    pass_settle_time(simulated)
    handle = simulated.simulator.handle
    written: list[HttpRequest] = []

    def meanwhile(request: HttpRequest) -> Answer:
        if request.method == "PATCH":
            if not written:
                empty_list(simulated)
            written.append(request)
        return handle(request)

    simulated.world.provider = meanwhile
    add(simulated, "bb")
    assert names(simulated) == ["bb"]
    assert len(written) == 2


def test_a_refusal_that_nobody_else_caused_is_raised(simulated: Simulated) -> None:
    with pytest.raises(ProviderProblem):
        simulated.world.perform(adding(simulated, "a", b"no certificate"))
    assert (names(simulated), entries(simulated)) == ([], ())


def test_a_list_that_azure_refuses_for_good_is_given_up_after_three_tries(simulated: Simulated) -> None:
    """Its own certificate of another party may not be sent back, so no try succeeds: the deadline is far away."""
    add(simulated, "a")
    pass_settle_time(simulated)
    handle, written = simulated.simulator.handle, list[HttpRequest]()

    def refusing(request: HttpRequest) -> Answer:
        if request.method == "PATCH":
            written.append(request)
            request = evolve(request, body=b'{"keyCredentials": [{"keyId": "unknown", "type": "x", "usage": "y"}]}')
        return handle(request)

    simulated.world.provider = refusing
    started = simulated.world.clock
    with pytest.raises(ProviderProblem):
        add(simulated, "bb")
    assert len(written) == 3
    assert simulated.world.clock - started < 15


@pytest.mark.parametrize("change, left", [(add, ["a", "bb", "ccc"]), (remove, ["a", "bb"])])
def test_a_list_is_not_written_back_before_it_shows_the_latest(
    simulated: Simulated, change: Callable[[Simulated, str], object], left: list[str]
) -> None:
    if change is remove:
        add(simulated, "ccc")
    add(simulated, "a")
    lag(simulated)
    add(simulated, "bb")
    since = simulated.world.clock
    change(simulated, "ccc")
    assert names(simulated) == left
    assert simulated.world.clock >= since + LONGEST_DELAY


def test_one_that_stays_away_is_not_waited_for_after_the_settle_time(simulated: Simulated) -> None:
    add(simulated, "a")
    empty_list(simulated)
    with pytest.raises(Refused, match="does not show all certificates"):
        add(simulated, "bb")
    pass_settle_time(simulated)
    add(simulated, "bb")
    assert names(simulated) == ["bb"]


def test_changes_at_the_same_time_wait_for_each_other(simulated: Simulated) -> None:
    delay_answers(simulated, 2)
    tasks = [simulated.world.spawn(adding(simulated, name)) for name in ("a", "bb", "ccc")]
    simulated.world.settle()
    for task in tasks:
        task.result()
    assert sorted(filter(None, names(simulated))) == ["a", "bb", "ccc"]


def test_a_change_whose_end_nobody_knows_is_waited_for_as_long_as_its_call_may_be_under_way(
    simulated: Simulated,
) -> None:
    delay_answers(simulated, 2)
    simulated.world.spawn(adding(simulated, "a", seconds=10))
    simulated.world.advance(5)
    simulated.world.crash()
    with pytest.raises(Refused, match="in progress"):
        add(simulated, "bb", seconds=10)
    simulated.world.advance(simulated.client.settings.request_grace)
    add(simulated, "bb")
    assert names(simulated) == ["a", "bb"]


@pytest.mark.parametrize("status", [403, 404, 503])
def test_a_change_without_an_answer_stays_one_when_the_list_cannot_be_read_either(
    simulated: Simulated, status: int
) -> None:
    handle = simulated.simulator.handle

    def lose_the_answer(request: HttpRequest) -> Answer:
        if request.method == "PATCH":
            simulated.world.provider = lambda _: HttpResponse(status, {}, b"{}")
            handle(request)
            raise ProviderUnreachable("lost", sent=True)
        return handle(request)

    simulated.world.provider = lose_the_answer
    with pytest.raises(ProviderAmbiguous):
        add(simulated, "a", seconds=20)
    simulated.world.provider = handle
    with pytest.raises(Refused, match="in progress"):
        add(simulated, "bb", seconds=4)


def test_nobody_waits_for_a_change_that_was_never_sent(simulated: Simulated) -> None:
    handle = simulated.simulator.handle
    simulated.world.provider = None
    with pytest.raises(ProviderUnreachable):
        add(simulated, "a")
    simulated.world.provider = handle
    add(simulated, "bb", seconds=4)
    assert names(simulated) == ["bb"]


def test_what_is_removed_is_not_waited_for(simulated: Simulated) -> None:
    add(simulated, "a")
    remove(simulated, "a")
    assert entries(simulated) == ()
    add(simulated, "bb", seconds=10)
    assert names(simulated) == ["bb"]


@pytest.mark.parametrize("change, left", [(add, ["bb", "ccc"]), (remove, ["bb"])])
def test_what_was_removed_and_still_shows_is_not_written_back(
    simulated: Simulated, change: Callable[[Simulated, str], object], left: list[str]
) -> None:
    for name in ("a", "bb", "ccc"):
        add(simulated, name)
    if change is add:
        remove(simulated, "ccc")
    pass_settle_time(simulated)
    lag(simulated)
    remove(simulated, "a")
    change(simulated, "ccc")
    assert names(simulated) == left


def test_what_is_remembered_goes_with_the_next_change_after_the_settle_time(simulated: Simulated) -> None:
    add(simulated, "a")
    add(simulated, "bb")
    pass_settle_time(simulated)
    remove(simulated, "a")
    assert entries(simulated) == ()
