"""The round of background work: fair, bounded, and not to be brought down by anything that is due."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from cloudid_core.background.loop import (
    BUDGET,
    LANE_SECONDS,
    LANES,
    LANES_BEHIND,
    LEADER_CHECK_INTERVAL,
    MOST_ASIDE,
    MOST_LANES,
    MOST_SHOWN,
    MOST_TOLD,
    RETRY_INTERVAL,
    ROUND_INTERVAL,
    ROUND_SECONDS,
    SWEEP_INTERVAL,
    WORK_SECONDS,
    Loop,
)
from cloudid_core.context import queue
from cloudid_core.context.context import Context
from cloudid_core.context.queue import Due, Job
from cloudid_core.effects import ClockReading, Commit, Instant, Program, Sleep
from cloudid_core.errors import Code, Conflict, Refused, StoreFailed
from cloudid_core.events import JobFailed
from cloudid_core.health.problems import HealthProblem
from cloudid_core.store import keys
from cloudid_core.store.changes import Changes
from cloudid_core.store.sealing import RESERVE
from cloudid_core.testing.faults import Fault, FaultKind
from tests.engines import SecretsEngine, engine_with_roles

from ..provider.cloud import START, Setting

KIND: Final = "kind"
OTHER: Final = "other"


class Round:
    """A tick whose work is written here: what was done, in its order."""

    def __init__(self, do: Callable[[Job], Program[None]] | None = None) -> None:
        self.setting = Setting()
        self.loop = self.node("node")
        self.done: list[str] = []
        self.swept_at: list[float] = []
        self.interrupted_sweeps = 0
        self.begun_with: list[Mapping[str, int]] = []
        self.begin_conflicts = 0
        self.at_once = 0
        self.most_at_once = 0
        self.do = do or self.finish

    def node(self, name: str) -> Loop:
        return Loop(self.setting.context, name, {KIND: self.job, OTHER: self.job}, self.sweep, self.begin)

    async def job(self, job: Job) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.do(job)
        finally:
            self.at_once -= 1

    async def sweep(self, context: Context, fence: Mapping[str, int], now: Instant) -> bool:
        self.swept_at.append(now - START)
        self.interrupted_sweeps -= 1
        return self.interrupted_sweeps >= 0

    async def begin(self, context: Context, fence: Mapping[str, int]) -> None:
        self.begun_with.append(fence)
        if self.begin_conflicts:
            self.begin_conflicts -= 1
            raise Conflict

    async def finish(self, job: Job) -> None:
        self.done.append(f"{job.mount_id}/{job.ref}")
        await job.context.records.commit(Changes(job.fence, deletes=(job.key,)))

    def put(self, mount: str, *refs: object, at: float = 0.0, kind: str = KIND) -> None:
        entries = {keys.due(START + at, kind, mount, str(ref)): Due() for ref in refs}
        self.setting.world.perform(self.setting.context.records.commit(Changes({}, entries)))

    def run(self) -> float:
        """One round; when to come again, in seconds after its end."""
        again = self.setting.world.perform(self.loop.run())
        return again - self.setting.world.clock

    @property
    def left(self) -> int:
        return len(self.setting.world.store.list(keys.DUE, "", 100_000))


def test_a_round_without_work_does_nothing() -> None:
    assert Round().run() == ROUND_INTERVAL


def test_what_is_due_is_done_and_what_is_not_waits() -> None:
    round_ = Round()
    round_.put("m", "now", "too")
    round_.put("m", "soon", at=10)
    round_.put("n", "late", at=1000)
    assert round_.run() == 10
    assert sorted(round_.done) == ["m/now", "m/too"]
    assert round_.left == 2


def test_a_leader_whose_clock_is_ahead_ends_nothing_early() -> None:
    """A machine that started with a clock an hour ahead revoked each lease that had less than an hour left, at once."""
    round_ = Round()
    round_.put("m", "past", at=-3600)
    round_.put("m", "lease", at=-5)
    round_.setting.world.store_clock = ClockReading(-600.0, 1.0)
    assert round_.run() == ROUND_INTERVAL
    assert round_.done == ["m/past"]
    round_.setting.world.clock += 599 - 6 - ROUND_INTERVAL
    assert round_.run() == ROUND_INTERVAL
    round_.setting.world.clock += ROUND_INTERVAL
    assert round_.run() == 1
    round_.setting.world.clock += 1
    round_.run()
    assert round_.done == ["m/past", "m/lease"]


def test_a_leader_whose_clock_is_set_forward_ends_nothing_early() -> None:
    round_ = Round()
    round_.put("m", "lease", at=1000)
    round_.setting.world.store_clock = ClockReading(0.0, 1.0)
    round_.run()
    round_.setting.world.clock += 3600
    round_.setting.world.store_clock = ClockReading(-3600.0, 1.0)
    round_.run()
    assert round_.done == []
    round_.setting.world.clock -= 3600
    round_.setting.world.store_clock = ClockReading(0.0, 1.0)
    round_.setting.world.clock += 1000
    round_.run()
    assert round_.done == ["m/lease"]


def test_a_leader_whose_clock_is_behind_goes_by_its_own() -> None:
    round_ = Round()
    round_.put("m", "lease", at=5)
    round_.setting.world.store_clock = ClockReading(600.0, 1.0)
    assert round_.run() == 5
    assert round_.done == []


def test_a_queue_has_a_budget_and_the_rest_comes_at_once() -> None:
    round_ = Round()
    round_.put("m", *range(100, 100 + BUDGET + 10))
    assert round_.run() == 0
    assert round_.left == 10
    assert round_.run() == ROUND_INTERVAL
    assert round_.left == 0


def test_a_queue_that_is_behind_is_worked_off_in_more_lanes() -> None:
    """What ends would pile up otherwise, where many clients make it at once."""
    round_ = Round()
    round_.put("m", *range(100, 100 + BUDGET + 10))
    round_.run()
    assert LANES < round_.most_at_once <= LANES_BEHIND
    round_.most_at_once = 0
    round_.run()
    assert 0 < round_.most_at_once <= LANES


def test_dead_entries_are_swept_from_time_to_time_however_busy_the_rounds_are() -> None:
    """Each sweep takes time from the requests, and rounds of a backlog follow each other at once."""
    round_ = Round()
    for _ in range(30):
        round_.put("m", *range(100, 100 + BUDGET + 10))
        round_.run()
        round_.setting.world.advance(1)
    assert round_.swept_at == [0, SWEEP_INTERVAL, 2 * SWEEP_INTERVAL]


def test_dead_entries_are_swept_though_nothing_is_due() -> None:
    round_ = Round()
    for _ in range(4):
        round_.setting.world.advance(round_.run())
    assert round_.swept_at == [0, SWEEP_INTERVAL, 2 * SWEEP_INTERVAL, 3 * SWEEP_INTERVAL]


def test_a_sweep_that_a_request_asks_for_is_that_of_its_round() -> None:
    """What is due would wait for both."""
    round_ = Round()
    for _ in range(2):
        round_.put("m", "", kind=queue.TIDY)
        round_.run()
        round_.setting.world.advance(1)
    round_.run()
    assert round_.swept_at == [0, 1]
    assert round_.left == 0


def test_a_sweep_that_was_interrupted_goes_on_after_what_is_due() -> None:
    round_ = Round()
    round_.interrupted_sweeps = 2
    for number in range(4):
        round_.put("m", number)
        round_.setting.world.advance(round_.run())
        assert round_.left == 0
    assert round_.swept_at == [0, RETRY_INTERVAL, 2 * RETRY_INTERVAL, 2 * RETRY_INTERVAL + SWEEP_INTERVAL]


def test_a_sweep_waits_a_moment_for_slow_work_of_its_round() -> None:
    async def crawl(job: Job) -> None:
        await Sleep(WORK_SECONDS)
        await round_.finish(job)

    round_ = Round(crawl)
    round_.put("m", "slow")
    round_.run()
    assert round_.swept_at == [ROUND_SECONDS]


def test_a_clock_that_is_set_back_does_not_put_the_sweep_off() -> None:
    round_ = Round()
    round_.run()
    round_.setting.world.clock -= 3600
    round_.run()
    assert round_.swept_at == [0, -3600]


def test_a_backlog_of_one_mount_hides_nothing_of_another() -> None:
    round_ = Round()
    round_.put("m", *range(3000), at=-1000)
    round_.put("n", "mine")
    round_.put("m", "other work", kind=OTHER)
    round_.run()
    assert {"n/mine", "m/other work"} <= set(round_.done)
    assert len(round_.done) == BUDGET + 2


def test_the_oldest_of_a_backlog_come_first() -> None:
    round_ = Round()
    round_.put("m", "new")
    for age in range(BUDGET):
        round_.put("m", age, at=-1 - age)
    round_.run()
    assert "m/new" not in round_.done


def test_more_queues_than_lanes_take_turns() -> None:
    round_ = Round()
    for number in range(MOST_LANES + 5):
        round_.put(f"m{number:03}", "a", at=-1000 + number)
    assert round_.run() == 0
    assert len(round_.done) == MOST_LANES
    assert f"m{MOST_LANES + 4:03}/a" not in round_.done
    round_.run()
    assert round_.left == 0


def test_hanging_work_of_one_mount_delays_no_other() -> None:
    """What becomes due for the others while it hangs is done within two seconds, round after round."""

    async def hang(job: Job) -> None:
        if job.mount_id.startswith("hanging"):
            await Sleep(WORK_SECONDS)
        await round_.finish(job)

    round_ = Round(hang)
    for number in range(MOST_LANES):
        round_.put(f"hanging{number}", *range(BUDGET + 5), at=-1)
    for second in range(50):
        round_.put("quick", second, at=second)
    lateness: list[float] = []
    while len(lateness) < 50:
        round_.setting.world.advance(max(0.0, round_.run()))
        quick = [done for done in round_.done if done.startswith("quick")]
        late = round_.setting.world.clock - START
        lateness += [late - second for second in range(len(lateness), len(quick))]
    assert max(lateness) <= ROUND_SECONDS + RETRY_INTERVAL
    assert len(round_.done) == 50


def test_a_lane_takes_the_next_key_when_it_is_free() -> None:
    """One job of a queue that hangs occupies its own lane only."""

    async def hang(job: Job) -> None:
        if job.ref == "0":
            await Sleep(WORK_SECONDS)
        await round_.finish(job)

    round_ = Round(hang)
    round_.put("m", *range(3 * BUDGET), at=-1)
    while round_.setting.world.clock < START + 5:
        round_.setting.world.advance(round_.run())
    assert len(round_.done) == 3 * BUDGET - 1


def test_work_that_outlives_its_round_is_not_done_twice() -> None:
    async def hang(job: Job) -> None:
        begun.append(job.ref)
        await Sleep(WORK_SECONDS)
        await round_.finish(job)

    begun: list[str] = []
    round_ = Round(hang)
    round_.put("m", *range(LANES))
    while round_.left:
        round_.setting.world.advance(round_.run())
    assert sorted(begun) == sorted(map(str, range(LANES)))


def test_a_lane_ends_in_time_and_the_next_round_starts_another() -> None:
    """Hosts close a shared program that takes minutes."""

    async def crawl(job: Job) -> None:
        await Sleep(4)
        await round_.finish(job)

    round_ = Round(crawl)
    round_.put("m", *range(60))
    while round_.left:
        round_.setting.world.advance(round_.run())
    lanes = {name: 0.0 for name, _ in round_.setting.world.trace if "lane" in name}
    assert len(lanes) >= 60 * 4 / (LANE_SECONDS + 4)
    assert round_.most_at_once <= LANES


def test_a_bug_of_work_that_outlives_its_round_is_raised_by_a_later_one() -> None:
    async def fail_late(job: Job) -> None:
        await Sleep(5)
        raise ZeroDivisionError

    round_ = Round(fail_late)
    round_.put("m", "broken")
    while round_.setting.world.clock < START + 5:
        round_.setting.world.advance(round_.run())
    with pytest.raises(ZeroDivisionError):
        round_.run()


def test_work_has_a_deadline_of_its_own() -> None:
    deadlines: list[float] = []

    async def look(job: Job) -> None:
        deadlines.append(job.deadline.at - job.now)
        assert job.now == round_.setting.world.clock
        await Sleep(1)

    round_ = Round(look)
    round_.put("m", *range(5))
    round_.run()
    assert deadlines == [WORK_SECONDS] * 5


def test_a_conflict_stops_nothing_and_is_looked_at_again_soon() -> None:
    async def clash(job: Job) -> None:
        if job.ref == "0":
            raise Conflict("somebody else was faster")
        await round_.finish(job)

    round_ = Round(clash)
    round_.put("m", *range(6))
    assert round_.run() == RETRY_INTERVAL
    assert len(round_.done) == 5


@pytest.mark.parametrize("trouble", [StoreFailed("gone"), Refused(Code.COMMIT_UNRESOLVED)])
def test_a_failure_of_the_store_ends_a_lane(trouble: Exception) -> None:
    tried: list[str] = []

    async def fail(job: Job) -> None:
        tried.append(job.ref)
        raise trouble

    round_ = Round(fail)
    round_.put("m", *range(50))
    assert round_.run() == RETRY_INTERVAL
    assert len(tried) == LANES


def broken(round_: Round) -> Callable[[Job], Program[None]]:
    async def do(job: Job) -> None:
        if job.ref.startswith("broken"):
            raise ZeroDivisionError(job.ref)
        await round_.finish(job)

    return do


def test_a_bug_is_raised_when_all_else_is_done() -> None:
    round_ = Round()
    round_.do = broken(round_)
    round_.put("m", "broken", *range(5))
    with pytest.raises(ZeroDivisionError):
        round_.run()
    assert len(round_.done) == 5
    assert round_.left == 1


def test_what_met_a_bug_is_set_aside_for_a_while_and_holds_nothing_up() -> None:
    round_ = Round()
    round_.do = broken(round_)
    round_.put("m", *(f"broken {number}" for number in range(BUDGET + 5)), at=-5)
    round_.put("m", *range(5))
    with pytest.raises(ExceptionGroup):
        round_.run()
    with pytest.raises(ExceptionGroup):
        round_.run()
    assert sorted(round_.done) == [f"m/{number}" for number in range(5)]
    assert round_.run() == ROUND_INTERVAL
    round_.setting.world.advance(queue.PAUSES.longest)
    with pytest.raises(ExceptionGroup):
        round_.run()


DAMAGED: Final = (
    "due/0/x",
    "due/",
    "due//////",
    "due/m/kind/0",
    "due/m/kind/" + "9" * 5000 + "/x",
    "due/m/kind/\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668\u0669\u0660\u0661\u0662\u0663/x",
    "due/m/kind/-000000000001/x",
    "due/z",
)


def test_a_name_that_nobody_wrote_is_set_aside_told_and_holds_nothing_up() -> None:
    round_ = Round()
    round_.put("m", "a", "b")
    round_.setting.world.store.commit({}, dict.fromkeys(DAMAGED, b"x"), ())
    assert round_.run() == ROUND_INTERVAL
    assert sorted(round_.done) == ["m/a", "m/b"]
    told = [event for event in round_.setting.world.events if isinstance(event, JobFailed)]
    assert sorted(event.ref for event in told) == sorted(key[:MOST_SHOWN] for key in DAMAGED)
    node = round_.setting.context.node
    assert len(node.problems[HealthProblem.DUE_NAME_DAMAGED]) == len(DAMAGED)
    round_.run()
    assert len([event for event in round_.setting.world.events if isinstance(event, JobFailed)]) == len(DAMAGED)
    round_.setting.world.store.commit({}, {}, DAMAGED)
    round_.run()
    assert not node.problems


def test_many_names_that_nobody_wrote_cost_little() -> None:
    """They are listed a thousand at a time, and hide nothing that sorts behind them."""
    round_ = Round()
    round_.put("z", "a")
    round_.setting.world.store.commit({}, {f"due/m/{number}": b"x" for number in range(3 * MOST_ASIDE)}, ())
    before = len(round_.setting.world.trace)
    round_.run()
    assert round_.done == ["z/a"]
    assert len(round_.setting.world.trace) - before < MOST_TOLD + 50


def test_an_unknown_kind_of_work_is_a_bug() -> None:
    round_ = Round()
    round_.put("m", "a", kind="unheard-of")
    round_.put("m", "b")
    with pytest.raises(KeyError):
        round_.run()
    assert round_.done == ["m/b"]


def test_only_the_leader_works() -> None:
    round_ = Round()
    round_.run()
    other = round_.node("other")
    round_.setting.world.perform(other.run())
    round_.put("m", "a")
    assert round_.run() == LEADER_CHECK_INTERVAL
    assert round_.done == []
    round_.setting.world.perform(other.run())
    assert round_.done == ["m/a"]


def test_every_node_keeps_its_reserve_of_seals() -> None:
    world = engine_with_roles()
    SecretsEngine.tick(world)
    standby = engine_beside(world)
    standby.context.records.sealer.left = 0
    for _ in range(2):
        standby.perform(world.service.tick())
    standby.tick()
    assert standby.context.records.sealer.left > RESERVE // 2


def engine_beside(world: SecretsEngine) -> SecretsEngine:
    """Another node over the same store."""
    return type(world)(1, world.store, world.simulator)


def test_every_attempt_is_claimed_before_the_provider_is_asked_to_change_anything() -> None:
    world = engine_with_roles()
    world.issue("fresh")
    world.must("PUT", "sys/leases/revoke-prefix/cloud", {"sync": False})
    start = len(world.trace)
    world.tick()
    changes = [kind_of(effect) for _, effect in world.trace[start:]]
    assert "change" in changes
    assert "claim" in changes[: changes.index("change")]


def kind_of(effect: Any) -> str:
    if isinstance(effect, Commit):
        return "claim" if any(key.startswith(keys.LEASES) for key in effect.puts) else "commit"
    request = getattr(effect, "request", None)
    return "change" if request is not None and request.method != "GET" and "/token" not in request.url else ""


def test_a_store_that_cannot_be_listed_is_reported() -> None:
    """The host hears of it, and comes again."""
    world = engine_with_roles()
    world.tick()
    world.inject(Fault(len(world.trace) + 3, FaultKind.FAIL))
    with pytest.raises(StoreFailed):
        world.tick()
    world.tick()


def test_a_node_begins_its_leadership_once_and_under_its_fence() -> None:
    turn = Round()
    turn.run()
    turn.run()
    [fence] = turn.begun_with
    assert list(fence) == [keys.LEADER_TERM]


def test_a_beginning_that_meets_a_conflict_is_repeated_before_any_work() -> None:
    turn = Round()
    turn.begin_conflicts = 1
    turn.put("m", "a")
    turn.run()
    assert turn.done == []
    turn.run()
    assert (len(turn.begun_with), turn.done) == (2, ["m/a"])
