"""Keys that nothing needs any more leave the ring, and everything that is stored or alive stays readable."""

from __future__ import annotations

from cloudid_core.context.keyring import PUBLISHED_AHEAD, read_keyring
from cloudid_core.store.sealing import Keyring
from cloudid_core.system.keys import KEPT, REPLACED_FOR
from tests.installation import Installation
from tests.logins import configure_logins, log_in
from tests.tokens import create_token, is_valid, new_token

DAY = 86_400


def ring(world: Installation) -> Keyring:
    return world.perform(read_keyring(world.settings))


def test_data_keys_that_seal_nothing_any_more_are_retired() -> None:
    """However often the key is replaced; entries that nobody writes are sealed anew."""
    world = Installation()
    machine = configure_logins(world)
    token = new_token(world, ttl="30d")
    other = world.open_node()
    for number in range(KEPT + 20):
        world.must("POST", "sys/rotate")
        new_token(world)
        world.advance(REPLACED_FOR)
        world.perform(world.service.upkeep())
        world.perform(world.service.tick())
        assert len(ring(world).data_keys) <= KEPT + 2, number
    assert world.must("GET", "sys/key-status").data["term"] == KEPT + 21
    with world.requests_to(other):
        assert is_valid(world, token)
    assert is_valid(world, token)
    world.restart()
    assert is_valid(world, token)
    assert world.must("GET", "auth/cloud/config").data["tenant_id"]
    assert log_in(world, machine)


def test_a_data_key_that_was_just_replaced_is_not_retired() -> None:
    """Another node may seal under it for a while."""
    world = Installation()
    for _ in range(KEPT + 5):
        world.must("POST", "sys/rotate")
    assert len(ring(world).data_keys) == KEPT + 6


def test_data_keys_have_a_bound() -> None:
    world = Installation()
    for _ in range(255):
        world.must("POST", "sys/rotate")
    assert world.refused("POST", "sys/rotate") == (400, "malformed_request")
    world.advance(2 * REPLACED_FOR)
    world.must("POST", "sys/rotate")
    assert len(ring(world).data_keys) <= 4


def test_token_keys_of_which_no_token_is_left_are_retired_and_their_terms_used_again() -> None:
    """More than 255 of them, in time; what is alive stays so."""
    world = Installation()
    root = new_token(world, policies=["root"])
    batches: list[tuple[str, float]] = []
    for number in range(300):
        world.must("POST", "sys/rotate/tokens")
        world.advance(PUBLISHED_AHEAD + DAY)
        if number % 10 == 0:
            world.must("POST", "auth/token/tidy")
            world.perform(world.service.tick())
            batch = create_token(world, type="batch", ttl="20d", policies=["default"])["client_token"]
            batches.append((batch, world.clock + 20 * DAY))
        assert all(is_valid(world, text) for text, until in batches if world.clock < until)
        assert len(ring(world).token_keys) <= KEPT + 1, number
    assert is_valid(world, root)
    assert len({each.term for each in ring(world).token_keys}) == len(ring(world).token_keys)


def test_token_keys_of_a_stored_token_stay() -> None:
    world = Installation()
    world.must("POST", "sys/rotate/tokens")
    world.advance(PUBLISHED_AHEAD)
    token = create_token(world, policies=["root"])
    for _ in range(KEPT + 40):
        world.must("POST", "sys/rotate/tokens")
        world.advance(DAY)
    assert is_valid(world, token["client_token"])
    world.must("POST", "auth/token/lookup-accessor", {"accessor": token["accessor"]})


def test_an_older_ring_does_not_bring_back_what_was_retired() -> None:
    """Programs that read the ring one after the other may come in another order."""
    world = Installation()
    for _ in range(3):
        world.must("POST", "sys/rotate")
    before = ring(world)
    after = before.without({1, 2}, ())
    assert after.age > before.age
    sealer = world.context.records.sealer
    sealer.learn(after)
    sealer.learn(before)
    assert [term for term in range(1, 5) if sealer.knows(term)] == [3, 4]
