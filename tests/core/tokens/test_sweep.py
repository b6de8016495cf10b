"""Dead tokens are removed, as fast as they die, at a cost that does not grow with the living ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from cloudid_core.background.loop import RETRY_INTERVAL, SWEEP_INTERVAL
from cloudid_core.context import queue
from cloudid_core.effects import MOST_COMMITTED, ClockReading, Commit, Effect, Instant, ListKeys, ReadEntries, Sleep
from cloudid_core.health.node import MOST_SKEW
from cloudid_core.mounts import TOKEN
from cloudid_core.policies import RESPONSE_WRAPPING
from cloudid_core.store import keys
from cloudid_core.store.changes import Changes
from cloudid_core.testing.faults import FaultKind
from cloudid_core.tokens import stretches, sweep
from cloudid_core.tokens.encoding import time_ordered_id
from cloudid_core.tokens.record import Token
from tests.installation import Installation
from tests.tokens import create_token, is_valid, new_token

MONTH = 30 * 86400.0
DRAFT = Token(
    path="auth/token/create", mount_id=TOKEN.id, policies=(), display_name="", created_at=0, ttl=0, expires_at=0
)


class Store(Installation):
    """A store with many tokens, and the sweep of the node that leads."""

    def __init__(self) -> None:
        super().__init__()
        self.sweep = sweep.Sweep()
        self._put = 0

    def put(self, count: int, ttl: float | None, made_at: Instant | None = None) -> list[str]:
        """Tokens as requests store them that came at a time; now, unless it is given. Their keys."""
        at = self.clock if made_at is None else made_at
        numbers = range(self._put, self._put + count)
        self._put += count
        ids = [time_ordered_id(at, number.to_bytes(10, "big")) for number in numbers]
        expires_at = None if ttl is None else at + ttl
        tokens = [replace(DRAFT, id=token_id, created_at=at, expires_at=expires_at) for token_id in ids]
        for start in range(0, count, MOST_COMMITTED):
            some = {token.key: token for token in tokens[start : start + MOST_COMMITTED]}
            self.perform(self.context.records.commit(Changes(puts=some)))
        return [token.key for token in tokens]

    def change(self, key: str, **fields: Any) -> None:
        """Write a token anew, as a request does that renews or spends it."""
        found = self.perform(self.context.records.find_fresh(key, Token))
        assert found is not None
        self.perform(self.context.records.commit(Changes(puts={key: replace(found.record, **fields)})))

    def round(self, after: float = SWEEP_INTERVAL) -> int:
        """The next round of the sweep; how many tokens it removed."""
        self.advance(after)
        before = self.stored
        self.perform(self.sweep.run(self.context, {}, self.clock))
        return before - self.stored

    def rounds_until_gone(self, key: str, most: int) -> int:
        for number in range(1, most + 1):
            self.round()
            if self.store.read(key) is None:
                return number
        raise AssertionError(f"it is still there after {most} rounds")

    def tokens_read(self, after: float = SWEEP_INTERVAL) -> int:
        """How many tokens the next round reads."""
        begin = len(self.trace)
        self.round(after)
        return len(read(self, begin))

    @property
    def stored(self) -> int:
        return len(self.keys(keys.TOKENS))


def read(world: Installation, begin: int) -> list[str]:
    """The keys of the tokens that were read since the effect with this number."""
    effects = [effect for _, effect in world.trace[begin:] if isinstance(effect, ReadEntries)]
    return [key for effect in effects for key in effect.keys]


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of 20 tokens, so that 2000 tokens are many."""
    monkeypatch.setattr(sweep, "PAGE", 20)
    monkeypatch.setattr(sweep, "PAGES_WITHOUT_DEAD", 2)


@pytest.fixture
def no_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found is found by what is remembered."""
    monkeypatch.setattr(sweep, "PAGES_WITHOUT_DEAD", 0)


def test_dead_tokens_are_swept_with_all_their_entries_and_living_ones_stay() -> None:
    world = Installation()
    parent = new_token(world)
    dead, alive = new_token(world, parent, ttl=60), new_token(world, parent, ttl=600)
    world.advance(60)
    world.tick()
    assert len(world.keys("token/")) == 3
    assert len(world.keys("child/")) == 2
    assert is_valid(world, alive)
    assert not is_valid(world, dead)


def test_a_dead_token_is_not_swept_before_its_dependants() -> None:
    """Its due entry removes it, children first."""
    world = Installation()
    parent = new_token(world, ttl=60)
    new_token(world, parent, ttl=10**5)
    context = world.context
    world.advance(60)
    world.perform(sweep.Sweep().run(context, {}, world.clock))
    assert len(world.keys("token/")) == 3
    world.pass_time(3)
    assert len(world.keys("token/")) == 1


def test_dead_tokens_with_dependants_are_not_read_again_in_each_round(small_pages: None, no_walk: None) -> None:
    """The sweep has nothing to do for them, however long their leases take to end."""
    world = Store()
    for key in world.put(20, ttl=60):
        world.change(key, has_dependants=True)
    world.round()
    world.round()
    assert world.tokens_read(60) == 0


def test_the_walk_reads_page_by_page_and_starts_again_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "PAGE", 2)
    world = Store()
    world.put(5, ttl=60)
    assert [world.round(MONTH), world.round()] == [5, 0]
    world.put(3, ttl=60)
    assert world.round(MONTH) == 3


@pytest.mark.parametrize("age", [60, MONTH])
@pytest.mark.parametrize("dead", range(6))
def test_a_dead_token_is_removed_wherever_in_a_page_it_is(
    dead: int, age: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first, the last and the last one of all, among new tokens and among those of which nothing is known."""
    monkeypatch.setattr(sweep, "PAGE", 3)
    if age == 60:
        monkeypatch.setattr(sweep, "PAGES_WITHOUT_DEAD", 0)
        monkeypatch.setattr(sweep, "SAMPLE", 1)
    world = Store()
    for number in range(6):
        world.put(1, ttl=60 if number == dead else 2 * MONTH)
        world.advance(1)
    before = len(world.trace)
    assert world.round(age) == 1
    assert world.stored == 6
    tokens = [key for key in read(world, before) if key != world.keys(keys.TOKENS)[0]]
    assert len(set(tokens)) >= 5
    assert age == 60 or len(tokens) == len(set(tokens)), "the walk reads each once"


def test_a_round_removes_all_that_is_dead_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the store grows without bound once logins are faster than the sweep."""
    monkeypatch.setattr(sweep, "PAGE", 10)
    world = Store()
    world.put(150, ttl=60)
    world.put(150, ttl=60)
    world.advance(MONTH)
    world.put(150, ttl=60)
    world.advance(60)
    world.tick()
    assert world.stored == 1


def test_pages_that_were_not_worth_it_end_a_round_and_the_next_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "PAGE", 1)
    monkeypatch.setattr(sweep, "PAGES_WITHOUT_DEAD", 2)
    world = Store()
    world.put(2, ttl=2 * MONTH)
    world.put(1, ttl=60)
    assert [world.round(MONTH), world.round()] == [0, 1]


def test_no_commit_of_a_round_is_larger_than_every_store_takes() -> None:
    """etcd compares and changes fewer than 128 entries at once. Tokens that wrap an answer have most entries."""
    world = Store()
    for key in world.put(200, ttl=60):
        world.change(key, policies=(RESPONSE_WRAPPING,), wrapped_by="a" * 26)
    begin = len(world.trace)
    assert world.round(MONTH) == 200
    commits = [effect for _, effect in world.trace[begin:] if isinstance(effect, Commit)]
    assert max(len(commit.deletes) for commit in commits) > sweep.AT_ONCE
    assert max(max(len(commit.expects), len(commit.deletes)) for commit in commits) <= 127


def test_requests_run_after_each_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even on a host that never waits for its store."""
    monkeypatch.setattr(sweep, "PAGE", 2)
    world = Store()
    world.put(4, ttl=60)
    before = len(world.trace)
    world.round(60)
    made = [type(effect) for _, effect in world.trace[before:] if isinstance(effect, ListKeys | Sleep)]
    assert made == [ListKeys, Sleep] * (len(made) // 2)
    assert len(made) >= 2 * 3


def test_a_token_that_changes_meanwhile_stops_only_its_page() -> None:
    world = Installation()
    new_token(world, ttl=60)
    world.advance(60)
    world.perform(sweep.Sweep().run(world.context, {"duty/term": 99}, world.clock))
    assert len(world.keys("token/")) == 2


class RenewingStore(Store):
    """A request renews a token between the sweep's look at it and its commit."""

    renewed = ""

    def fault_for(self, effect: Effect[Any]) -> FaultKind | None:
        if isinstance(effect, Commit) and self.renewed in effect.deletes:
            entry = self.store.read(self.renewed)
            assert entry is not None
            self.store.commit({}, {self.renewed: entry.value}, ())
        return super().fault_for(effect)


def test_a_token_that_is_written_meanwhile_is_not_removed_before_it_is_read_again() -> None:
    world = RenewingStore()
    world.renewed, *_ = world.put(5, ttl=60)
    assert world.round(60) == 0
    world.renewed = ""
    assert world.round() == 5


# The rate at which tokens are removed, and what it costs


@pytest.mark.parametrize("living", [200, 2000])
def test_the_cost_of_a_round_does_not_grow_with_the_living(living: int, small_pages: None) -> None:
    """A round of a store in which nothing dies reads its share of the walk."""
    world = Store()
    world.put(living, ttl=MONTH)
    world.advance(3600)
    for _ in range(200):
        begin = len(world.trace)
        world.round()
        assert len(read(world, begin)) <= 2 * 20
        assert sum(isinstance(effect, ListKeys) for _, effect in world.trace[begin:]) <= 2 + 2


@pytest.mark.parametrize("ttl", [1, 15, 60, 600, 3600])
def test_tokens_are_removed_as_fast_as_they_die(ttl: int, small_pages: None) -> None:
    """Whatever their life is, and however many others live on: a round removes what died since the last one."""
    world = Store()
    world.put(2000, ttl=MONTH)
    world.advance(3600)
    each, old = 15, world.stored
    for number in range(2 * ttl // int(SWEEP_INTERVAL) + 30):
        world.put(each, ttl=ttl)
        begin = len(world.trace)
        world.round()
        living = min(number + 1, ttl // SWEEP_INTERVAL) * each
        assert world.stored - old <= living + 3 * each
        assert len(read(world, begin)) <= 8 * each + 3 * 20
    assert len(world.sweep.stretches) <= 100 + 1.2 * living / 15, "memory is bounded"


@pytest.mark.parametrize("lives", [(1, 600), (60, 3600), (300, 400, 500, 600, 700, 800)])
def test_tokens_of_different_lives_are_removed_at_the_rate_at_which_they_die(
    lives: tuple[int, ...], small_pages: None
) -> None:
    """Not more than a part of a stretch waits for the walk, and reading costs in proportion to what dies."""
    world = Store()
    world.put(2000, ttl=MONTH)
    world.advance(3600)
    old, costs = world.stored, []
    for number in range(600):
        for ttl in lives:
            world.put(5, ttl=ttl)
        begin = len(world.trace)
        world.round()
        living = sum(min(number + 1, ttl / SWEEP_INTERVAL) * 5 for ttl in lives)
        assert world.stored - old <= 1.2 * living + 4 * 5 * len(lives)
        costs.append(len(read(world, begin)))
    assert sum(costs[300:]) / 300 <= (sweep.ONE_DEAD_IN + 3) * 5 * len(lives) + 2 * 20


def test_tokens_that_die_at_a_rate_that_no_walk_could_find_are_found(small_pages: None, no_walk: None) -> None:
    """Every stretch that was read is read again when a part of it is dead."""
    world = Store()
    for number in range(100):
        world.put(20, ttl=3600 - 10 * number)
        world.round()
    assert world.stored == 2001
    world.advance(2600)
    assert world.round() == 2000


def test_new_tokens_that_are_dead_already_are_removed_at_once(no_walk: None) -> None:
    world = Store()
    world.put(100, ttl=1)
    assert world.round(1) == 100


def test_only_a_sample_of_new_tokens_is_read(no_walk: None) -> None:
    """To read all of them would slow down the logins that make them. The newest are looked at twice."""
    world = Store()
    world.put(1000, ttl=MONTH)
    assert world.tokens_read(MOST_SKEW / 2) <= 1000 / sweep.SAMPLE + 2
    assert world.tokens_read() <= 1000 / sweep.SAMPLE + 2
    assert world.tokens_read() == 0


def test_what_a_sample_does_not_show_is_left_to_the_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "PAGES_WITHOUT_DEAD", 0)
    world = Store()
    for number in range(2 * sweep.SAMPLE):
        world.put(1, ttl=60 if number % sweep.SAMPLE == 5 else MONTH)
    world.round()
    world.round(60)
    assert world.stored == 1 + 2 * sweep.SAMPLE
    monkeypatch.setattr(sweep, "PAGES_WITHOUT_DEAD", 1)
    assert world.round() == 2


def test_a_few_dead_in_each_page_do_not_make_the_walk_longer(small_pages: None) -> None:
    """Otherwise a million tokens would be read in one round for the sake of some thousands."""
    world = Store()
    for _ in range(50):
        world.put(19, ttl=2 * MONTH)
        world.put(1, ttl=60)
    world.advance(MONTH)
    assert world.tokens_read() <= 2 * 20
    for _ in range(25):
        world.round()
    assert world.stored == 1 + 50 * 19


def test_the_last_few_of_a_stretch_are_left_to_the_walk(small_pages: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a page for a single token costs more than keeping it for a while."""
    monkeypatch.setattr(sweep, "SAMPLE", 1)
    world = Store()
    world.put(1, ttl=60)
    world.put(19, ttl=MONTH)
    monkeypatch.setattr(sweep, "PAGES_WITHOUT_DEAD", 0)
    for _ in range(10):
        world.round()
    assert world.stored == 1 + 20
    monkeypatch.setattr(sweep, "PAGES_WITHOUT_DEAD", 1)
    for _ in range(2):
        world.round()
    assert world.stored == 1 + 19


# What nothing is remembered of


def test_a_new_leader_removes_what_dies_at_once_and_learns_the_rest(small_pages: None) -> None:
    """Its walk comes round all tokens at a steady pace, and at once where many are dead."""
    world = Store()
    world.put(1000, ttl=3600)
    world.put(1000, ttl=MONTH)
    for _ in range(10):
        world.round()
    world.sweep = sweep.Sweep()
    world.advance(7200)
    assert world.round() == 1000
    world.put(20, ttl=300)
    assert sum(world.round(pause) for pause in (10, 300)) == 20
    assert max(world.tokens_read() for _ in range(100)) <= 2 * 20


def test_a_node_that_leads_again_does_not_read_all_that_was_made_meanwhile_at_once(small_pages: None) -> None:
    world = Store()
    world.round()
    for _ in range(200):
        world.put(10, ttl=MONTH)
        world.advance(60)
    assert world.tokens_read() <= 2 * 20 + 3 * 20
    assert max(world.tokens_read() for _ in range(100)) <= 2 * 20


@pytest.mark.parametrize("others", [0, 1000])
def test_a_token_with_a_chosen_text_is_removed(others: int, small_pages: None) -> None:
    """Its id does not sort by time: it is found by the walk, which passes all others first."""
    world = Store()
    world.put(others, ttl=MONTH)
    for _ in range(others // 20):
        world.round()
    before = {*world.keys(keys.TOKENS)}
    for number in range(8):
        create_token(world, id=f"chosen-{number}", ttl=60, no_parent=True)
    world.advance(60)
    for key in {*world.keys(keys.TOKENS)} - before:
        if world.store.read(key) is not None:
            world.rounds_until_gone(key, others // (2 * 20) + 3)


@pytest.mark.parametrize("late", [MOST_SKEW + 1, 60.0])
def test_a_token_that_is_stored_late_is_removed(late: float, small_pages: None) -> None:
    """Its request took long, or the clock of its node is behind: it stands among tokens that were read before."""
    world = Store()
    world.put(200, ttl=MONTH)
    for _ in range(20):
        world.round()
    (key,) = world.put(1, ttl=60, made_at=world.clock - late)
    world.advance(60)
    world.rounds_until_gone(key, 200 // (2 * 20) + 3)


def test_a_token_that_is_stored_a_little_late_is_new(no_walk: None) -> None:
    world = Store()
    world.round()
    (key,) = world.put(1, ttl=30, made_at=world.clock - MOST_SKEW + 1)
    world.round()
    world.advance(20)
    assert world.rounds_until_gone(key, 1) == 1


@pytest.mark.parametrize("ahead", [MOST_SKEW - 1, 60])
def test_a_token_of_a_node_whose_clock_is_ahead_is_removed(ahead: float, no_walk: None) -> None:
    world = Store()
    world.round()
    (key,) = world.put(1, ttl=1, made_at=world.clock + ahead)
    world.rounds_until_gone(key, 7)


@pytest.mark.parametrize("change", [{"expires_at": 0.0}, {"expires_at": 1_800_000_300.0}])
def test_a_token_that_dies_earlier_than_it_said_is_removed(change: Mapping[str, Any], small_pages: None) -> None:
    """By its last use, or by a renewal for a shorter time."""
    world = Store()
    (key, *_) = world.put(200, ttl=MONTH)
    for _ in range(20):
        world.round()
    world.change(key, **change)
    world.advance(300)
    world.rounds_until_gone(key, 200 // (2 * 20) + 3)


def test_a_renewal_for_longer_costs_a_read_and_the_token_is_removed_at_its_end(
    small_pages: None, no_walk: None
) -> None:
    world = Store()
    made = world.put(20, ttl=60)
    world.round()
    for key in made:
        world.change(key, expires_at=world.clock + 600)
    world.advance(40)
    assert [world.tokens_read() for _ in range(3)] == [20, 0, 0]
    assert world.stored == 21
    assert world.round(600) == 20


def test_more_stretches_than_are_remembered_are_left_to_the_walk(
    small_pages: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stretches, "MOST", 3)
    world = Store()
    for number in range(30):
        world.put(20, ttl=1000 - 10 * number)
        world.round()
        assert len(world.sweep.stretches) <= 4
    world.advance(700)
    for _ in range(2):
        world.round()
    assert world.stored == 1


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
def test_a_clock_that_is_set_for_a_while_puts_nothing_off(step: float, small_pages: None, no_walk: None) -> None:
    world = Store()
    world.put(20, ttl=60)
    world.round()
    world.clock += step
    world.round()
    world.clock -= step
    world.put(20, ttl=60)
    world.round()
    for _ in range(7):
        world.round()
    assert world.stored == 1


def test_a_leader_whose_clock_is_ahead_removes_no_token_that_other_nodes_accept() -> None:
    """By the store's clock it is dead later. A leader whose clock is behind goes by its own: it is late anyhow."""
    world = Store()
    world.put(20, ttl=300)
    world.context.node.clock = ClockReading(-600.0, 1.0)
    assert world.round(600) == 0
    assert world.round(298) == 0
    assert world.round(1) == 20
    world.put(20, ttl=300)
    world.context.node.clock = ClockReading(600.0, 1.0)
    assert world.round(299) == 0
    assert world.round(1) == 20


class SlowStore(Store):
    """It takes a while to read a page."""

    page_seconds = sweep.SECONDS / 10

    def fault_for(self, effect: Effect[Any]) -> FaultKind | None:
        if isinstance(effect, ReadEntries) and any(key.startswith(keys.TOKENS) for key in effect.keys):
            self.clock += self.page_seconds
        return super().fault_for(effect)


@pytest.mark.parametrize("age", [60.0, MONTH])
def test_a_round_ends_in_time_and_the_next_goes_on(age: float, small_pages: None) -> None:
    """Among new tokens, and in the walk."""
    world = SlowStore()
    world.put(600, ttl=60)
    world.advance(age)
    started = world.clock
    assert 80 < world.round(0) < 600
    assert world.clock - started <= sweep.SECONDS + 4 * world.page_seconds
    assert sum(world.round(0) for _ in range(4)) > 300
    assert world.stored == 1


def test_a_round_that_lacks_time_says_so_but_not_for_the_newest_tokens(small_pages: None) -> None:
    """The next round looks at these anyhow; otherwise the sweep would never pause while many log in."""
    world = SlowStore()
    world.put(600, ttl=MONTH)
    assert not world.perform(world.sweep.run(world.context, {}, world.clock))
    world.advance(60)
    assert world.perform(world.sweep.run(world.context, {}, world.clock))


@pytest.mark.parametrize("age", [60.0, MONTH])
def test_a_node_that_is_too_busy_for_a_page_in_a_round_removes_dead_tokens_all_the_same(
    age: float, small_pages: None
) -> None:
    """New tokens do not take the time from the dead ones, nor these from the walk."""
    world = SlowStore()
    world.page_seconds = 2 * sweep.SECONDS
    world.put(200, ttl=60)
    world.advance(age)
    for _ in range(12):
        world.put(1, ttl=MONTH)
        world.round(0)
    assert world.stored == 1 + 12


def test_what_is_due_waits_for_a_sweep_no_longer_than_seconds(small_pages: None) -> None:
    """A request for a sweep adds none to that of its round, and what a sweep leaves is for the next rounds."""
    world = SlowStore()
    world.put(5000, ttl=60)
    world.advance(60)
    for number in range(10):
        new_token(world, new_token(world, ttl=10 + 5 * number), ttl=10**5)
    world.must("POST", "auth/token/tidy")
    while due := world.due("token"):
        assert world.clock - queue.parse(due[0])[0] <= sweep.SECONDS + 4 * world.page_seconds + RETRY_INTERVAL
        world.advance(world.tick() - world.clock)
    for _ in range(50):
        world.advance(world.tick() - world.clock)
    assert world.stored == 1
