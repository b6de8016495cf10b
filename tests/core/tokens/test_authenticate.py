"""Who calls: which tokens are good, and what their use costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.store import records
from cloudid_core.tokens import decoy, encoding
from cloudid_core.tokens.authenticate import DEPTH, find_by_text
from cloudid_core.tokens.record import Token
from tests.installation import ROOT, Installation
from tests.logins import configure_logins, log_in
from tests.tokens import create_token, is_valid, look_up_self, new_token, write_policy

DENIED = (403, "permission_denied")
SELF = "auth/token/lookup-self"


@pytest.mark.parametrize("token", ["", "x", "cs." + "0" * 58, "cb.", "cb.AAAA", "cs.\x00", "x" * 20_000])
def test_an_unknown_token_is_denied(token: str) -> None:
    assert Installation().refused("GET", SELF, token=token) == DENIED


def test_a_token_with_the_right_id_and_another_secret_is_denied() -> None:
    world = Installation()
    token = new_token(world)
    other = token[:-1] + ("A" if token[-1] != "A" else "B")
    assert world.refused("GET", SELF, token=other) == DENIED


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("is_remembered", [False, True])
def test_every_refusal_opens_one_record_and_makes_one_hash(
    is_there: bool, is_remembered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether an id is there must not show in the time of a refusal: it also stands in places that others see."""
    world = Installation()
    token = new_token(world, policies=["default"])
    shown = token[:-4] + "AAAA" if is_there else f"cs.{'0' * 32}{token[-32:]}"
    if not is_remembered:
        world.context.caches.tokens.clear()
    done: list[str] = []

    def counting(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: object) -> Any:
            done.append(name)
            return work(*arguments)

        return counted

    monkeypatch.setattr(decoy, "decode", counting("open", records.decode))
    monkeypatch.setattr(records, "decode", counting("open", records.decode))
    monkeypatch.setattr(encoding, "is_token", counting("compare", encoding.is_token))
    assert world.perform(find_by_text(world.context, shown)) is None
    assert sorted(done) == ["compare", "open"]


def test_an_expired_token_is_denied() -> None:
    world = Installation()
    token = new_token(world, ttl=60, policies=["default"])
    world.advance(59)
    assert is_valid(world, token)
    world.advance(1)
    assert world.refused("GET", SELF, token=token) == DENIED


def test_a_token_is_denied_where_it_is_not_bound_to() -> None:
    world = Installation()
    world.must("POST", "auth/token/roles/bound", {"token_bound_cidrs": "10.0.0.0/8, ::1"})
    token = create_token(world, at="create/bound", policies=["default"])["client_token"]
    answers = [
        world.ask("GET", SELF, None, token, address).status
        for address in ("10.1.2.3", "::1", "::ffff:10.1.2.3", "192.0.2.1", "", "nonsense")
    ]
    assert answers == [200, 200, 200, 403, 403, 403]
    assert world.must("GET", SELF, None, token, "10.1.2.3").data["bound_cidrs"] == ["10.0.0.0/8", "::1/128"]


def test_a_token_from_elsewhere_costs_no_use() -> None:
    world = Installation()
    world.must("POST", "auth/token/roles/bound", {"token_bound_cidrs": "10.0.0.0/8", "token_num_uses": 1})
    token = create_token(world, at="create/bound", policies=["default"])["client_token"]
    assert world.refused("GET", SELF, None, token) == DENIED
    world.must("GET", SELF, None, token, "10.0.0.1")


def test_every_use_is_counted_also_one_that_is_denied() -> None:
    world = Installation()
    token = new_token(world, num_uses=3, policies=["default"])
    assert look_up_self(world, token)["num_uses"] == 2
    assert world.ask("GET", "auth/token/accessors", token=token).status == 403
    last = world.must("GET", SELF, token=token)
    assert last.data["num_uses"] == 0
    assert last.response.wake_at is not None
    assert world.refused("GET", SELF, token=token) == DENIED
    world.tick()
    assert len(world.keys("token/")) == 1


@pytest.mark.parametrize("seed", range(8))
def test_the_last_use_is_granted_once_however_many_ask(seed: int) -> None:
    world = Installation(seed)
    token = new_token(world, num_uses=2, policies=["default"])
    tasks = [world.spawn(world.asking("GET", SELF, token=token)) for _ in range(6)]
    world.settle()
    assert sorted(task.result().status for task in tasks) == [200, 200, 403, 403, 403, 403]


@pytest.mark.parametrize("seed", range(4))
def test_no_use_is_lost_or_granted_twice(seed: int) -> None:
    world = Installation(seed)
    token = new_token(world, num_uses=9, policies=["default"])
    tasks = [world.spawn(world.asking("GET", SELF, token=token)) for _ in range(5)]
    world.settle()
    assert all(task.result().status == 200 for task in tasks)
    assert look_up_self(world, token)["num_uses"] == 3


def test_a_child_is_good_only_as_long_as_all_its_ancestors_are() -> None:
    world = Installation()
    line = [new_token(world, ttl=100)]
    for _ in range(3):
        line.append(new_token(world, line[-1], ttl=1000))
    assert all(is_valid(world, token) for token in line)
    world.advance(100)
    assert not any(is_valid(world, token) for token in line)


def test_a_line_of_parents_is_bounded() -> None:
    """What a longer line would need at every use is refused when it is made."""
    world = Installation()
    token = ROOT
    for _ in range(DEPTH - 1):
        token = new_token(world, token)
    assert is_valid(world, token)
    assert world.ask("POST", "auth/token/create", {}, token).status == 400
    assert create_token(world, token, no_parent=True)["orphan"]


def test_a_token_dies_with_its_mount() -> None:
    world = Installation()
    machine = configure_logins(world)
    tokens = [log_in(world, machine)["client_token"]]
    world.must("POST", "auth/cloud/role/dev", {"token_type": "batch"})
    tokens.append(log_in(world, machine)["client_token"])
    assert all(is_valid(world, token) for token in tokens)
    world.must("DELETE", "sys/auth/cloud")
    assert not any(is_valid(world, token) for token in tokens)


def test_a_changed_policy_applies_from_the_next_request() -> None:
    world = Installation()
    write_policy(world, "reader", ("sys/policies/acl/reader", ["read"]))
    token = new_token(world, policies=["reader"])
    world.must("GET", "sys/policies/acl/reader", token=token)
    write_policy(world, "reader")
    assert world.refused("GET", "sys/policies/acl/reader", token=token) == DENIED


def test_the_store_has_no_token() -> None:
    """Only a keyed hash of it, and that is sealed."""
    world = Installation()
    shown = [new_token(world), new_token(world, id="chosen")]
    for key in world.keys(""):
        entry = world.store.read(key)
        assert entry is not None
        assert not any(token in key or token.encode() in entry.value for token in shown)
        if key.startswith("token/"):
            found = world.perform(world.context.records.find_fresh(key, Token))
            assert found is not None
            assert found.record.mac not in shown


@pytest.mark.parametrize("seed", range(2))
def test_each_of_many_parallel_uses_is_granted_and_none_beyond_the_last(seed: int) -> None:
    """All of them change one entry of the store. Within their deadline each waits for its turn."""
    world = Installation(seed)
    token = new_token(world, num_uses=200, policies=["default"])
    asked = [world.spawn(world.asking("GET", "auth/token/lookup-self", None, token)) for _ in range(205)]
    world.settle()
    statuses = [task.result().status for task in asked]
    assert (statuses.count(200), statuses.count(403)) == (200, 5)


def test_a_token_that_is_used_again_is_not_decoded_again() -> None:
    world = Installation()
    token = new_token(world)
    found = [world.perform(find_by_text(world.context, token)) for _ in range(2)]
    assert found[0] is not None
    assert found[0] is found[1]
    assert token not in repr(list(world.context.caches.tokens))
    assert token not in str(msgspec.to_builtins(found[0]))


CHANGES = ("child", "expire", "renew", "revoke", "revoke_orphan")


@given(st.lists(st.tuples(st.sampled_from(CHANGES), st.integers(0, 7), st.booleans()), max_size=8))
def test_a_remembered_token_is_what_its_entry_says(changes: list[tuple[str, int, bool]]) -> None:
    """Two nodes change tokens in turn. The one that remembers them answers as one that remembers nothing."""
    world = Installation()
    other = world.open_node()
    tokens = [new_token(world, ttl=100, no_parent=True)]

    def seen() -> list[object]:
        replies = [world.ask("GET", SELF, token=token) for token in tokens]
        return [(reply.status, reply.status == 200 and reply.data) for reply in replies]

    for change, number, is_elsewhere in changes:
        token = tokens[number % len(tokens)]
        with world.requests_to(other if is_elsewhere else world.service):
            match change:
                case "child":
                    reply = world.ask("POST", "auth/token/create", {"ttl": 60}, token)
                    tokens += [reply.auth["client_token"]] if reply.status == 200 else []
                case "expire":
                    world.advance(number)
                case "renew":
                    world.ask("POST", "auth/token/renew", {"token": token, "increment": number})
                case "revoke":
                    world.ask("POST", "auth/token/revoke", {"token": token})
                case "revoke_orphan":
                    world.ask("POST", "auth/token/revoke-orphan", {"token": token})
        with world.requests_to(other):
            other.context.caches.tokens.clear()
            expected = seen()
        assert seen() == expected
