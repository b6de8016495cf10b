"""Several nodes: an installation whose requests go to one node after the other, over one store.

Nodes share the store and the cloud and nothing else: each has its caches, its keys and its clock. One can stall, be cut
off from the store or the cloud, or die for good; and at any effect another one can start and take over the leadership.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final, TypeVar, cast

from attrs import evolve

from cloudid_core import Response, Service, Settings, open_service
from cloudid_core.effects import (
    CallProvider,
    Commit,
    Effect,
    Host,
    Instant,
    ListKeys,
    Program,
    ReadEntries,
    ReadEntry,
    Sleep,
)
from cloudid_core.errors import CloudidError
from cloudid_core.store.memory import MemoryStore
from cloudid_core.testing import Crashed, FaultKind
from cloudid_core.testing.turns import Task
from cloudid_servers.provider_simulator import Simulator
from tests.installation import START, Reply

from .operations import DUTY
from .recorded import RecordedInstallation

T = TypeVar("T")

SKEWS: Final = (0.0, 4.0, -4.0)
"""Seconds that the clocks of the nodes are ahead: as much as health bears."""

MOST_ROUNDS: Final = 12
"""Rounds that the other nodes do while one stalls."""

PAUSE: Final = 15.0
"""Seconds between two rounds of all nodes at the least: nothing happens in most of those that a leader makes."""

WIDEST_SKEW: Final = max(SKEWS) - min(SKEWS)
STORE: Final = (ReadEntry, ReadEntries, ListKeys, Commit)
CLOUD: Final = (CallProvider,)


class NodeHost:
    """The world as one node sees it: by its own clock, and only what it can reach. While it stalls, nothing happens."""

    def __init__(self, world: Nodes, number: int) -> None:
        self.number = number
        self.skew = SKEWS[number % len(SKEWS)]
        self.unreachable: tuple[type[Effect[Any]], ...] = ()
        self.stalled_until: Instant = 0.0
        self._world = world

    def __getattr__(self, name: str) -> Any:
        perform = getattr(self._world, name)

        async def perform_after_stall(*arguments: Any) -> Any:
            self._world.strike_stall(self)
            await self._world.wait_until(self.stalled_until)
            return await perform(*arguments)

        return perform_after_stall

    async def now(self) -> Instant:
        await self._world.wait_until(self.stalled_until)
        return await self._world.now() + self.skew

    async def within(self, seconds: float, program: Program[Any]) -> Any:
        """Time-outs stand still while a node stalls, as they do on a virtual machine that is paused."""
        return await self._world.within(seconds + self._world.stall_to_come, program)

    async def shared(self, key: str, program: Program[Any]) -> Any:
        return await self._world.shared(f"{self.number} {key}", program)


class Nodes(RecordedInstallation):
    """An installation of `count` nodes. A request, or a round of background work, is the next node's."""

    def __init__(
        self,
        seed: int = 0,
        store: MemoryStore | None = None,
        simulator: Simulator | None = None,
        start: Instant = START,
        count: int = 2,
    ) -> None:
        self.hosts = [NodeHost(self, 0)]
        self.services: list[Service] = []
        self.turn = 0
        self.newcomer_at: int | None = None
        """Before that effect another node starts and takes over the leadership."""
        self.newcomer: Task[Service] | None = None
        self.stalls_at: int | None = None
        """Before that effect the node that is about to perform it stalls, and the others go on without it."""
        self.stall_seconds = 0.0
        self.lateness = 0.0
        """Seconds that the answer to the present request may be late, since a node stalled meanwhile."""
        self.cut_off_at: int | None = None
        """From that effect on the node that performs it does not reach the store."""
        self.stops_at: int | None = None
        """Before that effect the node whose turn it is stops, as on SIGTERM, amid all that it has under way."""
        self.stopped: Service | None = None
        super().__init__(seed, store, simulator, start)
        for number in range(1, count):
            self.hosts.append(NodeHost(self, number))
            self.turn = number
            self.service = self.perform(open_service(self.settings))
        for _ in range(2):  # once to be seen, and once to see all
            for self.turn in range(count):
                self.perform(self.service.upkeep())

    @classmethod
    def over(cls, original: RecordedInstallation, seed: int = 0, count: int = 2) -> Nodes:
        """Nodes in the state of an installation, of which one has taken over the leadership."""
        twin = cls(seed, original.store.copy(), original.simulator, original.clock, count)
        twin.answered, twin.unheard = dict(original.answered), set(original.unheard)
        twin.advance(DUTY)
        twin.tick()
        return twin

    @property
    def service(self) -> Service:
        return self.services[self.turn]

    @service.setter
    def service(self, opened: Service) -> None:
        self.services[self.turn : self.turn + 1] = [opened]

    async def wait_until(self, instant: Instant) -> None:
        await self._wait_until(instant)

    def spawn(self, program: Program[T], name: str = "", host: Host | None = None) -> Task[T]:
        return super().spawn(program, name, host or cast(Host, self.hosts[self.turn]))

    def next_turn(self) -> None:
        self.turn = (self.turn + 1) % len(self.hosts)

    def ask(self, *arguments: Any, **options: Any) -> Reply:
        self.next_turn()
        self.lateness = 0.0
        return super().ask(*arguments, **options)

    def tick(self) -> Instant:
        """A round of every node; a failure is raised when all have had theirs."""
        again, failures = [], []
        for _ in self.hosts:
            self.next_turn()
            try:
                again.append(super().tick())
            except CloudidError as failure:
                failures.append(failure)
        if failures:
            raise failures[0]
        return max(min(again), self.clock + PAUSE)

    def crash(self) -> None:
        """All nodes lose what they have under way; one that is just starting starts anew."""
        is_starting = self.newcomer is not None and not self.newcomer.is_done
        super().crash()
        if is_starting:
            self.start_newcomer()

    def restart(self, **settings: Any) -> None:
        """The node that was killed does not come back, unless it was the last: the others go on without it."""
        self.crash()
        self._lose_node(self.turn, **settings)

    def remove_node(self, service: Service) -> None:
        """A node that has stopped ends, if it was not killed meanwhile; the last one starts again."""
        if service in self.services:
            self._lose_node(self.services.index(service))

    def _lose_node(self, number: int, **settings: Any) -> None:
        if len(self.hosts) == 1:
            self.hosts = [NodeHost(self, self.hosts[0].number)]
            super().restart(**settings)
            return
        del self.hosts[number], self.services[number]
        self.turn %= len(self.hosts)

    def add_node(self) -> None:
        """Another node starts; it takes over the leadership in its first round."""
        self.hosts.append(NodeHost(self, max(host.number for host in self.hosts) + 1))
        self.turn = len(self.services)
        while len(self.services) < len(self.hosts):
            with suppress(CloudidError, Crashed):
                self.services.append(self.perform(open_service(self.settings)))

    def start_newcomer(self) -> None:
        self.newcomer = self.spawn(_start_and_lead(self.settings), host=cast(Host, NodeHost(self, len(self.hosts))))

    @property
    def stall_to_come(self) -> float:
        """Seconds that a node will stall yet."""
        return 0.0 if self.stalls_at is None else self.stall_seconds

    def strike_stall(self, host: NodeHost) -> None:
        """Let the node stall if it is time; the others do their rounds of background work meanwhile."""
        if self.stalls_at is None or len(self.trace) < self.stalls_at:
            return
        self.stalls_at, self.is_struck, self.has_stalled = None, True, True
        host.stalled_until = self.clock + self.stall_seconds
        self.lateness = self.stall_seconds
        for other, service in zip(self.hosts, self.services, strict=False):
            if other is not host:
                self.spawn(_do_rounds(service, self.stall_seconds), "tick of another node", cast(Host, other))

    def fault_for(self, effect: Effect[Any]) -> FaultKind | None:
        if self.newcomer_at is not None and len(self.trace) >= self.newcomer_at:
            self.newcomer_at, self.is_struck = None, True
            self.start_newcomer()
        if self.stops_at is not None and len(self.trace) >= self.stops_at:
            self.stops_at, self.stopped, self.is_struck = None, self.service, True
            self.spawn(self.service.stop())
        host = self._running_task().host
        if self.cut_off_at is not None and len(self.trace) >= self.cut_off_at and isinstance(host, NodeHost):
            self.cut_off_at, host.unreachable = None, STORE
        if isinstance(host, NodeHost) and isinstance(effect, host.unreachable):
            self.is_struck = True
            return FaultKind.FAIL
        return super().fault_for(effect)

    def receive(self, response: Response) -> Reply:
        """A lease may end sooner than its client thinks: a node's clock may be ahead, and an answer may be late."""
        reply = super().receive(response)
        lease_id = reply.body.get("lease_id") if reply.body and reply.status == 200 else None
        if lease_id:
            answered = self.answered[lease_id]
            self.answered[lease_id] = evolve(answered, until=answered.until - WIDEST_SKEW - self.lateness)
        return reply

    def heal(self) -> None:
        for host in self.hosts:
            host.unreachable, host.stalled_until = (), 0.0
        super().heal()


async def _do_rounds(service: Service, seconds: float) -> None:
    """Rounds of background work for so long: in a long time they are rarer, but finish what a dead node has left."""
    rounds = min(int(seconds / PAUSE), MOST_ROUNDS)
    for _ in range(rounds):
        with suppress(CloudidError):
            await service.tick()
        await Sleep(seconds / rounds)


async def _start_and_lead(settings: Settings) -> Service:
    """A node whose start fails starts again."""
    while True:
        try:
            service = await open_service(settings)
            break
        except CloudidError:
            await Sleep(PAUSE)
    with suppress(CloudidError):
        await service.tick()
    return service
