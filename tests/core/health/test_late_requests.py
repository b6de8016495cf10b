"""A request that is not answered in time changes this node's health only if the limit was the node's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cloudid_core.effects import Effect, ReadEntries, ReadEntry, Record
from cloudid_core.errors import Code, RecordFailed, Refused
from cloudid_core.events import Event
from cloudid_core.testing.faults import Stall
from tests.installation import Installation

SHORTEST = "0.000001"
DEVICE = {"type": "file", "options": {"file_path": "/var/log/audit.log"}}
PROBES = ("sys/health", "sys/seal-status", "sys/leader")


class Slow(Installation):
    """A world in which some effects take longer than a request may."""

    stalled: tuple[type[Effect[object]], ...] = ()

    def stall_for(self, effect: Effect[object]) -> Stall | None:
        return Stall.BEFORE if isinstance(effect, self.stalled) else super().stall_for(effect)

    @contextmanager
    def stalling(self, *effects: type[Effect[object]]) -> Iterator[None]:
        self.stalled = effects
        try:
            yield
        finally:
            self.stalled = ()


def problems_of(world: Installation) -> object:
    return world.ask("GET", "sys/health", token="").body["problems"]


@pytest.mark.parametrize("path", ["sys/x", "auth/token/lookup-self", "sys/mounts"])
def test_a_callers_short_deadline_does_not_make_audit_unavailable(path: str) -> None:
    world = Slow()
    world.must("PUT", "sys/audit/file", DEVICE)
    with world.stalling(Record):
        assert world.ask("GET", path, token="", x_service_deadline=SHORTEST).codes == ["deadline_passed"]
    assert problems_of(world) == []


def test_a_request_that_the_host_gave_up_does_not_make_audit_unavailable() -> None:
    world = Slow()
    world.must("PUT", "sys/audit/file", DEVICE)
    exchange = world.service.begin(world.request("GET", "sys/x", token=""))
    world.perform(world.service.work_on(exchange))
    exchange.given_up = Refused(Code.TOO_MANY_CONNECTIONS)
    with world.stalling(Record):
        assert world.receive(world.perform(world.service.answer_late(exchange))).codes == ["too_many_connections"]
    assert problems_of(world) == []


def test_a_request_that_no_device_records_within_the_nodes_own_limit_makes_audit_unavailable() -> None:
    world = Slow()
    world.must("PUT", "sys/audit/file", DEVICE)
    with world.stalling(Record):
        assert world.ask("GET", "sys/x", token="").codes == ["deadline_passed"]
    assert problems_of(world) == ["audit_unavailable"]
    with world.stalling(ReadEntry, ReadEntries):  # no entry is recorded, and none fails
        world.ask("GET", "sys/health", token="", x_service_deadline=SHORTEST)
    assert world.context.node.last_record_failed


@pytest.mark.parametrize("path", PROBES)
def test_a_callers_short_deadline_does_not_make_the_store_unavailable(path: str) -> None:
    world = Slow()
    with world.stalling(ReadEntry, ReadEntries):
        reply = world.ask("GET", path, token="", x_service_deadline=SHORTEST)
        assert reply.status == 200, "the state of this node is known without the store"
    assert not world.context.node.last_read_failed


@pytest.mark.parametrize("path", PROBES)
def test_a_store_that_does_not_answer_within_the_nodes_own_limit_is_unavailable(path: str) -> None:
    world = Slow()
    with world.stalling(ReadEntry, ReadEntries):
        world.ask("GET", path, token="", x_service_deadline="1")
        assert world.context.node.last_read_failed
    assert problems_of(world) == []


def test_a_late_request_for_metrics_does_not_call_its_token_invalid() -> None:
    world = Slow()
    world.must("GET", "sys/health", token="")
    with world.stalling(ReadEntry, ReadEntries):
        assert world.refused("GET", "sys/metrics", x_service_deadline=SHORTEST) == (503, "store_unavailable")
    assert not world.context.node.last_read_failed


class FailsOnce(Installation):
    """A world in which the next audit entry cannot be recorded, and no other."""

    failures = 0

    async def record(self, event: Event) -> None:
        if event.audit is not None and self.failures:
            self.failures -= 1
            raise RecordFailed("disk full")
        await super().record(event)


def test_a_recorded_refusal_shows_that_audit_works_again() -> None:
    world = FailsOnce()
    world.must("PUT", "sys/audit/file", DEVICE)
    world.failures = 2  # the answer, and the refusal in its place
    world.ask("GET", "sys/mounts")
    assert problems_of(world) == ["audit_unavailable"]
    assert world.refused("GET", "sys/mounts", token="") == (403, "permission_denied")
    assert problems_of(world) == []
