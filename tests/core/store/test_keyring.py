"""The key ring: opened by the master key only, and never used beyond what it has reserved."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from attrs import evolve

from cloudid_core.background.queue import Due
from cloudid_core.errors import Code, Refused
from cloudid_core.foundation.caches import Caches
from cloudid_core.foundation.components import Catalog
from cloudid_core.foundation.context import Context
from cloudid_core.settings import Settings
from cloudid_core.store import keys
from cloudid_core.store.changes import Changes
from cloudid_core.store.keyring import KEYRING_BYTES, keep_reserve, make_keyring, open_keyring, seal_keyring
from cloudid_core.store.records import Records
from cloudid_core.store.sealing import RESERVE, TURN_OVER, Keyring, Sealer, term_of
from cloudid_core.testing import World
from cloudid_core.testing.exhaustive import every_fault
from cloudid_core.testing.faults import FaultKind
from cloudid_core.values.secret import Secret

SETTINGS = Settings(master_key=Secret("5a" * 32))


def initialised(reserved: int = 0) -> World:
    """A world whose store has a ring with a key that was used so often."""
    world = World()
    ring = make_keyring(world.clock, bytes(range(KEYRING_BYTES % 256)).ljust(KEYRING_BYTES, b"\1"))
    ring = evolve(ring, data_keys=(evolve(ring.data_keys[0], reserved=reserved),))
    world.store.commit({}, {keys.RING: world.perform(seal_keyring(SETTINGS, ring))}, ())
    return world


def node(world: World) -> Context:
    caches = Caches(SETTINGS)
    return Context(
        SETTINGS, Records(Sealer(world.perform(open_keyring(SETTINGS))), caches.records), caches, Catalog(())
    )


def stored(world: World) -> Keyring:
    """The ring as the next node will find it, but for what that reserves."""
    copied = World(store=world.store.copy())
    return copied.perform(open_keyring(SETTINGS))


def test_no_ring_no_service() -> None:
    with pytest.raises(Refused) as caught:
        World().perform(open_keyring(SETTINGS))
    assert caught.value.code is Code.NOT_INITIALISED


def test_the_wrong_master_key_does_not_open_it() -> None:
    with pytest.raises(Refused) as caught:
        initialised().perform(open_keyring(evolve(SETTINGS, master_key=Secret("a5" * 32))))
    assert caught.value.code is Code.SEALED


def test_keys_are_all_different() -> None:
    ring = make_keyring(0.0, bytes(range(KEYRING_BYTES)))
    secrets = {key.reveal() for key in (ring.current.key, ring.token_key, ring.accessor_key, ring.batch_key)}
    assert len(secrets) == 4
    assert len(ring.installation) == 16


def test_every_opening_reserves_a_block_of_its_own() -> None:
    world = initialised()
    reserved = [node(world).records.sealer.keyring.current.reserved for _ in range(3)]
    assert reserved == [RESERVE, 2 * RESERVE, 3 * RESERVE]


def test_nodes_that_open_it_at_the_same_time_reserve_one_after_the_other() -> None:
    world = initialised()
    tasks = [world.spawn(open_keyring(SETTINGS)) for _ in range(3)]
    world.settle()
    assert sorted(task.result().current.reserved for task in tasks) == [RESERVE, 2 * RESERVE, 3 * RESERVE]


def test_a_reserve_is_renewed_when_half_of_it_is_used() -> None:
    world = initialised()
    context = node(world)
    sealer = context.records.sealer
    world.perform(keep_reserve(context))
    assert sealer.left == RESERVE
    sealer.left = RESERVE // 2
    world.perform(keep_reserve(context))
    assert (sealer.left, sealer.keyring.current.reserved) == (RESERVE, 2 * RESERVE)


def test_the_key_is_turned_over_and_what_the_old_one_sealed_is_still_read() -> None:
    world = initialised(TURN_OVER - RESERVE)
    context = node(world)
    records = context.records
    world.perform(records.commit(Changes({}, {"old": Due()})))
    records.sealer.left = 0
    world.perform(keep_reserve(context))
    world.perform(records.commit(Changes({}, {"new": Due()})))
    terms = [term_of(entry.value) for key in ("old", "new") if (entry := world.store.read(key))]
    assert terms == [1, 2]
    for reader in (context, node(world)):
        for key in ("old", "new"):
            assert world.perform(reader.records.find(key, Due))


def test_a_key_that_another_node_has_begun_is_adopted_not_overwritten() -> None:
    world = initialised(TURN_OVER - 2 * RESERVE)
    slow, quick = node(world), node(world)
    quick.records.sealer.left = 0
    world.perform(keep_reserve(quick))
    world.perform(quick.records.commit(Changes({}, {"theirs": Due()})))
    slow.records.sealer.left = 0
    world.perform(keep_reserve(slow))
    assert slow.records.sealer.keyring.data_keys[-1].key == quick.records.sealer.keyring.data_keys[-1].key
    assert world.perform(slow.records.find("theirs", Due))


def _turn_over(world: World) -> Context:
    context = node(world)
    context.records.sealer.left = 0
    world.perform(keep_reserve(context))
    return context


def test_no_fault_loses_a_key() -> None:
    def worlds() -> Iterator[World]:
        kinds = frozenset(FaultKind) - {FaultKind.CRASH_AFTER, FaultKind.CRASH_BEFORE}
        yield from every_fault(_turn_over, lambda: initialised(TURN_OVER - RESERVE), kinds=kinds)

    for world in worlds():
        try:
            context = _turn_over(world)
        except Exception:  # noqa: BLE001  # whatever it was
            context = node(world)
        world.perform(context.records.commit(Changes({}, {"x": Due()})))
        terms = {key.term for key in stored(world).data_keys}
        entry = world.store.read("x")
        assert entry is not None
        assert term_of(entry.value) in terms
