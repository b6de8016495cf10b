"""Thousands of machines that start at once, at a provider that admits as few reads as the real one. The clock jumps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from attrs import define, field, frozen
from msgspec.structs import replace

from cloudid_core.deadline import Deadline
from cloudid_core.effects import HttpRequest, HttpResponse, Now, Sleep
from cloudid_core.errors import Code, Refused
from cloudid_core.provider.client import Client
from cloudid_core.provider.compute import Machine
from cloudid_core.provider.facts import machine_facts
from cloudid_core.testing import World
from cloudid_core.values.resource_id import SCALE_SET, VIRTUAL_MACHINE, parse
from tests.core.contexts import new_context
from tests.core.provider.cloud import ARM, START, TOKEN_PATH, client, error, reply, token

SUBSCRIPTION: Final = "/subscriptions/aaaaaaaa-0000-0000-0000-000000000001"
BURST: Final = 250.0
RATE: Final = 25.0
LATENCY: Final = 0.1
PAGE: Final = 100


def group(number: int) -> str:
    return f"{SUBSCRIPTION}/resourceGroups/group-{number}/providers"


@frozen
class Late:
    response: HttpResponse
    delay: float = LATENCY
    drop: bool = False


@define
class Cloud:
    """A resource manager with the provider's bucket of reads, its latency and its pages."""

    resources: Sequence[str]
    forbidden: Callable[[str], bool] = lambda path: False
    missing: frozenset[str] = frozenset()
    """What lists do not show yet."""
    world: World = field(init=False)
    left: float = BURST
    since: float = START
    admitted: list[str] = field(factory=list[str])
    throttled: int = 0
    lists: dict[str, list[str]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.world = World(provider=self.answer, start=START)
        self.lists = {}
        for each in self.resources:
            head, _, _ = each.rpartition("/")
            kind = "/".join(head.split("/")[-2:])
            for path in (head, f"{SUBSCRIPTION}/providers/{kind}"):
                self.lists.setdefault(path.lower(), []).append(each)

    def answer(self, request: HttpRequest) -> HttpResponse | Late:
        address = urlsplit(request.url)
        if address.path == TOKEN_PATH:
            return token()
        self.left = min(BURST, self.left + (self.world.clock - self.since) * RATE)
        self.since = self.world.clock
        if self.left < 1:
            self.throttled += 1
            return error(429, "SubscriptionRequestsThrottled", retry_after="1")
        self.left -= 1
        self.admitted.append(address.path)
        return Late(self._document(address.path, parse_qs(address.query)))

    def _document(self, path: str, query: dict[str, list[str]]) -> HttpResponse:
        headers = {"x_ms_ratelimit_remaining_subscription_reads": str(int(self.left))}
        if self.forbidden(path):
            return error(403, "AuthorizationFailed", **headers)
        listed = self.lists.get(path.lower())
        if listed is None:
            return reply(200, show(path), **headers)
        shown = [each for each in listed if each not in self.missing]
        start = int(query.get("$skiptoken", ["0"])[0])
        answer: dict[str, Any] = {"value": [show(each) for each in shown[start : start + PAGE]]}
        if start + PAGE < len(shown):
            answer["nextLink"] = f"{ARM}{path}?api-version=2026-04-01&$skiptoken={start + PAGE}"
        return reply(200, answer, **headers)


def show(path: str) -> Any:
    return {"id": path, "location": "westus2", "identity": {"principalId": f"P-{path}"}}


@define
class Storm:
    """Machines that log in, each at its time, and when each was in."""

    cloud: Cloud
    settings: dict[str, Any]
    patience: float = 240.0
    nodes: int = 1
    done: list[tuple[int, float]] = field(factory=list[tuple[int, float]])
    refused: list[tuple[int, float, Refused]] = field(factory=list[tuple[int, float, Refused]])

    def break_loose(self, arrivals: Sequence[tuple[float, str]]) -> None:
        """Let them all come, and wait for the last."""
        contexts = [new_context(request_deadline=240, **self.settings) for _ in range(self.nodes)]
        for context in contexts:
            context.caches.nodes = self.nodes
        askers = [client(context, owner=f"node {number}") for number, context in enumerate(contexts)]
        for number, (at, path) in enumerate(arrivals):
            self.cloud.world.spawn(self._log_in(number, at, path, askers[number % self.nodes]))
        self.cloud.world.settle()

    async def _log_in(self, number: int, at: float, path: str, asker: Client) -> None:
        await Sleep(at)
        came_at = await Now()
        try:
            machine = await machine_facts(replace(asker, deadline=Deadline(came_at + self.patience)), parse(path))
        except Refused as refusal:
            self.refused.append((number, await Now() - came_at, refusal))
            return
        assert isinstance(machine, Machine)
        assert machine.principals == {f"p-{path.lower()}"}
        self.done.append((number, await Now() - START))

    @property
    def last(self) -> float:
        return max(at for _, at in self.done)


def storm_of_fleets(machines: int) -> tuple[Cloud, list[tuple[float, str]]]:
    """Machines in 50 groups: plain ones, those of ten flexible sets, and ten uniform sets, which their tokens name."""
    paths: list[str] = []
    for number in range(machines):
        fleet = number // 10 % 10
        if number % 10 == 0:
            paths.append(f"{group(fleet)}/{SCALE_SET}/uniform-{fleet}")
        elif number % 10 == 1:
            paths.append(f"{group(10 + fleet)}/{VIRTUAL_MACHINE}/flexible-{fleet}_{number:08x}")
        else:
            paths.append(f"{group(number * 7919 % 50)}/{VIRTUAL_MACHINE}/vm-{number}")
    places = ((number * 7907 % machines, path) for number, path in enumerate(paths))
    return Cloud(list(dict.fromkeys(paths))), [(60.0 * place / machines, path) for place, path in sorted(places)]


def storm_of_strangers(machines: int, **changes: Any) -> tuple[Cloud, list[tuple[float, str]]]:
    """Machines that each have a group of their own. The service may read these, and nothing in the subscription."""
    paths = [f"{group(number)}/{VIRTUAL_MACHINE}/vm" for number in range(machines)]
    cloud = Cloud(paths, **{"forbidden": lambda path: "/resourceGroups/" not in path, **changes})
    return cloud, [(number * 0.012, path) for number, path in enumerate(paths)]


def test_fleets_that_start_at_once_are_in_within_a_second_and_cost_a_read_for_many() -> None:
    machines = 10_000
    cloud, arrivals = storm_of_fleets(machines)
    storm = Storm(cloud, {"fact_max_age": 600})
    storm.break_loose(arrivals)
    assert len(storm.done) == machines
    assert storm.last <= 61
    assert len(cloud.admitted) <= 200
    assert not cloud.throttled


def test_machines_that_have_nothing_in_common_are_in_as_fast_as_the_provider_admits_reads() -> None:
    """And in the order in which they came, but for those that came within the time of two answers."""
    machines = 5_000
    cloud, arrivals = storm_of_strangers(machines)
    storm = Storm(cloud, {"fact_max_age": 600})
    storm.break_loose(arrivals)
    assert max(abs(place - number) for place, (number, _) in enumerate(storm.done)) * 0.012 <= 2 * LATENCY
    assert storm.last <= (machines - BURST) / RATE + 2
    assert len(cloud.admitted) <= machines + 1
    assert not cloud.throttled


def test_who_has_no_patience_is_told_at_once_and_when_to_come_again() -> None:
    """It costs no read, and those who wait are in as soon as without it."""
    cloud, arrivals = storm_of_strangers(750)
    storm = Storm(cloud, {}, patience=10)
    storm.break_loose(arrivals)
    assert storm.refused
    assert len(storm.done) + len(storm.refused) == len(arrivals)
    assert all(waited == 0 for _, waited, _ in storm.refused)
    assert {refusal.code for _, _, refusal in storm.refused} == {Code.PROVIDER_THROTTLED}
    assert all(1 <= (refusal.retry_after or 0) <= 15 for _, _, refusal in storm.refused)
    assert len(cloud.admitted) <= len(storm.done) + 1
    assert not cloud.throttled


def test_a_subscription_that_may_be_listed_is_listed_as_soon_as_look_ups_have_to_wait() -> None:
    machines = 1000
    cloud, arrivals = storm_of_strangers(machines, forbidden=lambda path: False)
    storm = Storm(cloud, {"fact_max_age": 600})
    storm.break_loose(arrivals)
    assert len(storm.done) == machines
    assert len(cloud.admitted) <= 1.5 * BURST
    assert storm.last <= arrivals[-1][0] + 1


def test_machines_that_lists_do_not_show_yet_are_asked_for_alone() -> None:
    cloud, arrivals = storm_of_fleets(1000)
    cloud.missing = frozenset(path for number, path in enumerate(cloud.resources) if number % 5 == 0)
    storm = Storm(cloud, {"fact_max_age": 600})
    storm.break_loose(arrivals)
    assert len(storm.done) == len(arrivals)
    assert cloud.missing <= set(cloud.admitted)
    assert not cloud.throttled


def test_nodes_that_share_the_bucket_are_as_fast_as_one_and_never_use_more_than_there_is() -> None:
    machines = 1000
    cloud, arrivals = storm_of_strangers(machines)
    storm = Storm(cloud, {"fact_max_age": 600}, nodes=4)
    storm.break_loose(arrivals)
    assert len(storm.done) == machines
    assert storm.last <= (machines - BURST) / RATE + 2
    assert not cloud.throttled


def test_another_user_of_the_bucket_delays_the_storm_and_fails_nobody() -> None:
    """Half of the reads go to somebody else, whom the service knows by what the provider says."""
    machines = 500
    cloud, arrivals = storm_of_strangers(machines)

    async def another() -> None:
        while len(storm.done) < machines:
            cloud.left = max(0.0, cloud.left - 1.25)
            await Sleep(0.1)

    storm = Storm(cloud, {})
    _ = cloud.world.spawn(another())
    storm.break_loose(arrivals)
    assert len(storm.done) == machines
    assert storm.last <= 2.5 * (machines - BURST) / RATE + 20
