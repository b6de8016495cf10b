"""The duty: one node holds it, loses it when it is silent, and cannot write any more then."""

from __future__ import annotations

import pytest

from cloudid_core.background.leadership import LENGTH, hold_leadership, is_leader, release_leadership
from cloudid_core.context.queue import Due
from cloudid_core.errors import Conflict
from cloudid_core.store import keys
from cloudid_core.store.changes import Changes
from cloudid_core.testing.faults import Fault, FaultKind

from ..provider.cloud import START, Setting


def hold(setting: Setting, node: str, after: float = 0.0, *, take_over: bool = False) -> dict[str, int] | None:
    return setting.world.perform(hold_leadership(setting.context, node, START + after, take_over=take_over))


def test_the_first_node_that_asks_leads_and_goes_on_leading() -> None:
    setting = Setting()
    fence = hold(setting, "a")
    assert fence is not None
    assert hold(setting, "b") is None
    assert hold(setting, "a", 30) == fence


def test_renewal_does_not_change_the_term() -> None:
    """Work that began before it can still be committed."""
    setting = Setting()
    fence = hold(setting, "a")
    for after in range(0, 600, 50):
        assert hold(setting, "a", after) == fence
        assert hold(setting, "b", after + 49) is None


def test_a_silent_holder_is_replaced_and_can_write_no_more() -> None:
    setting = Setting()
    old = hold(setting, "a")
    assert old is not None
    assert hold(setting, "b", LENGTH - 1) is None
    new = hold(setting, "b", LENGTH)
    assert new is not None
    assert new != old
    with pytest.raises(Conflict):
        setting.world.perform(setting.context.records.commit(Changes(old, {"x": Due()})))
    assert setting.world.perform(setting.context.records.commit(Changes(new, {"x": Due()})))
    assert hold(setting, "a", LENGTH + 1) is None


def test_a_node_that_starts_takes_over_at_once() -> None:
    """What a dead process left behind does not wait until its duty has run out."""
    setting = Setting()

    def leaders() -> list[str]:
        return [node for node in "ab" if setting.world.perform(is_leader(setting.context, node))]

    assert leaders() == []
    old = hold(setting, "a")
    assert leaders() == ["a"]
    new = hold(setting, "b", 1, take_over=True)
    assert new is not None
    assert new != old
    assert hold(setting, "a", 2) is None
    assert leaders() == ["b"]


def release(setting: Setting, node: str) -> None:
    setting.world.perform(release_leadership(setting.context, node))


def test_leadership_that_is_released_is_taken_by_the_next_node_that_looks() -> None:
    setting = Setting()
    old = hold(setting, "a")
    release(setting, "a")
    new = hold(setting, "b", 1)
    assert new is not None
    assert new != old
    assert hold(setting, "a", 2) is None


def test_a_node_that_released_its_leadership_can_write_no_more() -> None:
    """Even before another node leads."""
    setting = Setting()
    fence = hold(setting, "a")
    assert fence is not None
    release(setting, "a")
    with pytest.raises(Conflict):
        setting.world.perform(setting.context.records.commit(Changes(fence, {"x": Due()})))


def test_a_node_that_does_not_lead_releases_nothing() -> None:
    setting = Setting()
    release(setting, "a")
    fence = hold(setting, "a")
    release(setting, "b")
    assert hold(setting, "b", 1) is None
    assert hold(setting, "a", 2) == fence


@pytest.mark.parametrize("node", ["a", "b"])
def test_a_clock_that_was_set_back_does_not_leave_the_work_without_a_leader(node: str) -> None:
    setting = Setting()
    hold(setting, "a")
    assert hold(setting, node, -1_000_000) is not None
    assert hold(setting, "c", -999_999) is None


def test_of_two_nodes_that_ask_at_the_same_time_one_leads() -> None:
    setting = Setting()
    tasks = [setting.world.spawn(hold_leadership(setting.context, node, START)) for node in "abc"]
    setting.world.settle()
    assert sum(task.result() is not None for task in tasks) == 1


def test_an_unknown_outcome_is_looked_up() -> None:
    setting = Setting()
    setting.world.inject(Fault(len(setting.world.trace) + 3, FaultKind.LOST_ANSWER))
    fence = hold(setting, "a")
    entry = setting.world.store.read(keys.LEADER_TERM)
    assert entry is not None
    assert fence == {keys.LEADER_TERM: entry.version}
