"""The token as it is stored."""

from __future__ import annotations

from typing import Any

from cloudid_core.context import queue
from cloudid_core.store.changes import Changes
from cloudid_core.tokens.record import Token


def token(**changes: Any) -> Token:
    values = {
        "id": "a",
        "mac": "m4c",
        "path": "p",
        "mount_id": "token",
        "policies": (),
        "display_name": "d",
        "created_at": 10.0,
        "ttl": 5,
        "expires_at": 15.0,
    }
    return Token(**{**values, **changes})


def test_a_token_lives_until_the_instant_of_its_expiry() -> None:
    assert token().is_alive(14.999)
    assert not token().is_alive(15.0)
    assert token(expires_at=None).is_alive(1e12)
    assert not token(released=True).is_alive(11.0)


def test_seconds_left_are_whole_and_never_negative() -> None:
    assert [token().seconds_left(now) for now in (10.0, 10.5, 15.0, 99.0)] == [5, 4, 0, 0]
    assert token(expires_at=None).seconds_left(0.0) == 0


def test_an_orphan_has_one_entry_and_a_child_two() -> None:
    assert token().own_keys == ("token/a",)
    assert token(parent="b").own_keys == ("token/a", "child/b/a")
    assert token().orphan
    assert not token(parent="b").orphan


def test_the_end_of_a_token_is_due_work_only_if_it_has_dependants() -> None:
    assert token(parent="b").ending(20.0) == Changes(deletes=("token/a", "child/b/a"))
    changes = token(has_dependants=True).ending(20.0)
    assert [queue.parse(key) for key in changes.puts] == [(20.0, queue.TOKEN, "token", "a")]


def test_the_keyed_hash_is_not_printed() -> None:
    assert "m4c" not in repr(token())
