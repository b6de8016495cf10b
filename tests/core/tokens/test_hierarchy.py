"""Hierarchy: a revocation ends all descendants and leases of a token, at once, and nothing else."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.context.queue import Job
from cloudid_core.deadline import Deadline
from cloudid_core.effects import Commit
from cloudid_core.errors import CloudidError
from cloudid_core.leases.record import Lease, find_lease
from cloudid_core.provider.provisioned import Provisioned
from cloudid_core.testing import Crashed, FaultKind
from cloudid_core.testing.faults import Fault
from cloudid_core.tokens import encoding, hierarchy
from cloudid_core.tokens.authenticate import find_by_text, find_token
from cloudid_core.tokens.record import Token
from tests.installation import Installation
from tests.sampling import examples
from tests.tokens import is_valid, look_up_self, new_token


def record_of(world: Installation, shown: str) -> Token:
    found = world.perform(find_by_text(world.context, shown))
    assert found is not None
    return found


def lend(world: Installation, shown: str) -> str:
    """Hang a lease that holds nothing on a token, as the secrets engine does; its id."""
    context, now = world.context, world.clock
    owner = world.perform(find_token(context, record_of(world, shown).id))
    assert owner is not None
    mount = world.mount("cloud")
    lease = Lease(
        id=f"cloud/creds/dev/{len(world.keys('lease/'))}",
        mount_id=mount.id,
        role="dev",
        token_id=owner.record.id,
        provisioned=Provisioned(made_at=now),
        issued_at=now,
        expires_at=now + 10**6,
        ends_at=now + 10**6,
        due_at=now + 10**6,
    )
    world.perform(context.records.commit(lease.creation | hierarchy.tie(owner)))
    return lease.key


def cached_or_refuse(world: Installation) -> list[str]:
    """What of tokens, children and leases is in the store beside the root token."""
    found = [*world.keys("token/"), *world.keys("child/"), *world.keys("token-lease/"), *world.keys("due/token/")]
    return [key for key in found if key != record_of(world, "root").key]


def test_a_token_is_revoked_with_all_its_descendants() -> None:
    world = Installation()
    parent = new_token(world)
    child = new_token(world, parent)
    line = [parent, child, new_token(world, parent), new_token(world, child)]
    revoked = world.must("POST", "auth/token/revoke", {"token": parent})
    assert revoked.response.wake_at == world.clock
    assert not any(is_valid(world, token) for token in line)


def test_background_work_deletes_all_descendants() -> None:
    world = Installation()
    parent = new_token(world)
    for _ in range(3):
        new_token(world, new_token(world, parent))
    world.must("POST", "auth/token/revoke", {"token": parent})
    world.pass_time(4)
    assert cached_or_refuse(world) == []


def test_parents_and_siblings_live_on() -> None:
    world = Installation()
    parent = new_token(world)
    token, sibling = new_token(world, parent), new_token(world, parent)
    world.must("POST", "auth/token/revoke", {"token": token})
    world.pass_time(2)
    assert is_valid(world, parent)
    assert is_valid(world, sibling)


def test_a_token_without_dependants_leaves_no_work() -> None:
    world = Installation()
    token = new_token(world, no_parent=True)
    revoked = world.must("POST", "auth/token/revoke", {"token": token})
    assert revoked.response.wake_at is None
    assert cached_or_refuse(world) == []


def test_a_childless_token_is_deleted_at_once_by_every_kind_of_revocation() -> None:
    """It leaves no entry that waits for children."""
    for path in ("revoke", "revoke-orphan"):
        world = Installation()
        token = new_token(world, no_parent=True)
        world.must("POST", f"auth/token/{path}", {"token": token})
        assert cached_or_refuse(world) == []


@pytest.mark.parametrize("released", [False, True])
def test_a_node_that_no_longer_leads_leaves_the_children_alone(released: bool) -> None:
    """Their work belongs to the next leader."""
    world = Installation()
    parent = new_token(world)
    child = new_token(world, parent)
    world.must("POST", "auth/token/revoke-orphan" if released else "auth/token/revoke", {"token": parent})
    before = {key: world.store.read(key) for key in world.keys("")}
    job = Job(
        context=world.context,
        key="",
        mount_id="",
        ref=encoding.id_of(parent, world.context.records.sealer.keyring.token_keys[-1]) or "",
        now=world.clock,
        deadline=Deadline(world.clock + 60),
        fence={"duty/term": 99},
    )
    assert world.perform(hierarchy.settle_children(job, released=released)) is False
    assert {key: world.store.read(key) for key in world.keys("")} == before
    assert is_valid(world, child) is released


def test_the_leases_of_all_descendants_end() -> None:
    world = Installation()
    parent = new_token(world)
    child = new_token(world, parent)
    mine, other = [lend(world, token) for token in (parent, child, child)], lend(world, new_token(world))
    world.must("POST", "auth/token/revoke", {"token": parent})
    world.pass_time(3)
    for key, ends in (*((key, True) for key in mine), (other, False)):
        lease = world.perform(world.context.records.find_fresh(key, Lease))
        assert (lease is None or lease.record.revoking) is ends


def test_leases_end_with_a_token_that_expires() -> None:
    world = Installation()
    token = new_token(world, ttl=60)
    key = lend(world, token)
    world.advance(59)
    world.tick()
    lease = world.perform(world.context.records.find_fresh(key, Lease))
    assert lease is not None
    assert not lease.record.revoking
    world.pass_time(2)
    lease = world.perform(world.context.records.find_fresh(key, Lease))
    assert lease is None or lease.record.revoking


def test_leases_end_with_the_last_use() -> None:
    world = Installation()
    token = new_token(world, num_uses=1, policies=["default"])
    key = lend(world, token)
    assert is_valid(world, token)
    world.pass_time(2)
    lease = world.perform(world.context.records.find_fresh(key, Lease))
    assert lease is None or lease.record.revoking


@pytest.mark.parametrize("increment", [30, 300])
def test_leases_follow_the_renewals_of_their_token(increment: int) -> None:
    world = Installation()
    token = new_token(world, ttl=100, renewable=True)
    key = lend(world, token)
    world.must("POST", "auth/token/renew-self", {"increment": increment}, token)
    for seconds, ends in ((increment - 2, False), (3, True)):
        world.advance(seconds)
        world.tick()
        lease = world.perform(world.context.records.find_fresh(key, Lease))
        assert (lease is None or lease.record.revoking) is ends


def test_a_token_can_be_revoked_without_its_children() -> None:
    world = Installation()
    parent = new_token(world)
    child = new_token(world, parent)
    grandchild = new_token(world, child)
    world.must("POST", "auth/token/revoke-orphan", {"token": parent})
    for _ in range(2):
        assert not is_valid(world, parent)
        assert is_valid(world, child)
        assert is_valid(world, grandchild)
        assert (look_up_self(world, child)["orphan"], look_up_self(world, grandchild)["orphan"]) == (True, False)
        world.pass_time(2)
    assert world.keys(f"child/{record_of(world, child).id}/")
    assert len(world.keys("token/")) == 3


def test_leases_of_a_token_that_leaves_orphans_end_and_theirs_do_not() -> None:
    world = Installation()
    parent = new_token(world)
    child = new_token(world, parent)
    keys = [lend(world, parent), lend(world, child)]
    world.must("POST", "auth/token/revoke-orphan", {"token": parent})
    world.pass_time(3)
    leases = [world.perform(world.context.records.find_fresh(key, Lease)) for key in keys]
    assert [lease is None or lease.record.revoking for lease in leases] == [True, False]


def test_an_orphan_of_a_dead_parent_outlives_its_former_grandparent() -> None:
    world = Installation()
    grandparent = new_token(world)
    parent = new_token(world, grandparent)
    child = new_token(world, parent)
    world.must("POST", "auth/token/revoke-orphan", {"token": parent})
    world.must("POST", "auth/token/revoke", {"token": grandparent})
    assert is_valid(world, child)
    world.pass_time(4)
    assert is_valid(world, child)


def test_many_children_are_orphaned_or_ended_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hierarchy, "PAGE", 2)
    for path, lives in (("revoke", False), ("revoke-orphan", True)):
        world = Installation()
        parent = new_token(world)
        children = [new_token(world, parent) for _ in range(5)]
        world.must("POST", f"auth/token/{path}", {"token": parent})
        for _ in range(4):
            assert [is_valid(world, child) for child in children] == [lives] * 5
            world.tick()
        assert world.keys("child/") == []
        assert len(world.keys("token/")) == (6 if lives else 1)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("path", ["revoke", "revoke-orphan"])
def test_a_child_that_is_made_while_its_parent_is_revoked_is_refused_or_treated_alike(seed: int, path: str) -> None:
    world = Installation(seed)
    parent = new_token(world)
    asking = [
        world.spawn(world.asking("POST", "auth/token/create", {}, parent)),
        world.spawn(world.asking("POST", f"auth/token/{path}", {"token": parent})),
        world.spawn(world.asking("POST", "auth/token/create", {}, parent)),
    ]
    world.settle()
    first, _, second = (task.result() for task in asking)
    made = [reply for reply in (first, second) if reply.status == 200]
    assert {reply.status for reply in (first, second)} <= {200, 403}
    world.pass_time(3)
    assert len(world.keys("token/")) == 1 + (len(made) if path == "revoke-orphan" else 0)
    assert all(key.startswith("child/" + record_of(world, "root").id) for key in world.keys("child/"))


def revoked(path: str, *faults: Fault) -> tuple[Installation, str, list[str]]:
    """An installation in which a token with two children is revoked, and the texts of the three; with faults."""
    world = Installation()
    parent = new_token(world)
    children = [new_token(world, parent) for _ in range(2)]
    world.inject(*faults)
    with suppress(Crashed, CloudidError):
        world.ask("POST", f"auth/token/{path}", {"token": parent})
        world.pass_time(3)
    return world, parent, children


@pytest.mark.parametrize("path", ["revoke", "revoke-orphan"])
def test_a_revocation_that_crashes_anywhere_is_all_or_nothing_and_is_worked_off(path: str) -> None:
    trace = revoked(path)[0].trace
    commits = [number for number, (_, effect) in enumerate(trace) if isinstance(effect, Commit)]
    for at in commits[-9:]:
        for kind in (FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER):
            world, parent, children = revoked(path, Fault(at, kind))
            is_revoked = not is_valid(world, parent)
            lives = path == "revoke-orphan" or not is_revoked
            assert [is_valid(world, child) for child in children] == [lives] * 2
            world.pass_time(4)
            assert [is_valid(world, child) for child in children] == [lives] * 2
            assert len(world.keys("token/")) == (4 if not is_revoked else 3 if lives else 1)


class Model:
    """The naive family tree: who is alive, by walking it."""

    def __init__(self) -> None:
        self.parent: dict[int, int | None] = {}

    def make(self, number: int, parent: int | None) -> None:
        self.parent[number] = parent

    def revoke(self, number: int) -> None:
        for child in [child for child, parent in self.parent.items() if parent == number]:
            self.revoke(child)
        del self.parent[number]

    def revoke_orphan(self, number: int) -> None:
        self.parent = {child: None if parent == number else parent for child, parent in self.parent.items()}
        del self.parent[number]


STEPS: Final = st.tuples(
    st.sampled_from(["child", "child", "orphan", "revoke", "revoke-orphan", "tick"]), st.integers(0, 99)
)


@examples(2)
@given(st.lists(STEPS, max_size=14))
def test_hierarchies_agree_with_a_naive_model(steps: list[tuple[str, int]]) -> None:
    world, model = Installation(), Model()
    tokens: list[str] = []
    for step, pick in steps:
        alive = sorted(model.parent)
        if step == "tick":
            world.tick()
        elif step == "orphan" or not alive:
            model.make(len(tokens), None)
            tokens.append(new_token(world, no_parent=True))
        elif step == "child":
            parent = alive[pick % len(alive)]
            model.make(len(tokens), parent)
            tokens.append(new_token(world, tokens[parent]))
        else:
            chosen = alive[pick % len(alive)]
            (model.revoke if step == "revoke" else model.revoke_orphan)(chosen)
            world.must("POST", f"auth/token/{step}", {"token": tokens[chosen]})
        assert [number for number, token in enumerate(tokens) if is_valid(world, token)] == sorted(model.parent)
    world.pass_time(6)
    assert [number for number, token in enumerate(tokens) if is_valid(world, token)] == sorted(model.parent)
    assert len(world.keys("token/")) == 1 + len(model.parent)
    assert len(world.keys("child/")) == sum(parent is not None for parent in model.parent.values())


def test_a_damaged_token_is_revoked_with_what_depends_on_it() -> None:
    world = Installation()
    shown = new_token(world)
    child, lease_id = new_token(world, shown), lend(world, shown)
    token = record_of(world, shown)
    world.store.commit({}, {token.key: b"damaged"}, ())
    assert world.perform(hierarchy.revoke(world.context, token.id, world.clock))
    world.tick()
    assert not world.keys(token.key)
    assert not is_valid(world, child)
    found = world.perform(find_lease(world.context, lease_id))
    assert found is None or found.record.revoking
