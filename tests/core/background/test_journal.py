"""The journal: whatever becomes of a request, nothing that it may have made is forgotten."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import pytest
from attrs import evolve

from cloudid_core.background import journal
from cloudid_core.background.journal import (
    Intent,
    abandon,
    abandoned_intent,
    closing,
    find_intent,
    look_again,
    marker,
    open_intent,
    undo,
)
from cloudid_core.context import queue
from cloudid_core.context.context import Context
from cloudid_core.context.queue import Due, Job
from cloudid_core.deadline import Deadline
from cloudid_core.effects import Commit, Instant, Now
from cloudid_core.errors import CloudidError, Code, Conflict, ProviderProblem, Refused, StoreFailed
from cloudid_core.events import IntentChanged
from cloudid_core.mounts import mount_table
from cloudid_core.provider.applications import ensure_application
from cloudid_core.provider.provisioned import Provisioned, Removal
from cloudid_core.routing.components import mount_client
from cloudid_core.store import keys
from cloudid_core.store.changes import Changes
from cloudid_core.store.records import Found
from cloudid_core.testing.exhaustive import every_fault
from cloudid_core.testing.faults import Crashed, Fault, FaultKind
from tests.engines import SecretsEngine, engine_with_roles
from tests.installation import SETTLE_TIME

GUARD: Final = "guard"
RECORD: Final = "record"
"""Stands for a lease or role that accounts for what was made."""
DEADLINE: Final = 60.0
GRACE: Final = 30.0
KINDS: Final = frozenset(FaultKind) - {FaultKind.CRASH_BEFORE}
"""A crash before an effect is one after the effect before it, or nothing has happened yet."""


async def begin(context: Context, mount_id: str, now: Instant, intent_id: str = "i") -> Found[Intent]:
    provisioned = Provisioned(made_at=now, unique_name=marker(context, intent_id))
    return await open_intent(context, intent_id, mount_id, provisioned, until=now + DEADLINE, expects={GUARD: 0})


async def make(context: Context, mount_id: str) -> None:
    """What a request does: intent, call, account."""
    now = await Now()
    intent = await begin(context, mount_id, now)
    try:
        client = await mount_client(context, mount_id, Deadline(now + DEADLINE))
        name = marker(context, "i")
        await ensure_application(client, name)
        await context.records.commit(Changes(puts={RECORD: Due()}) | closing(intent))
    except CloudidError:
        await abandon(context, intent)
        raise


def story(world: SecretsEngine) -> None:
    world.perform(make(world.context, world.mount().id))


def opened(world: SecretsEngine) -> Found[Intent]:
    return world.perform(begin(world.context, world.mount().id, world.clock))


def made_and_abandoned(world: SecretsEngine) -> SecretsEngine:
    world.perform(abandon(world.context, made(world)))
    return world


def found(world: SecretsEngine) -> Intent | None:
    intent = world.perform(find_intent(world.context, world.mount().id, "i"))
    return intent.record if intent else None


def made(world: SecretsEngine) -> Found[Intent]:
    """An application whose request died."""
    intent = opened(world)
    call_provider(world)
    return intent


def call_provider(world: SecretsEngine) -> None:
    client = world.perform(mount_client(world.context, world.mount().id, Deadline(world.clock + DEADLINE)))
    name = marker(world.context, "i")
    world.perform(ensure_application(client, name))


def test_an_intent_is_written_before_the_provider_is_touched() -> None:
    world = engine_with_roles()
    story(world)
    kinds = [type(effect).__name__ for _, effect in world.trace]
    assert kinds.index("Commit") < kinds.index("CallProvider")
    assert found(world) is None
    assert world.due(queue.INTENT) == []


def test_no_intent_where_what_it_rests_on_has_changed() -> None:
    world = engine_with_roles()
    world.perform(world.context.records.commit(Changes({}, {GUARD: Due()})))
    with pytest.raises(Conflict):
        opened(world)
    assert (found(world), world.due(queue.INTENT)) == (None, [])


def test_an_intent_of_a_dead_request_waits_until_that_can_no_longer_live() -> None:
    world = engine_with_roles()
    made(world)
    world.pass_time(DEADLINE + GRACE - 5)
    assert world.alive("application")
    world.pass_time(10)
    assert world.alive("application") == []


def test_what_was_certainly_removed_is_done_at_once() -> None:
    world = engine_with_roles()
    intent = made(world)
    world.perform(abandon(world.context, intent))
    world.tick()
    assert (found(world), world.alive("application"), world.due(queue.INTENT)) == (None, [], [])


def test_what_becomes_of_an_intent_is_told() -> None:
    world = engine_with_roles()
    story(world)
    made_and_abandoned(world)
    world.tick()
    told = [(event.state, event.attempts) for event in world.events if isinstance(event, IntentChanged)]
    assert told == [("opened", 0), ("closed", 0), ("opened", 0), ("abandoned", 0), ("undone", 1)]


def test_it_is_told_that_a_role_gave_its_application_to_the_journal() -> None:
    world = engine_with_roles()
    world.must("POST", "cloud/roles/kept", {"azure_roles": world.grants(), "persist_app": True})
    world.must("GET", "cloud/creds/kept")
    world.events.clear()
    world.must("DELETE", "cloud/roles/kept")
    assert [event.state for event in world.events if isinstance(event, IntentChanged)] == ["abandoned"]


def test_what_is_looked_for_once_more_is_told() -> None:
    world = engine_with_roles()
    intent = opened(world)
    world.pass_time(DEADLINE + GRACE + 2 * SETTLE_TIME)
    world.events.clear()
    world.perform(abandon(world.context, intent))
    assert [event.state for event in world.events if isinstance(event, IntentChanged)] == ["abandoned"]


def test_a_first_failure_is_followed_by_the_first_pause() -> None:
    world = engine_with_roles()
    made_and_abandoned(world)
    world.fail("graph", status=403)
    world.tick()
    failing = found(world)
    assert failing is not None
    least, greatest = (queue.PAUSES.pause(1, chance) for chance in (0, 1))
    assert (failing.attempts, least <= failing.due_at - world.clock <= greatest) == (1, True)


def test_of_reasons_that_differ_in_the_request_of_the_provider_one_is_shown() -> None:
    texts = (f"a (request 1){journal.BETWEEN_REASONS}b (request 1)", "", "a (request 2)", "c")
    assert journal.different_reasons(texts) == ("a (request 1)", "b (request 1)", "c")


@pytest.mark.parametrize("more", [0, 1])
def test_reasons_are_stored_up_to_the_longest_text_and_never_cut(more: int) -> None:
    """Of two reasons that fill the bound exactly, both are kept. With one more character, only the first is."""
    lengths = (journal.LONGEST_TEXT // 2, journal.LONGEST_TEXT - journal.LONGEST_TEXT // 2 + more)
    first, second = "a" * lengths[0], "b" * (lengths[1] - len(journal.BETWEEN_REASONS))
    text = journal.reason_text(Removal(Provisioned(made_at=0.0), waiting=(first, second, "c")))
    assert text == (first if more else f"{first}{journal.BETWEEN_REASONS}{second}")


def test_what_is_not_shown_is_looked_for_until_the_directory_has_settled() -> None:
    world = engine_with_roles()
    intent = opened(world)
    world.perform(abandon(world.context, intent))
    world.pass_time(SETTLE_TIME - 10)
    waiting = found(world)
    assert waiting is not None
    assert "settle time" in waiting.reason
    world.pass_time(600)
    assert found(world) is None


def test_an_object_that_shows_late_is_removed() -> None:
    """The answer was lost, and the directory does not show it yet when it is looked for first."""
    world = engine_with_roles()
    world.behave(delays={"reads": 100, "writes": 100, "lists": 100})
    intent = made(world)
    world.perform(abandon(world.context, intent))
    world.pass_time(50)
    assert world.alive("application")
    world.pass_time(2 * SETTLE_TIME)
    assert (world.alive("application"), found(world)) == ([], None)


def test_failures_are_kept_with_their_reason_and_tried_again_later_and_later() -> None:
    world = engine_with_roles()
    world.fail("graph", status=403, code="Authorization_RequestDenied")
    world.perform(abandon(world.context, opened(world)))
    attempts = []
    for _ in range(5):
        world.pass_time(600)
        failing = found(world)
        assert failing is not None
        assert "403 Authorization_RequestDenied" in failing.reason
        attempts.append(failing.attempts)
    assert attempts[0] >= 3
    assert attempts[-1] - attempts[-2] <= 2
    world.heal()
    world.pass_time(2 * queue.PAUSES.longest)
    assert found(world) is None


def test_without_a_configuration_it_waits_for_one() -> None:
    world = engine_with_roles()
    intent = made(world)
    config = world.store.read(keys.config(world.mount().id))
    assert config is not None
    world.store.commit({}, {}, (keys.config(world.mount().id),))
    world.perform(abandon(world.context, intent))
    world.pass_time(600)
    waiting = found(world)
    assert waiting is not None
    assert waiting.reason == "provider: the mount is not configured"
    world.store.commit({}, {keys.config(world.mount().id): config.value}, ())
    world.pass_time(2 * queue.PAUSES.longest)
    assert (found(world), world.alive("application")) == (None, [])


def test_nothing_is_taken_for_gone_because_another_tenant_does_not_know_it() -> None:
    world = engine_with_roles()
    intent = opened(world)
    elsewhere = evolve(intent.record, provisioned=evolve(intent.record.provisioned, tenant="elsewhere"))
    world.perform(world.context.records.commit(Changes(intent.expected) | elsewhere.changes))
    world.pass_time(4 * SETTLE_TIME)
    waiting = found(world)
    assert waiting is not None
    assert journal.OTHER_TENANT in waiting.reason


def test_abandoning_an_intent_does_not_hide_the_failure_of_its_request() -> None:
    """Neither when the background has the intent already, nor when the store is gone."""
    world = engine_with_roles()
    intent = made(world)
    world.perform(
        world.context.records.commit(Changes(intent.expected, {intent.key: evolve(intent.record, attempts=1)}))
    )
    world.perform(abandon(world.context, intent))
    again = opened_again(world)
    world.inject(Fault(len(world.trace) + 2, FaultKind.FAIL))
    world.perform(abandon(world.context, again))
    assert found(world) == again.record


@pytest.mark.parametrize("is_undone", [True, False])
def test_what_a_request_made_after_its_time_is_looked_for_once_more(is_undone: bool) -> None:
    """Its machine stood still between its last look at the clock and its call."""
    world = engine_with_roles()
    intent = opened(world)
    world.pass_time(DEADLINE + GRACE + (2 * SETTLE_TIME if is_undone else 1))
    assert (found(world) is None) is is_undone
    call_provider(world)
    world.perform(abandon(world.context, intent))
    assert len(world.due(queue.INTENT)) == 1
    world.pass_time(3 * SETTLE_TIME)
    assert world.alive("application") == []
    assert found(world) is None


def test_what_others_have_undone_in_time_is_not_looked_for_again() -> None:
    world = engine_with_roles()
    intent = made(world)
    world.perform(abandon(world.context, intent))
    world.tick()
    world.perform(abandon(world.context, intent))
    assert (found(world), world.due(queue.INTENT)) == (None, [])


def test_what_was_made_when_nothing_names_it_any_more_is_looked_for() -> None:
    world = engine_with_roles()
    call_provider(world)
    provisioned = Provisioned(made_at=world.clock, unique_name=marker(world.context, "i"))
    abandoned = abandoned_intent("i", world.mount().id, provisioned, world.clock)
    world.perform(look_again(world.context, abandoned, StoreFailed("why")))
    world.pass_time(3 * SETTLE_TIME)
    assert (world.alive("application"), found(world)) == ([], None)


def test_what_is_abandoned_after_its_mount_was_wiped_is_told_and_forgotten() -> None:
    world = engine_with_roles()
    intent = opened(world)
    world.must("DELETE", "sys/mounts/cloud")
    world.pass_time(DEADLINE + GRACE + 2 * SETTLE_TIME)
    assert world.perform(mount_table(world.context.records)).record.retired == {}
    world.perform(abandon(world.context, intent))
    world.pass_time(3 * SETTLE_TIME)
    assert world.due(queue.INTENT) == []
    assert world.keys(intent.key) == []
    told = [event for event in world.events if isinstance(event, IntentChanged)]
    assert (told[-1].state, told[-1].reason) == ("left", journal.MOUNT_GONE)


def test_an_intent_without_its_mount_goes_with_its_due_entry_in_one_commit() -> None:
    world = engine_with_roles()
    intent = opened(world)
    world.must("DELETE", "sys/mounts/cloud")
    world.pass_time(DEADLINE + GRACE + 2 * SETTLE_TIME)
    world.perform(abandon(world.context, intent))
    begin = len(world.trace)
    world.tick()
    (commit,) = (each for _, each in world.trace[begin:] if isinstance(each, Commit) and intent.key in each.deletes)
    assert any(key.startswith(keys.DUE) for key in commit.deletes)
    assert intent.key in commit.expects


def test_what_may_be_accounted_for_is_not_removed() -> None:
    world = engine_with_roles()
    intent = made(world)
    world.perform(world.context.records.commit(Changes(puts={RECORD: Due()}) | closing(intent)))
    world.pass_time(DEADLINE + GRACE + 1)
    world.perform(abandon(world.context, intent, Refused(Code.COMMIT_UNRESOLVED)))
    world.pass_time(3 * SETTLE_TIME)
    assert len(world.alive("application")) == 1


def opened_again(world: SecretsEngine) -> Found[Intent]:
    intent = world.perform(find_intent(world.context, world.mount().id, "i"))
    assert intent is not None
    return intent


def test_a_request_that_is_late_finds_its_intent_taken() -> None:
    """It cannot account any more for what the background is removing."""
    world = engine_with_roles()
    intent = made(world)
    world.fail("graph", status=403)
    world.pass_time(DEADLINE + GRACE + 1)
    with pytest.raises(Conflict):
        world.perform(world.context.records.commit(Changes(puts={RECORD: Due()}) | closing(intent)))


def test_a_node_that_lost_the_leadership_does_not_touch_the_provider() -> None:
    world = engine_with_roles()
    intent = opened_again(made_and_abandoned(world))
    calls = len(world.calls())
    job = Job(
        context=world.context,
        key=intent.record.due_key,
        mount_id=world.mount().id,
        ref="i",
        now=world.clock,
        deadline=Deadline(world.clock + 60),
        fence={keys.LEADER_TERM: 12345},
    )
    with pytest.raises(Conflict):
        world.perform(undo(job, intent))
    assert len(world.calls()) == calls
    assert found(world) == intent.record


def test_no_fault_at_a_request_leaves_anything_behind() -> None:
    """Made and accounted for, or neither; whatever goes wrong where."""
    for world in every_fault(story, engine_with_roles, kinds=KINDS):
        with suppress(Crashed, CloudidError):
            story(world)
        check_accounted(world)
        world.restart()
        world.pass_time(DEADLINE + GRACE + 3 * SETTLE_TIME)
        recorded = world.store.read(RECORD) is not None
        assert (len(world.alive("application")) == 1) == recorded, world
        assert (found(world), world.due(queue.INTENT)) == (None, []), world


def check_accounted(world: SecretsEngine) -> None:
    """At every instant: what is alive has an intent or a record, and an intent has its due entry."""
    world.restart()
    intent = found(world)
    if world.alive("application"):
        assert intent is not None or world.store.read(RECORD) is not None
    assert world.due(queue.INTENT) == ([intent.due_key] if intent else [])


def test_no_fault_at_an_undoing_forgets_anything() -> None:
    for world in every_fault(SecretsEngine.tick, lambda: made_and_abandoned(engine_with_roles()), kinds=KINDS):
        with suppress(Crashed, StoreFailed, ProviderProblem, Refused):
            world.tick()
        check_accounted(world)
        world.pass_time(4 * SETTLE_TIME)
        assert (world.alive("application"), found(world), world.due(queue.INTENT)) == ([], None, []), world


def test_a_stale_due_entry_is_dropped_and_does_nothing() -> None:
    world = engine_with_roles()
    made(world)
    stale = keys.due(world.clock - 5, queue.INTENT, world.mount().id, "i")
    unknown = keys.due(world.clock - 5, queue.INTENT, world.mount().id, "unknown")
    world.perform(world.context.records.commit(Changes({}, {stale: Due(), unknown: Due()})))
    world.tick()
    intent = found(world)
    assert intent is not None
    assert world.due(queue.INTENT) == [intent.due_key]
    assert world.alive("application")
