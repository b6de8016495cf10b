"""Ids of requests: each is new, and none tells anything."""

from __future__ import annotations

from itertools import pairwise
from operator import eq
from statistics import mean
from uuid import UUID

from cloudid_core.dispatch.request_ids import KEY_SIZE, RequestIds
from tests.installation import Installation


def ids(key: bytes, many: int) -> list[str]:
    made = RequestIds(key)
    return [made.next() for _ in range(many)]


def test_ids_are_uuids_in_their_usual_form() -> None:
    for text in ids(bytes(KEY_SIZE), 100):
        uuid = UUID(text)
        assert (uuid.version, uuid.variant, str(uuid)) == (4, "specified in RFC 4122", text)


def test_no_id_is_given_twice_by_a_service_or_by_two() -> None:
    made = [*ids(bytes(KEY_SIZE), 5000), *ids(bytes(KEY_SIZE - 1) + b"\1", 5000)]
    assert len(set(made)) == len(made)


def test_ids_do_not_tell_their_number() -> None:
    """Neighbours have as many equal digits as random texts: a sixteenth of thirty, beside six that are always equal."""
    made = ids(bytes(range(KEY_SIZE)), 2001)
    equal = [sum(map(eq, one, two)) - 6 for one, two in pairwise(made)]
    assert 1.7 < mean(equal) < 2.1
    assert 900 < sum(one < two for one, two in pairwise(made)) < 1100


def test_a_service_that_is_opened_again_gives_other_ids() -> None:
    world = Installation()
    before = world.ask("GET", "sys/health").response.request_id
    world.restart()
    assert UUID(before) != UUID(world.ask("GET", "sys/health").response.request_id)
