"""The reference store, against a model that is too simple to be wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.effects import ABSENT, Entry
from cloudid_core.errors import Conflict
from cloudid_core.store.memory import MemoryStore

KEYS = st.text(alphabet="ab/\u00e9\uffee\U0001f511", max_size=3)
VERSIONS = st.sampled_from(["right", "right", "right", "wrong"])


@st.composite
def commits(draw: st.DrawFn) -> tuple[dict[str, str], dict[str, bytes], tuple[str, ...]]:
    puts = draw(st.dictionaries(KEYS, st.binary(max_size=2), max_size=3))
    deletes = draw(st.lists(KEYS.filter(lambda key: key not in puts), max_size=3))
    return draw(st.dictionaries(KEYS, VERSIONS, max_size=2)), puts, tuple(deletes)


@given(st.lists(commits(), max_size=10), KEYS, KEYS, st.integers(1, 3))
def test_the_store_is_an_ordered_map_with_one_atomic_write(
    writes: list[tuple[dict[str, str], dict[str, bytes], tuple[str, ...]]], prefix: str, after: str, limit: int
) -> None:
    store = MemoryStore()
    model: dict[str, Entry] = {}
    highest = ABSENT
    for wishes, puts, deletes in writes:
        now = {key: model[key].version if key in model else ABSENT for key in wishes}
        expects = {key: now[key] + (wish == "wrong") for key, wish in wishes.items()}
        if expects != now:
            with pytest.raises(Conflict):
                store.commit(expects, puts, deletes)
        else:
            version = store.commit(expects, puts, deletes)
            assert version > highest
            highest = version
            model = {key: entry for key, entry in model.items() if key not in deletes}
            model |= {key: Entry(value, version) for key, value in puts.items()}
        listed = sorted(key for key in model if key.startswith(prefix) and key > after)
        assert store.list(prefix, after, limit) == tuple(listed[:limit])
        assert store.list("", "", 100) == tuple(sorted(key for key in model if key))
        assert {key: store.read(key) for key in {*model, *puts, *deletes}} == {
            key: model.get(key) for key in {*model, *puts, *deletes}
        }


def test_a_conflict_names_the_entry() -> None:
    with pytest.raises(Conflict, match="a"):
        MemoryStore().commit({"a": 1}, {}, ())


def test_a_copy_goes_its_own_way() -> None:
    store = MemoryStore()
    store.commit({}, {"a": b"1"}, ())
    twin = store.copy()
    store.commit({}, {"b": b"2"}, ("a",))
    assert (twin.list("", "", 10), twin.read("a")) == (("a",), Entry(b"1", 1))
    assert twin.commit({"a": 1}, {"c": b"3"}, ()) == 2
    assert store.list("", "", 10) == ("b",)
