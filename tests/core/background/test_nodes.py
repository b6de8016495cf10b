"""Nodes on one store: who they are, whether they agree, what health reports, and that nothing waits for a dead one."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from attrs import evolve, fields

from cloudid_core import Service
from cloudid_core.background.leadership import LENGTH
from cloudid_core.background.loop import CLUSTER_ROUND_INTERVAL, LEADER_CHECK_INTERVAL, ROUND_INTERVAL
from cloudid_core.background.nodes import (
    ALONE_PAUSE,
    COMMIT_SECONDS,
    FORGOTTEN,
    GONE,
    LOOK_PAUSE,
    digests,
    nodes_with_other_master_keys,
)
from cloudid_core.clouds import CLOUDS
from cloudid_core.context.keyring import add_master_key, begin_data_key, drop_other_master_keys
from cloudid_core.effects import ClockReading, Commit, Effect, ListKeys, ReadEntries, ReadEntry
from cloudid_core.errors import CloudidError, HostFailure, Refused, StoreFailed
from cloudid_core.events import SettingsDiffer
from cloudid_core.settings import Settings
from cloudid_core.store import keys
from cloudid_core.testing.faults import Crashed, Fault, FaultKind, Stall, troubles_of
from cloudid_core.values.secret import Secret
from tests.installation import Installation


def look(world: Installation, *nodes: Service) -> None:
    """Let these nodes look at the others."""
    for node in nodes:
        world.perform(node.upkeep())


def differing(world: Installation) -> list[tuple[str, ...]]:
    """The names of the settings that differ, as each report has them."""
    return [event.names for event in world.events if isinstance(event, SettingsDiffer)]


def test_nodes_see_each_other_and_every_one_is_active() -> None:
    world = Installation()
    one, two = world.service, world.open_node(node_name="two")
    look(world, one, two, one)
    world.perform(two.tick())
    world.advance(LOOK_PAUSE)
    look(world, one, two)
    for service in (one, two):
        with world.requests_to(service):
            health = world.must("GET", "sys/health", token="").body
            leader = world.must("GET", "sys/leader", token="").body
            nodes = world.must("GET", "sys/ha-status").data["nodes"]
        assert (health["standby"], health["node_id"]) == (False, service.context.node.id)
        assert (leader["ha_enabled"], leader["is_self"]) == (True, True)
        assert leader["background_node_id"] == two.context.node.id
        assert {node["node_id"] for node in nodes} == {one.context.node.id, two.context.node.id}
        assert [node["hostname"] for node in nodes if node["background_node"]] == ["two"]
        assert all(node["active_node"] for node in nodes)


def test_nodes_may_keep_their_audit_files_in_folders_of_their_own() -> None:
    """`audit_directory` is a setting of one server."""
    world = Installation()
    one, two = world.service, world.open_node(audit_folders=("/var/log/two",))
    look(world, one, two, one)
    assert differing(world) == []


def test_nodes_divide_what_the_provider_lets_all_of_them_read() -> None:
    world = Installation()
    one, two = world.service, world.open_node()
    assert one.context.caches.nodes == 1
    look(world, one, two, one)
    assert [service.context.caches.nodes for service in (one, two)] == [2, 2]
    world.advance(GONE)
    look(world, one)
    assert one.context.caches.nodes == 1


def test_a_node_that_is_alone_says_so() -> None:
    world = Installation()
    look(world, world.service)
    assert world.must("GET", "sys/leader", token="").body["ha_enabled"] is False
    assert len(world.must("GET", "sys/ha-status").data["nodes"]) == 1


def test_the_list_of_nodes_needs_a_token() -> None:
    assert Installation().ask("GET", "sys/ha-status", token="").status == 403


def test_a_silent_node_counts_no_more_and_its_entry_is_removed() -> None:
    world = Installation()
    one, two = world.service, world.open_node()
    look(world, two, one)
    assert one.context.node.others
    world.advance(GONE)
    look(world, one)
    assert not one.context.node.others
    world.advance(FORGOTTEN)
    look(world, one)
    assert world.keys(keys.NODES) == [keys.node(one.context.node.id)]
    look(world, two)
    look(world, one)
    assert one.context.node.others, "it is back"


def test_a_node_that_is_alone_writes_once_a_minute() -> None:
    world = Installation()
    for _ in range(int(2 * ALONE_PAUSE / LOOK_PAUSE) - 1):
        look(world, world.service)
        world.advance(LOOK_PAUSE)
    assert sum(isinstance(e, Commit) and any(k.startswith(keys.NODES) for k in e.puts) for _, e in world.trace) == 2


@pytest.mark.parametrize(
    "changes, names",
    [
        ({"settle_time": 1}, ("settle_time",)),
        ({"request_deadline": 5.0, "request_grace": 1.0}, ("request_deadline", "request_grace")),
        ({"max_lease_ttl": 77}, ("max_lease_ttl",)),
        ({"environment": {"CLOUD_CLIENT_SECRET": Secret("a")}}, ("environment.CLOUD_CLIENT_SECRET",)),
        ({"clouds": CLOUDS}, tuple(sorted(f"clouds.{name}" for name in CLOUDS))),
        ({field.name: 1024 for field in fields(Settings) if field.name.endswith(("_cache_size", "_limit"))}, None),
        ({"fact_cache_size": 1, "node_name": "x", "trusted_proxies": ("10.0.0.0/8",)}, None),
    ],
)
def test_settings_that_must_agree_are_compared_by_name(changes: dict[str, Any], names: tuple[str, ...] | None) -> None:
    world = Installation()
    other = world.open_node(**changes)
    look(world, world.service, other, other)
    assert differing(world) == ([names] if names else [])
    with world.requests_to(other):
        health = world.must("GET", "sys/health").body
        assert health["settings_that_differ"] == list(names or ())
        assert health["problems"] == (["settings_differ"] if names else [])


def test_issuers_on_loopback_are_each_nodes_own() -> None:
    """Their ports tell them apart. Beside an issuer that others can reach, one on loopback is a mistake."""
    world = Installation(issuer="http://127.0.0.1:8200")
    look(world, world.service, world.open_node(issuer="http://[::1]:8300"), world.service)
    assert differing(world) == []
    look(world, world.open_node(issuer="https://id.test"))
    assert differing(world) == [("issuer",)]


def test_settings_that_agree_again_are_reported_too() -> None:
    world = Installation()
    other = world.open_node(settle_time=1)
    look(world, other, world.service)
    world.advance(GONE)
    look(world, world.service)
    assert differing(world) == [("settle_time",), ()]


def test_a_digest_tells_nothing_about_a_secret() -> None:
    world = Installation()
    keyring = world.context.records.sealer.keyring
    settings = Settings(master_key=Secret("5a" * 32), environment={"CLOUD_X": Secret("canary")})
    digest = digests(settings, keyring.token_keys[0].token_hash)
    assert "canary" not in str(digest)
    assert "master_key" not in digest
    assert digest != digests(
        evolve(settings, environment={"CLOUD_X": Secret("other")}), keyring.token_keys[0].token_hash
    )


@pytest.mark.parametrize("offset, status", [(0.0, 200), (5.5, 200), (-7.0, 503), (7.0, 503)])
def test_health_fails_when_clocks_are_apart(offset: float, status: int) -> None:
    """A commit that took long says little about the clock."""
    world = Installation()
    world.store_clock = ClockReading(offset, 1.0)
    look(world, world.service)
    health = world.ask("GET", "sys/health", token="")
    assert health.status == status
    assert health.body["clock_skew_ms"] == offset * 1000
    assert bool(health.body["problems"]) == (status == 503)


class Storeless(Installation):
    """Its store can be lost, or take no writes."""

    failing: tuple[type[Effect[Any]], ...] = ()

    def fault_for(self, effect: Effect[Any]) -> FaultKind | None:
        return FaultKind.FAIL if isinstance(effect, self.failing) else super().fault_for(effect)


def test_health_fails_while_the_store_is_lost() -> None:
    world = Storeless()
    look(world, world.service)
    world.failing = (ReadEntry, ReadEntries, ListKeys, Commit)
    with pytest.raises(HostFailure):
        look(world, world.service)
    world.failing = ()
    assert world.ask("GET", "sys/health", token="").status == 503
    look(world, world.service)
    assert world.must("GET", "sys/health", token="").body["store_latency_ms"] == 0


def test_the_state_of_a_node_is_told_while_the_store_is_lost() -> None:
    """Though it has not looked since. Everything else is refused."""
    world = Storeless()
    world.failing = (ReadEntry, ReadEntries, ListKeys, Commit)
    world.advance(60)
    health = world.ask("GET", "sys/health", token="")
    assert (health.status, health.body["problems"]) == (503, ["store_unavailable"])
    assert world.ask("GET", "sys/health").body["problems"] == ["store_unavailable"], "nor can the token be looked up"
    for path in ("sys/leader", "sys/seal-status", "sys/init"):
        assert world.ask("GET", path, token="").status == 200
    for path in ("sys/ha-status", "nowhere", "identity/oidc/plugins/.well-known/keys", "auth/token/lookup-self"):
        assert world.refused("GET", path) == (503, "store_unavailable")
    world.failing = ()
    look(world, world.service)
    assert world.must("GET", "sys/health", token="").body["problems"] == []


def test_one_failed_read_makes_health_fail_only_until_the_store_answers_again() -> None:
    """Though the next look at the store is seconds away."""
    world = Storeless()
    look(world, world.service)
    world.failing = (Commit, ReadEntry, ReadEntries, ListKeys)
    assert world.ask("GET", "sys/health", token="").status == 503
    world.failing = ()
    assert world.ask("GET", "sys/health", token="").status == 200


@pytest.mark.parametrize("is_read_first", [True, False])
def test_health_fails_where_the_master_key_opens_no_more_what_others_write(is_read_first: bool) -> None:
    """The others were restarted with another one, and this node was forgotten."""
    world = Installation()
    new = Secret("a5" * 32)
    world.perform(add_master_key(world.settings, new))
    other = world.open_node(master_key=new)
    world.perform(drop_other_master_keys(other.context.settings))
    world.perform(begin_data_key(other.context))
    if is_read_first:  # by a request, health itself
        with world.requests_to(other):
            world.must("POST", "sys/mounts/more", {"type": "cloud"})
    else:
        world.perform(other.upkeep())
        with pytest.raises(Refused, match="sealed"):
            world.perform(world.service.upkeep())
    health = world.ask("GET", "sys/health", token="")
    assert (health.status, health.body["problems"]) == (503, ["store_unavailable"])


def test_health_fails_at_once_where_a_record_is_sealed_with_a_key_that_this_node_cannot_learn() -> None:
    """Mounts are still readable, so that nothing else would show it before the next read of the key ring."""
    world = Installation()
    new = Secret("a5" * 32)
    world.perform(add_master_key(world.settings, new))
    other = world.open_node(master_key=new)
    world.perform(drop_other_master_keys(other.context.settings))
    world.perform(begin_data_key(other.context))
    with world.requests_to(other):
        token = world.must("POST", "auth/token/create").body["auth"]["client_token"]
    assert world.refused("GET", "auth/token/lookup-self", token=token) == (503, "sealed")
    health = world.ask("GET", "sys/health", token="")
    assert (health.status, health.body["problems"]) == (503, ["store_unavailable"])
    with pytest.raises(Refused, match="sealed"):
        look(world, world.service)
    assert world.ask("GET", "sys/health", token="").status == 503


def test_nodes_with_another_master_key_are_known_until_they_have_left() -> None:
    world = Installation()
    new = Secret("a5" * 32)
    world.perform(add_master_key(world.settings, new))
    other = world.open_node(master_key=new, node_name="other")
    look(world, world.service, other)
    changed = evolve(world.settings, master_key=new)
    former = world.service.context.node.id
    assert world.perform(nodes_with_other_master_keys(changed)) == (former,)
    assert world.perform(nodes_with_other_master_keys(world.settings)) == ("other",)
    assert new.reveal() not in str(other.context.node)
    world.perform(world.service.stop())
    assert world.perform(nodes_with_other_master_keys(changed)) == ()
    world.advance(GONE)
    assert world.perform(nodes_with_other_master_keys(world.settings)) == ()


def test_health_fails_while_the_store_takes_no_writes() -> None:
    """What only reads is answered all the same."""
    world = Storeless()
    look(world, world.service)
    world.failing = (Commit,)
    world.advance(ALONE_PAUSE)
    with pytest.raises(HostFailure):
        look(world, world.service)
    assert world.ask("GET", "sys/health", token="").status == 503
    assert world.ask("GET", "auth/token/lookup-self").status == 200


class WithoutCommits(Installation):
    """Commits stand still, while reads are answered."""

    is_stalled = False

    def stall_for(self, effect: Effect[Any]) -> Stall | None:
        return Stall.BEFORE if self.is_stalled and isinstance(effect, Commit) else None


def test_health_fails_within_seconds_while_commits_stand_still() -> None:
    """A lock in the database can hold commits up and no read, so that no look fails by itself."""
    world = WithoutCommits()
    look(world, world.service)
    world.must("POST", "auth/token/create")
    world.is_stalled = True
    world.advance(LOOK_PAUSE)
    before = world.clock
    with pytest.raises(StoreFailed, match="a commit takes longer"):
        look(world, world.service)
    assert world.clock - before == COMMIT_SECONDS
    assert world.ask("GET", "sys/health", token="").body["problems"] == ["store_unavailable"]
    world.is_stalled = False
    look(world, world.service)
    assert world.ask("GET", "sys/health", token="").status == 200


def test_a_node_that_writes_nothing_seldom_finds_out_whether_it_could() -> None:
    """Each commit of an idle node costs a write to its disk."""
    world = Installation()
    look(world, world.service)
    start = len(world.trace)
    for _ in range(int(ALONE_PAUSE / LOOK_PAUSE) - 1):
        world.advance(LOOK_PAUSE)
        look(world, world.service)
    assert not [effect for _, effect in world.trace[start:] if isinstance(effect, Commit)]


def test_the_leader_looks_each_second_while_there_are_others() -> None:
    """What another node wants done early cannot wake it."""
    world = Installation()
    assert world.perform(world.service.tick()) == world.clock + ROUND_INTERVAL
    other = world.open_node()
    look(world, world.service, other)
    assert world.perform(other.tick()) == world.clock + CLUSTER_ROUND_INTERVAL
    before = len(world.trace)
    world.advance(CLUSTER_ROUND_INTERVAL)
    world.perform(other.tick())
    assert len(world.trace) - before < 12, "a poll is cheap"


def test_background_work_of_one_node_is_done_by_the_other_within_a_second() -> None:
    world = Installation()
    one, two = world.service, world.open_node()
    look(world, one, two)
    world.perform(two.tick())
    world.perform(one.tick())
    created = world.must("POST", "auth/token/create", {"policies": ["default"]}).auth["client_token"]
    child = world.must("POST", "auth/token/create", {"policies": ["default"], "ttl": "1h"}, token="root").body
    assert child
    world.must("POST", "auth/token/revoke", {"token": created})
    world.advance(CLUSTER_ROUND_INTERVAL)
    world.perform(two.tick())
    assert not [key for key in world.keys(keys.DUE) if "signing-key" not in key]


def test_another_node_takes_over_when_the_leader_is_dead() -> None:
    world = Installation()
    one, two = world.service, world.open_node()
    world.perform(two.tick())
    assert one.context.node.id == leader_after(world, one, LENGTH)


def with_leader() -> tuple[Installation, Service, Service]:
    """Two nodes of which the first has led, and the second leads."""
    world = Installation()
    one, two = world.service, world.open_node()
    world.perform(one.tick())
    world.perform(two.tick())
    return world, one, two


def leader_after(world: Installation, follower: Service, seconds: float) -> str:
    """Who leads, after rounds of a node that does not lead at first."""
    until = world.clock + seconds
    while (again := world.perform(follower.tick())) <= until:
        assert again <= world.clock + LEADER_CHECK_INTERVAL or follower.context.node.leader == follower.context.node.id
        world.advance(again - world.clock)
    look(world, follower)
    return follower.context.node.leader


def test_a_leader_that_stops_hands_over_within_seconds() -> None:
    world, one, two = with_leader()
    look(world, one, two, one)
    world.perform(two.stop())
    assert leader_after(world, one, LEADER_CHECK_INTERVAL) == one.context.node.id
    assert not one.context.node.others, "the node that stopped is off the list"


def test_a_node_that_has_stopped_does_not_come_back() -> None:
    """Though its rounds and its looks go on until the host ends them."""
    world, one, two = with_leader()
    world.perform(two.stop())
    world.advance(ALONE_PAUSE)
    assert world.perform(two.tick()) == world.clock + ROUND_INTERVAL
    look(world, two, one)
    assert not world.store.list(keys.LEADER_TERM, "", 1)
    assert not one.context.node.others


def test_a_follower_that_stops_leaves_the_leader_alone() -> None:
    world, one, two = with_leader()
    world.perform(one.stop())
    assert leader_after(world, one, 0.0) == two.context.node.id


class StopAmidRound(Installation):
    """A node stops before the n-th effect of its round, or of its look at the others."""

    stopping: Service | None = None
    stops_at = 0

    def fault_for(self, effect: Effect[Any]) -> FaultKind | None:
        if self.stopping is not None and len(self.trace) >= self.stops_at:
            stopping, self.stopping = self.stopping, None
            self.spawn(stopping.stop())
        return super().fault_for(effect)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("effects", range(12))
@pytest.mark.parametrize("after", [LENGTH - 1, LENGTH + 1])
@pytest.mark.parametrize("leads", [False, True])
def test_a_round_under_way_does_not_undo_a_stop(effects: int, leads: bool, after: float, seed: int) -> None:
    """It may be about to take, or to renew, the leadership."""
    world = StopAmidRound(seed)
    nodes = one, two = world.service, world.open_node()
    world.perform(one.tick())
    world.perform(two.tick())
    stopping, other = reversed(nodes) if leads else nodes
    world.advance(after)
    world.stopping, world.stops_at = stopping, len(world.trace) + effects
    for program in (stopping.tick(), stopping.upkeep()):
        world.spawn(program)
    world.settle()
    assert world.stopping is None
    assert leader_after(world, other, LEADER_CHECK_INTERVAL) == other.context.node.id


@pytest.mark.parametrize("kind", FaultKind)
def test_a_stop_that_fails_leaves_the_work_to_another_node_a_minute_later(kind: FaultKind) -> None:
    """Or at once: it is never undone by what fails after it."""
    plain, _, leader = with_leader()
    begin = len(plain.trace)
    plain.perform(leader.stop())
    for at, (_, effect) in enumerate(plain.trace[begin:], begin):
        if kind in troubles_of(effect):
            world, follower, leader = with_leader()
            world.inject(Fault(at, kind))
            with suppress(Crashed, CloudidError):
                world.perform(leader.stop())
            assert leader_after(world, follower, LENGTH + LEADER_CHECK_INTERVAL) == follower.context.node.id


def test_a_sweep_reads_many_tokens_at_once() -> None:
    world = Installation()
    for _ in range(20):
        world.must("POST", "auth/token/create", {"policies": ["default"], "ttl": "1s"})
    world.advance(10)
    begin = len(world.trace)
    world.perform(world.service.tick())
    assert max(len(effect.keys) for _, effect in world.trace[begin:] if isinstance(effect, ReadEntries)) >= 20


@pytest.mark.parametrize("asks_follower", [False, True])
def test_a_round_that_is_asked_for_sweeps_and_one_that_only_looks_does_not(asks_follower: bool) -> None:
    """`auth/token/tidy` asks for one at any node; otherwise the leader removes dead tokens every ten seconds."""
    world = Installation()
    leader, follower = world.service, world.open_node()
    look(world, follower, leader)
    world.must("POST", "auth/token/create", {"policies": ["default"], "ttl": "1s", "no_parent": True})
    tokens = len(world.store.list(keys.TOKENS, "", 10))
    again = world.perform(leader.tick())
    world.advance(again - world.clock)
    again = world.perform(leader.tick())
    assert len(world.store.list(keys.TOKENS, "", 10)) == tokens
    with world.requests_to(follower if asks_follower else leader):
        world.must("POST", "auth/token/tidy")
    assert again <= world.clock + CLUSTER_ROUND_INTERVAL
    world.perform(leader.tick())
    assert len(world.store.list(keys.TOKENS, "", 10)) == tokens - 1
