"""Names of entries: they sort by time, and nobody's prefix covers somebody else's entries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.store import keys

INSTANTS = st.floats(0, 9_999_999_999, allow_nan=False)
IDS = st.text(alphabet="abc0123", min_size=1, max_size=4)


@given(INSTANTS, INSTANTS)
def test_what_is_due_earlier_sorts_earlier(one: float, other: float) -> None:
    """To the millisecond, within its queue."""
    earlier, later = sorted((int(one * 1000), int(other * 1000)))
    if earlier < later:
        assert keys.due(earlier / 1000, "k", "m", "z") < keys.due((later + 0.5) / 1000, "k", "m", "a")


def test_a_due_time_has_thirteen_digits_and_is_never_negative() -> None:
    assert keys.due_time(1_700_000_000.123) == "1700000000123"
    assert keys.due_time(5) == "0000000005000"
    assert keys.due_time(-5) == "0000000000000"


def test_a_due_key_tells_mount_kind_time_and_what_it_is_about() -> None:
    assert keys.due(5, "lease", "m", "abc") == "due/m/lease/0000000005000/abc"


PREFIXES = [
    (keys.children, lambda owner, name: keys.child(owner, name)),
    (keys.roles, lambda owner, name: keys.role(owner, name)),
    (keys.mount, lambda owner, name: keys.role(owner, name)),
    (keys.mount, lambda owner, name: keys.config(owner)),
    (keys.mount, lambda owner, name: keys.rotation(owner)),
    (keys.mount_leases, lambda owner, name: keys.mount_lease(owner, name)),
    (keys.token_leases, lambda owner, name: keys.token_lease(owner, name)),
    (keys.all_wrapped_by, lambda owner, name: keys.wrapped_by(owner, 5.0, name)),
    (keys.all_wrapped_for, lambda owner, name: keys.wrapped_for(owner, 5.0, name, 1)),
    (keys.intents, lambda owner, name: keys.intent(owner, name)),
    (lambda owner: keys.due_queue("m", owner), lambda owner, name: keys.due(5, owner, "m", name)),
    (lambda owner: keys.due_queue(owner, "k"), lambda owner, name: keys.due(5, "k", owner, name)),
]


@pytest.mark.parametrize("prefix, name", PREFIXES)
@given(owner=IDS, other=IDS, entry=IDS)
def test_a_prefix_covers_exactly_the_entries_of_its_owner(
    prefix: object, name: object, owner: str, other: str, entry: str
) -> None:
    """Even if one id starts with another."""
    assert callable(prefix)
    assert callable(name)
    assert name(owner, entry).startswith(prefix(owner))
    assert name(other, entry).startswith(prefix(owner)) == (owner == other)


def test_families_of_entries_do_not_mix() -> None:
    """No family's prefix covers another family's entry."""
    entries = {
        keys.TOKENS: keys.token("a"),
        keys.children("a"): keys.child("a", "b"),
        keys.POLICIES: keys.policy("a"),
        keys.roles("m"): keys.role("m", "a"),
        keys.mount_leases("m"): keys.mount_lease("m", "a"),
        keys.intents("m"): keys.intent("m", "a"),
        keys.LEASES: keys.lease("a"),
        keys.token_leases("a"): keys.token_lease("a", "b"),
        keys.all_wrapped_by("a"): keys.wrapped_by("a", 1, "b"),
        keys.all_wrapped_for("a"): keys.wrapped_for("a", 1, "b", 1),
        keys.DUE: keys.due(1, "a", "m", "b"),
        keys.STUCK: keys.stuck("m", "a"),
    }
    single = [keys.RING, keys.MOUNTS, keys.config("m"), keys.rotation("m"), keys.LEADER_TERM, keys.LEADER_UNTIL]
    for prefix in entries:
        assert [key for key in (*entries.values(), *single) if key.startswith(prefix)] == [entries[prefix]]
    assert len({*entries.values(), *single}) == len(entries) + len(single)
