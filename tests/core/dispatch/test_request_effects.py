"""What the requests that are asked most often ask of the host: all of it is in the time of each answer."""

from __future__ import annotations

from typing import Any

from cloudid_core.effects import Effect, ReadEntries, ReadEntry
from tests.installation import Installation
from tests.logins import configure_logins, login_form
from tests.tokens import new_token


def effects_of(world: Installation, method: str, path: str, token: str = "", body: object = None) -> list[str]:
    """The effects of a request that another one like it has gone before, as texts."""
    world.must(method, path, body, token)
    start = len(world.trace)
    world.must(method, path, body, token)
    return [_text(effect) for _, effect in world.trace[start:]]


def _text(effect: Effect[Any]) -> str:
    keys = (effect.key,) if isinstance(effect, ReadEntry) else effect.keys if isinstance(effect, ReadEntries) else ()
    return " ".join((type(effect).__name__, *sorted({key.partition("/")[0] for key in keys})))


def test_the_state_of_the_service_takes_one_read() -> None:
    expected = ["Within", "Now", "ReadEntry mounts", "Record"]
    assert effects_of(Installation(), "GET", "sys/health") == expected


def test_a_token_that_looks_itself_up_is_read_once() -> None:
    world = Installation()
    token = new_token(world, policies=["default"], no_parent=True)
    assert effects_of(world, "GET", "auth/token/lookup-self", token) == [
        "Within",
        "Now",
        "ReadEntry mounts",
        "ReadEntry token",
        "ReadEntries policy",
        "Record",
    ]


def test_a_login_reads_nothing() -> None:
    world = Installation()
    body = login_form(world, configure_logins(world))
    assert effects_of(world, "POST", "auth/cloud/login", body=body) == [
        "Within",
        "Now",
        "RandomBytes",
        "Commit",
        "Record",
    ]


def test_a_login_that_is_refused_reads_once_what_the_refusal_rests_on() -> None:
    world = Installation()
    body = login_form(world, configure_logins(world))
    world.must("POST", "auth/cloud/login", body, "")
    start = len(world.trace)
    world.refused("POST", "auth/cloud/login", body | {"vm_name": "other"}, "")
    assert [_text(effect) for _, effect in world.trace[start:]] == [
        "Within",
        "Now",
        "ReadEntries mount mounts",
        "Record",
    ]
