"""Due entries: what their keys contain, and when work is tried again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.context import queue
from cloudid_core.context.queue import Due, Job
from cloudid_core.deadline import Deadline
from cloudid_core.errors import Conflict
from cloudid_core.store import keys
from cloudid_core.store.changes import Changes

from ..provider.cloud import START, Setting

REFS = st.text(alphabet="ab/-.0", max_size=12)


def job(setting: Setting, key: str) -> Job:
    _, _, mount_id, ref = queue.parse(key)
    return Job(
        context=setting.context,
        key=key,
        mount_id=mount_id,
        ref=ref,
        now=START,
        deadline=Deadline(START + 60),
        fence={keys.LEADER_TERM: 0},
    )


@given(instant=st.integers(0, 9_999_999_999_999), ref=REFS)
def test_a_key_tells_what_it_was_made_of(instant: int, ref: str) -> None:
    """A reference may hold slashes, as lease ids do, and may be empty. A time is rounded up to a millisecond."""
    at, *others = queue.parse(keys.due(instant / 1000, queue.LEASE, "m", ref))
    assert others == [queue.LEASE, "m", ref]
    assert instant <= round(at * 1000) <= instant + 1


@pytest.mark.parametrize(
    "attempts, least, most", [(1, 1, 3), (2, 2, 6), (3, 4, 12), (8, 128, 384), (12, 1800, 5400), (1000, 1800, 5400)]
)
def test_pauses_double_up_to_an_hour_and_differ(attempts: int, least: float, most: float) -> None:
    setting = Setting()
    piece = job(setting, keys.due(START, queue.LEASE, "m", "r"))
    pauses = {setting.world.perform(queue.retry_at(piece, attempts)) - START for _ in range(20)}
    assert all(least <= pause <= most for pause in pauses)
    assert len(pauses) > 10


def test_an_entry_that_no_record_knows_is_dropped() -> None:
    setting = Setting()
    key = keys.due(START, queue.INTENT, "m", "r")
    records = setting.context.records
    setting.world.perform(records.commit(Changes({}, {key: Due()})))
    setting.world.perform(queue.drop(job(setting, key), keys.intent("m", "r"), None))
    assert setting.world.store.read(key) is None


def test_an_entry_is_kept_when_its_record_came_meanwhile() -> None:
    setting = Setting()
    key = keys.due(START, queue.INTENT, "m", "r")
    setting.world.perform(setting.context.records.commit(Changes({}, {key: Due(), keys.intent("m", "r"): Due()})))
    with pytest.raises(Conflict):
        setting.world.perform(queue.drop(job(setting, key), keys.intent("m", "r"), None))
    assert setting.world.store.read(key) is not None
