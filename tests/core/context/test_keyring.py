"""The key ring: opened by the master key only, and never used beyond what it has reserved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import msgspec
import pytest
from attrs import evolve

from cloudid_core.caches import Caches
from cloudid_core.context.context import Context
from cloudid_core.context.keyring import (
    KEYRING_BYTES,
    MOST_MASTER_KEYS,
    MOST_TOKEN_KEYS,
    PUBLISHED_AHEAD,
    add_master_key,
    begin_data_key,
    begin_token_keys,
    converter,
    drop_other_master_keys,
    keep_reserve,
    make_keyring,
    open_keyring,
    read_keyring,
    seal_keyring,
)
from cloudid_core.context.queue import Due
from cloudid_core.errors import CloudidError, Code, EntryDamaged, Refused
from cloudid_core.events import KeysChanged
from cloudid_core.routing.components import Catalog
from cloudid_core.settings import Settings
from cloudid_core.store import keys
from cloudid_core.store.changes import Changes
from cloudid_core.store.records import Records
from cloudid_core.store.sealing import (
    MASTER_TERM,
    NONCE_SIZE,
    RESERVE,
    TURN_OVER,
    Keyring,
    Sealer,
    master_cipher,
    seal_with,
    term_of,
)
from cloudid_core.testing import Crashed, World
from cloudid_core.testing.exhaustive import every_fault
from cloudid_core.testing.faults import FaultKind
from cloudid_core.values.secret import Secret

SETTINGS = Settings(master_key=Secret("5a" * 32))
NEW_KEY = Secret("a5" * 32)
RENEWED = evolve(SETTINGS, master_key=NEW_KEY)


def initialised(reserved: int = 0) -> World:
    """A world whose store has a ring with a key that was used so often."""
    world = World()
    ring = make_keyring(world.clock, bytes(range(KEYRING_BYTES % 256)).ljust(KEYRING_BYTES, b"\1"))
    ring = evolve(ring, data_keys=(evolve(ring.data_keys[0], reserved=reserved),))
    world.store.commit({}, {keys.RING: world.perform(seal_keyring(SETTINGS, ring))}, ())
    return world


def node(world: World) -> Context:
    caches = Caches(SETTINGS)
    sealer = Sealer(world.perform(open_keyring(SETTINGS)))
    records = Records(sealer, caches.records, partial(read_keyring, SETTINGS))
    return Context(SETTINGS, records, caches, Catalog(()))


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
    [token_keys] = ring.token_keys
    made = (ring.current.key, token_keys.hash_key, token_keys.accessor_key, token_keys.batch_key)
    secrets = {key.reveal() for key in made}
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
        except CloudidError:
            context = node(world)
        world.perform(context.records.commit(Changes({}, {"x": Due()})))
        terms = {key.term for key in stored(world).data_keys}
        entry = world.store.read("x")
        assert entry is not None
        assert term_of(entry.value) in terms


def test_what_another_node_has_sealed_under_a_newer_key_is_read() -> None:
    """The ring is read once then, and no seal is reserved by that."""
    world = initialised()
    old, new = node(world), node(world)
    world.perform(begin_data_key(new))
    world.perform(new.records.commit(Changes({}, {"theirs": Due()})))
    before = stored(world).current.reserved
    assert world.perform(old.records.find("theirs", Due))
    assert world.perform(old.records.find_fresh("theirs", Due))
    assert stored(world).current.reserved == before
    world.perform(old.records.commit(Changes({}, {"ours": Due()})))
    world.perform(keep_reserve(old))
    world.perform(old.records.commit(Changes({}, {"later": Due()})))
    terms = [term_of(entry.value) for key in ("ours", "later") if (entry := world.store.read(key))]
    assert terms == [1, 2]


def test_a_term_that_is_in_no_ring_is_damage() -> None:
    world = initialised()
    context = node(world)
    world.store.commit({}, {"x": b"\0\0\0\x09" + bytes(40)}, ())
    with pytest.raises(EntryDamaged):
        world.perform(context.records.find("x", Due))


def test_a_new_data_key_is_told() -> None:
    world = initialised()
    world.perform(begin_data_key(node(world)))
    assert world.events == [KeysChanged(kind="data", term=2)]


def test_a_key_is_stored_before_it_seals() -> None:
    """Whatever goes wrong: no entry has a term that is not in the stored ring, and no seal is granted twice."""

    def scenario(world: World) -> None:
        context = node(world)
        with suppress(CloudidError):
            world.perform(begin_data_key(context))
        world.perform(context.records.commit(Changes({}, {"x": Due()})))

    for world in every_fault(scenario, initialised):
        with suppress(Crashed, CloudidError):
            scenario(world)
        entry = world.store.read("x")
        assert entry is None or term_of(entry.value) in {key.term for key in stored(world).data_keys}


# The master key


def opens(world: World, settings: Settings) -> bool:
    try:
        World(store=world.store.copy()).perform(read_keyring(settings))
    except Refused as refused:
        return refused.code is not Code.SEALED
    return True


def test_both_master_keys_open_the_ring_until_the_change_is_done() -> None:
    world = initialised()
    ring = world.perform(read_keyring(SETTINGS))
    world.perform(add_master_key(SETTINGS, NEW_KEY))
    assert [opens(world, settings) for settings in (SETTINGS, RENEWED)] == [True, True]
    world.perform(open_keyring(SETTINGS))
    assert world.perform(read_keyring(RENEWED)).current.reserved == RESERVE
    world.perform(drop_other_master_keys(RENEWED))
    assert [opens(world, settings) for settings in (SETTINGS, RENEWED)] == [False, True]
    assert world.perform(read_keyring(RENEWED)).token_keys == ring.token_keys
    assert world.events == [KeysChanged(kind="master")]


def test_a_dropped_master_key_and_an_older_store_do_not_open_the_newer_store() -> None:
    """The root key is another one after the change."""
    world = initialised()
    world.perform(add_master_key(SETTINGS, NEW_KEY))
    before = world.store.read(keys.RING)
    world.perform(drop_other_master_keys(RENEWED))
    after = world.store.read(keys.RING)
    assert before is not None
    assert after is not None
    old, new = (msgspec.json.decode(entry.value) for entry in (before, after))
    world.store.commit({}, {keys.RING: msgspec.json.encode({**new, "root_keys": old["root_keys"]})}, ())
    assert not opens(world, SETTINGS)


def test_a_master_key_that_opens_the_ring_is_added_once() -> None:
    world = initialised()
    for _ in range(3):
        world.perform(add_master_key(SETTINGS, NEW_KEY))
    before = world.store.read(keys.RING)
    world.perform(add_master_key(SETTINGS, SETTINGS.master_key))
    assert world.store.read(keys.RING) == before


def test_only_a_few_master_keys_open_the_ring() -> None:
    world = initialised()
    for number in range(MOST_MASTER_KEYS - 1):
        world.perform(add_master_key(SETTINGS, Secret(f"{number:064x}")))
    with pytest.raises(Refused) as refused:
        world.perform(add_master_key(SETTINGS, NEW_KEY))
    assert refused.value.code is Code.MALFORMED_REQUEST


def test_the_wrong_master_key_changes_nothing() -> None:
    world = initialised()
    before = world.store.read(keys.RING)
    for program in (add_master_key(RENEWED, Secret("77" * 32)), drop_other_master_keys(RENEWED)):
        with pytest.raises(Refused):
            world.perform(program)
    assert world.store.read(keys.RING) == before


def as_before(world: World) -> World:
    """The world with its ring as earlier versions wrote it: sealed under the master key itself."""
    ring = world.perform(read_keyring(SETTINGS))
    nonce = bytes(NONCE_SIZE)
    members = converter.unstructure(ring)
    [first] = members.pop("token_keys")
    members |= {"token_key": first["hash_key"], "accessor_key": first["accessor_key"], "batch_key": first["batch_key"]}
    plain = msgspec.json.encode(members)
    sealed = seal_with(master_cipher(SETTINGS.master_key), MASTER_TERM, keys.RING, plain, nonce)
    world.store.commit({}, {keys.RING: sealed}, ())
    return world


@pytest.mark.parametrize("make", [initialised, lambda: as_before(initialised())], ids=["now", "before"])
def test_at_every_instant_a_known_master_key_opens_the_ring(make: Callable[[], World]) -> None:
    """Whatever goes wrong, the change can be made again, and no other key is lost by it."""

    def scenario(world: World) -> None:
        world.perform(add_master_key(SETTINGS, NEW_KEY))
        world.perform(drop_other_master_keys(RENEWED))

    token_keys = make().perform(read_keyring(SETTINGS)).token_keys
    for world in every_fault(scenario, make):
        with suppress(Crashed, CloudidError):
            scenario(world)
        if opens(world, SETTINGS):
            world.perform(add_master_key(SETTINGS, NEW_KEY))
        assert opens(world, RENEWED)
        world.perform(drop_other_master_keys(RENEWED))
        assert [opens(world, settings) for settings in (SETTINGS, RENEWED)] == [False, True]
        assert world.perform(read_keyring(RENEWED)).token_keys == token_keys


def test_a_ring_of_an_earlier_version_is_opened_and_gets_a_root_key() -> None:
    world = as_before(initialised())
    assert opens(world, SETTINGS)
    assert not opens(world, RENEWED)
    world.perform(open_keyring(SETTINGS))
    world.perform(add_master_key(SETTINGS, NEW_KEY))
    assert opens(world, RENEWED)


# The keys of tokens


def test_new_token_keys_are_published_before_they_serve() -> None:
    world = initialised()
    one, other = node(world), node(world)
    fresh = world.perform(begin_token_keys(one))
    assert (fresh.term, fresh.serves_from) == (2, world.clock + PUBLISHED_AHEAD)
    assert world.events == [KeysChanged(kind="token", term=2)]
    ring = one.records.sealer.keyring
    assert [ring.token_keys_at(at).term for at in (0.0, fresh.serves_from - 1, fresh.serves_from)] == [1, 1, 2]
    world.perform(other.records.learn_keys())
    assert other.records.sealer.keyring.token_keys_of(2) == fresh
    assert other.records.sealer.keyring.token_keys_of(3) is None


def test_new_token_keys_and_a_new_data_key_do_not_lose_each_other() -> None:
    world = initialised()
    one, other = node(world), node(world)
    first, second = world.spawn(begin_token_keys(one)), world.spawn(begin_data_key(other))
    world.settle()
    assert first.result().term == 2
    second.result()
    ring = world.perform(read_keyring(SETTINGS))
    assert (len(ring.data_keys), len(ring.token_keys)) == (2, 2)
    for context in (one, other):
        world.perform(context.records.learn_keys())
        assert context.records.sealer.keyring.age == ring.age


def test_there_is_an_end_of_token_keys() -> None:
    world = initialised()
    ring = world.perform(read_keyring(SETTINGS))
    full = evolve(ring, token_keys=ring.token_keys * MOST_TOKEN_KEYS)
    world.store.commit({}, {keys.RING: world.perform(seal_keyring(SETTINGS, full))}, ())
    with pytest.raises(Refused):
        world.perform(begin_token_keys(node(world)))
