"""The state of a rotation: no key is lost from it, and it is due exactly while something is to be done."""

from __future__ import annotations

import pytest
from attrs import evolve

from cloudid_core.credentials import Key
from cloudid_core.rotation.record import Phase, Rotation, changed, given_up, overruled
from cloudid_core.store.records import Found
from cloudid_core.values.secret import Secret


def key(name: str, *, ours: bool = True) -> Key:
    return Key(id=name, secret=Secret(f"secret of {name}"), made_at=5.0 if ours else None)


PROVING = Rotation(
    mount_id="m", phase=Phase.PROVING, new=key("new"), replaced=key("old"), outgoing=(key("older"),), due_at=100.0
)


@pytest.mark.parametrize("phase", Phase)
def test_what_is_not_idle_is_due(phase: Phase) -> None:
    changes = changed(None, evolve(PROVING, phase=phase))
    assert changes.expects == {PROVING.key: 0}
    assert (PROVING.due_key in changes.puts) == (phase is not Phase.IDLE)


def test_there_is_one_due_entry_at_a_time() -> None:
    later = evolve(PROVING, due_at=200.0)
    found = Found(PROVING.key, PROVING, 7)
    assert changed(found, later).expects == {PROVING.key: 7}
    assert changed(found, later).deletes == (PROVING.due_key,)
    assert changed(found, evolve(PROVING, error="x")).deletes == ()
    assert changed(found, evolve(PROVING, phase=Phase.IDLE)).deletes == (PROVING.due_key,)
    assert changed(found.with_record(evolve(PROVING, phase=Phase.IDLE)), later).deletes == ()


def test_a_secret_is_found_among_the_keys() -> None:
    assert [found and found.id for found in map(PROVING.key_of, (Secret("secret of older"), Secret("x")))] == [
        "older",
        None,
    ]


@pytest.mark.parametrize(
    "ours, expires_at, is_alive", [(True, None, True), (True, 8.0, True), (True, 7.0, False), (False, None, False)]
)
def test_a_key_that_the_service_made_lives_until_its_end(ours: bool, expires_at: float | None, is_alive: bool) -> None:
    current = evolve(key("new", ours=ours), expires_at=expires_at)
    assert Rotation(mount_id="m", current=current, due_at=0.0).has_living_key(7.0) is is_alive


def test_giving_up_keeps_the_configured_secret_and_sees_to_older_ones() -> None:
    after = given_up(evolve(PROVING, attempts=3), 7.0, error="why")
    assert (after.phase, after.due_at, after.attempts, after.error) == (Phase.OVERLAPPING, 7.0, 0, "why")
    assert (after.new, after.replaced) == (None, None)
    assert after.current == PROVING.replaced
    assert after.outgoing == PROVING.outgoing


def test_giving_up_ends_where_nothing_older_is_left_or_the_secret_is_not_ours() -> None:
    assert given_up(evolve(PROVING, outgoing=()), 7.0, error="").is_idle
    foreign = given_up(evolve(PROVING, replaced=key("old", ours=False)), 7.0, error="")
    assert (foreign.is_idle, foreign.current) == (True, None)


def test_overruled_it_forgets_only_what_is_not_ours() -> None:
    overlapping = evolve(PROVING, phase=Phase.OVERLAPPING, new=None, current=key("new"))
    assert [each.id for each in overruled(overlapping, "why").known_keys] == ["new", "older", "old"]
    foreign = evolve(overlapping, replaced=key("old", ours=False))
    assert [each.id for each in overruled(foreign, "why").known_keys] == ["new", "older"]


def test_no_secret_is_printed() -> None:
    assert "secret of" not in repr(PROVING)
