"""Caches: bounded maps that forget what was not used for longest."""

from __future__ import annotations

from collections import OrderedDict, deque

from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.caches import Bounded, Caches, Weighed
from cloudid_core.settings import Settings
from cloudid_core.values.secret import Secret

KEYS = st.integers(0, 5)
STEPS = st.lists(st.tuples(st.sampled_from(["get", "peek", "put", "drop"]), KEYS), max_size=40)


@given(st.integers(0, 4), STEPS)
def test_a_cache_is_a_map_that_forgets_the_longest_unused(size: int, steps: list[tuple[str, int]]) -> None:
    cache: Bounded[int, str] = Bounded(size)
    model: OrderedDict[int, str] = OrderedDict()
    for number, (step, key) in enumerate(steps):
        match step:
            case "get":
                assert cache.get(key) == model.get(key)
                if key in model:
                    model.move_to_end(key)
            case "peek":
                assert cache.peek(key) == model.get(key)
            case "put":
                cache.put(key, f"{number}")
                model[key] = f"{number}"
                model.move_to_end(key)
                if len(model) > size:
                    model.popitem(last=False)
            case "drop":
                cache.drop(key)
                model.pop(key, None)
        assert list(cache) == list(model)
        assert len(cache) == len(model) <= size


@given(st.integers(0, 4), st.integers(0, 12), st.lists(st.tuples(st.booleans(), KEYS, st.integers(0, 9)), max_size=40))
def test_a_weighed_cache_also_forgets_the_longest_unused_while_it_weighs_too_much(
    size: int, most: int, steps: list[tuple[bool, int, int]]
) -> None:
    cache: Weighed[int, str] = Weighed(size, most)
    model: OrderedDict[int, int] = OrderedDict()
    for is_put, key, weight in steps:
        model.pop(key, None)
        if is_put:
            cache.put(key, "value", weight)
            model[key] = weight
            while len(model) > size or (len(model) > 1 and sum(model.values()) > most):
                model.popitem(last=False)
        else:
            cache.drop(key)
        assert list(cache) == list(model)
        assert cache.weight == sum(model.values())
    cache.clear()
    assert (len(cache), cache.weight) == (0, 0)


def test_a_cache_can_change_while_its_keys_are_gone_through() -> None:
    cache: Bounded[str, int] = Bounded(3)
    for key in "abc":
        cache.put(key, 1)
    for key in cache:
        cache.drop(key)
    assert len(cache) == 0


def test_a_cleared_cache_is_empty() -> None:
    cache: Bounded[str, int] = Bounded(3)
    cache.put("a", 1)
    cache.clear()
    assert (len(cache), cache.get("a")) == (0, None)


def test_every_cache_of_a_service_is_bounded() -> None:
    settings = Settings(
        master_key=Secret("00" * 32),
        record_cache_size=16,
        signature_cache_size=0,
        fact_cache_size=3,
        source_cache_size=16,
    )
    caches = Caches(settings)
    sizes: dict[str, int] = {}
    for name, cache in vars(caches).items():
        if isinstance(cache, int):  # how many nodes share what a cache counts
            continue
        if isinstance(cache, deque):
            sizes[name] = cache.maxlen or 2**20
            continue
        for number in range(cache.size + 10):
            cache.put(str(number), number)
        sizes[name] = len(cache)
    assert sizes["records"] == 16
    assert sizes["signatures"] == 0
    assert sizes["facts"] == 3
    assert max(sizes.values()) <= 2**16


def test_two_services_share_no_cache() -> None:
    settings = Settings(master_key=Secret("00" * 32))
    first, second = Caches(settings), Caches(settings)
    first.records.put("a", 1)
    assert second.records.get("a") is None
