"""The first start of a store."""

from __future__ import annotations

from contextlib import suppress

import pytest

from cloudid_core import Request, Secret, Settings, initialise, open_service, run_now
from cloudid_core.errors import CloudidError, Code, Refused
from cloudid_core.installation import confirm_root_token, is_initialised, make_root_token, was_root_token_shown
from cloudid_core.store import keys
from cloudid_core.testing import Crashed, World, every_fault

from .never_waits import NeverWaits

SETTINGS = Settings(master_key=Secret("5a" * 32))


def test_the_root_token_works_and_is_stored_nowhere() -> None:
    """It is shown once; the store has only its keyed hash, sealed."""
    host = NeverWaits()
    root = run_now(initialise(SETTINGS), host).reveal()
    service = run_now(open_service(SETTINGS), host)
    request = Request("GET", "/v1/auth/token/lookup-self", {"x-service-token": root})
    assert run_now(service.handle(request), host).status == 200
    for key in host.store.list("", "", 100):
        entry = host.store.read(key)
        assert entry is not None
        assert root.encode() not in entry.value


@pytest.mark.parametrize("text", ["root", "a-token-of-my-choice", "cs." + "0" * 58])
def test_the_root_token_can_be_chosen(text: str) -> None:
    """For development: any text of visible characters."""
    host = NeverWaits()
    assert run_now(initialise(SETTINGS, Secret(text)), host).reveal() == text
    service = run_now(open_service(SETTINGS), host)
    for shown, status in ((text, 200), (text + "x", 403)):
        request = Request("GET", "/v1/auth/token/lookup-self", {"x-service-token": shown})
        assert run_now(service.handle(request), host).status == status


@pytest.mark.parametrize("text", ["", " ", "with blank", "x" * 129, "ü"])
def test_not_everything_can_be_a_token(text: str) -> None:
    """What no client could send in a header is refused; an empty choice is none."""
    host = NeverWaits()
    if not text:
        assert run_now(initialise(SETTINGS, Secret(text)), host)
        return
    with pytest.raises(Refused):
        run_now(initialise(SETTINGS, Secret(text)), host)


def test_a_store_is_initialised_once() -> None:
    host = NeverWaits()
    run_now(initialise(SETTINGS), host)
    with pytest.raises(Refused) as refused:
        run_now(initialise(SETTINGS), host)
    assert refused.value.code is Code.MALFORMED_REQUEST


def test_what_is_left_of_a_store_is_not_initialised() -> None:
    """A copy that was killed, for one: what its key ring sealed would be lost among new entries."""
    host = NeverWaits()
    host.store.commit({}, {keys.token("left"): b"sealed"}, ())
    with pytest.raises(Refused, match="no key ring"):
        run_now(initialise(SETTINGS), host)
    assert host.store.list("", "", 2) == (keys.token("left"),)


def test_it_happens_whole_or_not_at_all() -> None:
    """Whatever goes wrong: either nothing is there, and it can be done again, or all is there."""

    def scenario(world: World) -> None:
        world.perform(initialise(SETTINGS))

    for world in every_fault(scenario, World):
        with suppress(Crashed, CloudidError):
            scenario(world)
        made = [world.store.read(key) is not None for key in (keys.RING, keys.MOUNTS)]
        assert made in ([False, False], [True, True])


def status_of(host: NeverWaits, token: Secret) -> int:
    """How the service answers who looks this token up by itself."""
    service = run_now(open_service(SETTINGS), host)
    request = Request("GET", "/v1/auth/token/lookup-self", {"x-service-token": token.reveal()})
    return run_now(service.handle(request), host).status


def test_a_store_whose_root_token_was_never_shown_can_be_told_apart() -> None:
    """Neither question needs the master key."""
    host = NeverWaits()
    assert not run_now(is_initialised(), host)
    run_now(initialise(SETTINGS), host)
    assert run_now(is_initialised(), host)
    assert not run_now(was_root_token_shown(), host)
    for _ in range(2):
        run_now(confirm_root_token(), host)
        assert run_now(was_root_token_shown(), host)


def test_a_lost_root_token_is_no_loss_for_who_holds_the_master_key() -> None:
    """The new one works, and the old one does until somebody revokes it."""
    host = NeverWaits()
    lost = run_now(initialise(SETTINGS), host)
    run_now(confirm_root_token(), host)
    new = run_now(make_root_token(SETTINGS), host)
    assert not run_now(was_root_token_shown(), host)
    assert new != lost
    assert [status_of(host, token) for token in (new, lost)] == [200, 200]


@pytest.mark.parametrize("is_prepared, code", [(False, Code.NOT_INITIALISED), (True, Code.SEALED)])
def test_a_root_token_takes_a_store_and_its_master_key(is_prepared: bool, code: Code) -> None:
    host = NeverWaits()
    if is_prepared:
        run_now(initialise(SETTINGS), host)
    with pytest.raises(Refused) as refused:
        run_now(make_root_token(Settings(master_key=Secret("a5" * 32))), host)
    assert refused.value.code is code


def test_a_root_token_that_was_answered_is_in_the_store() -> None:
    """Whatever goes wrong on the way."""

    def scenario(world: World) -> None:
        world.perform(initialise(SETTINGS))
        root_token = world.perform(make_root_token(SETTINGS))
        service = world.perform(open_service(SETTINGS))
        request = Request("GET", "/v1/auth/token/lookup-self", {"x-service-token": root_token.reveal()})
        assert world.perform(service.handle(request)).status in (200, 503)

    for world in every_fault(scenario, World):
        with suppress(Crashed, CloudidError):
            scenario(world)
