"""The roll-over of signing keys."""

from __future__ import annotations

from typing import Any

import jwt
import pytest

from cloudid_core.context import Due, queue
from cloudid_core.credentials.signing_keys import CLOCK_SKEW, ISSUERS, LONGEST_TOKEN, MOST_KEYS, PLUGINS, Issuer
from cloudid_core.mounts import IDENTITY
from cloudid_core.store import Changes, keys
from cloudid_core.values import rfc3339
from tests.installation import Installation
from tests.tokens import identity_token

DAY = 86_400
EACH = pytest.mark.parametrize("issuer", ISSUERS, ids=[issuer.ref for issuer in ISSUERS])


def kids(world: Installation, issuer: Issuer = PLUGINS) -> list[str]:
    return [key["kid"] for key in world.must("GET", f"{issuer.path[4:]}/.well-known/keys", token="").body["keys"]]


def due(world: Installation, issuer: Issuer = PLUGINS) -> list[str]:
    return [key for key in world.keys(keys.DUE) if f"/{queue.SIGNING_KEY}/" in key and key.endswith(f"/{issuer.ref}")]


@EACH
def test_a_new_store_has_one_key_and_the_next_one_is_due(issuer: Issuer) -> None:
    world = Installation()
    assert len(kids(world, issuer)) == 1
    assert len(due(world, issuer)) == 1


@EACH
def test_a_store_from_before_gets_its_first_key_when_it_is_opened(issuer: Issuer) -> None:
    world = Installation()
    world.store.commit({}, {}, (issuer.entry, *due(world, issuer)))
    assert kids(world, issuer) == []
    world.restart()
    assert len(kids(world, issuer)) == 1
    assert len(due(world, issuer)) == 1


def test_an_opened_store_keeps_its_keys() -> None:
    world = Installation()
    before = kids(world)
    world.restart()
    assert kids(world) == before


@EACH
def test_keys_come_and_go_and_one_is_always_due(issuer: Issuer) -> None:
    world = Installation()
    (first,) = kids(world, issuer)
    for day in range(1, 8):
        world.advance(DAY)
        world.tick()
        shown = kids(world, issuer)
        assert len(shown) == len(set(shown))
        assert len(shown) == min(day + 1, 4)
        assert len(due(world, issuer)) == 1
    assert first not in kids(world, issuer)


@EACH
def test_a_due_entry_that_the_keys_do_not_know_adds_no_key(issuer: Issuer) -> None:
    world = Installation()
    before, known = kids(world, issuer), due(world, issuer)
    stale = keys.due(world.clock - 5, queue.SIGNING_KEY, IDENTITY.id, issuer.ref)
    world.perform(world.context.records.commit(Changes(puts={stale: Due()})))
    world.tick()
    assert (kids(world, issuer), due(world, issuer)) == (before, known)


def test_a_backlog_of_days_adds_one_key() -> None:
    world = Installation()
    world.advance(30 * DAY)
    world.tick()
    assert len(kids(world)) == 2


def test_there_are_never_too_many_keys() -> None:
    world = Installation(signing_key_period=600)
    most = 0
    for _ in range((LONGEST_TOKEN + int(CLOCK_SKEW)) // 600 + 10):
        world.advance(600)
        world.tick()
        most = max(most, len(kids(world)))
    assert most == MOST_KEYS


@pytest.mark.parametrize("field", ["alg", "kid"])
def test_tokens_name_key_and_algorithm(field: str) -> None:
    world = Installation(issuer="https://id.test")
    header: dict[str, Any] = jwt.get_unverified_header(identity_token(world))
    assert header[field] == {"alg": "RS256", "kid": kids(world)[0]}[field]


def test_a_key_that_an_operator_asks_for_signs_one_period_later() -> None:
    world = Installation(issuer="https://id.test")
    (first,) = kids(world)
    world.advance(600)
    signs_from = world.must("POST", "sys/rotate/signing-keys").data["signs_from"]
    assert rfc3339.parse(signs_from) == world.clock + DAY
    assert len(due(world)) == 1
    _, second = kids(world)
    for seconds, kid in ((0, first), (DAY, second)):
        world.advance(seconds)
        assert jwt.get_unverified_header(identity_token(world))["kid"] == kid


def test_a_key_that_an_operator_asks_for_while_another_is_to_come_signs_no_later() -> None:
    world = Installation(issuer="https://id.test")
    for _ in range(2):
        signs_from = world.must("POST", "sys/rotate/signing-keys").data["signs_from"]
        assert rfc3339.parse(signs_from) == world.clock + DAY
    world.advance(DAY)
    assert jwt.get_unverified_header(identity_token(world))["kid"] == kids(world)[-1]


@pytest.mark.parametrize("days", [0, 10])
def test_a_shorter_period_counts_once_a_node_has_it_and_no_key_is_due_later(days: int) -> None:
    world = Installation(issuer="https://id.test", signing_key_period=30 * DAY)
    world.must("POST", "sys/rotate/signing-keys")
    world.advance(days * DAY)
    world.restart(signing_key_period=DAY)
    follow(world)


@pytest.mark.parametrize("days", [0, 3])
def test_a_clock_that_was_set_back_does_not_put_the_next_key_off(days: int) -> None:
    """Whether or not the keys of the wrong time had begun to sign."""
    world = Installation(issuer="https://id.test")
    world.clock += 300 * DAY
    for _ in range(days + 1):
        world.tick()
        world.advance(DAY)
    world.perform(world.service.upkeep())
    world.clock -= 300 * DAY
    world.perform(world.service.upkeep())
    follow(world)


def follow(world: Installation) -> None:
    """Within a period another key is published, and after another one it signs; what signs until then is published."""
    before = kids(world)
    for _ in range(2):
        assert jwt.get_unverified_header(identity_token(world))["kid"] in before
        world.advance(DAY)
        world.tick()
        before, earlier = kids(world), before
        assert before[-1] not in earlier
    assert jwt.get_unverified_header(identity_token(world))["kid"] == earlier[-1]


def test_no_operator_publishes_too_many_keys() -> None:
    world = Installation()
    statuses = [world.ask("POST", "sys/rotate/signing-keys").status for _ in range(MOST_KEYS + 1)]
    assert statuses == [200] * (MOST_KEYS - 1) + [400] * 2
    assert len(kids(world)) == MOST_KEYS
