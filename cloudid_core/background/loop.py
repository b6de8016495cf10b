"""The loop of the leader: it runs all scheduled jobs with a budget for each queue, and returns when to run again.

There is a queue for each mount and kind of work, and a few lanes work on each queue. A round finds the due jobs, fills
the queues and starts lanes, but waits for the lanes only briefly. A lane takes the next key of its queue whenever it is
free, and may outlive its round. So no queue waits for another, and if Azure hangs for one mount, it delays only that
mount's lanes.

Lanes never fail. A failure of Azure is stored in its record, which is scheduled again. A job that hits a bug is set
aside for a while, and the bug is raised at the end of the round for the host's log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from math import inf
from typing import Final

from attrs import define, field, frozen

from ..caches import Bounded
from ..context import Context, Job, keep_reserve, queue
from ..deadline import Deadline
from ..effects import (
    ABSENT,
    CompareClocks,
    Instant,
    ListKeys,
    Now,
    Program,
    gather,
    record_if_possible,
    shared,
    within,
)
from ..errors import Conflict, EntryDamaged, HostFailure, Refused, TimeIsUp
from ..events import JobFailed, LeadershipTaken, Problem
from ..health import HealthProblem
from ..store import Changes, keys
from .leadership import LENGTH, hold_leadership, is_leader, release_leadership

SWEEP_INTERVAL: Final = 10.0
"""Minimum seconds between two sweeps for expired entries, unless one was incomplete or a request asks for another."""
ROUND_INTERVAL: Final = 10.0
"""Maximum seconds between two rounds: another node may have led, and stopped, since the last one."""
CLUSTER_ROUND_INTERVAL: Final = 1.0
"""Maximum seconds between two rounds if there are other nodes."""
LEADER_CHECK_INTERVAL: Final = 2.0
"""Seconds between two checks of who leads, on the nodes that do not."""
RETRY_INTERVAL: Final = 1.0
"""Seconds between two rounds if the first could not finish its jobs, or lanes are still working."""
ROUND_SECONDS: Final = 1.0
"""How long a round waits for the lanes that it started."""
BUDGET: Final = 64
"""How many keys of a queue one round passes to its lanes."""
LANES: Final = 4
"""Maximum number of concurrent jobs of a queue."""
LANES_BEHIND: Final = 32
"""The same if more jobs are due than the budget: leases must end as fast as requests create them."""
MOST_LANES: Final = 64
"""Maximum number of lanes that one round starts. Lanes of earlier rounds do not count, because they may hang."""
LANE_SECONDS: Final = 10.0
"""How long a lane takes keys. Hosts close a shared program that does not end for minutes."""
WORK_SECONDS: Final = 60.0
"""Maximum duration of a job."""
MOST_ASIDE: Final = 1000
MOST_TOLD: Final = 100
"""Maximum number of damaged names that are reported."""
MOST_SHOWN: Final = 128
"""Maximum characters of a damaged name that are reported."""

Handler = Callable[[Job], Program[None]]
"""Does one job. Raises `Conflict` if another request changed the job's subject."""
Sweeper = Callable[[Context, Mapping[str, int], Instant], Program[bool]]
"""Removes expired entries for a few seconds, because due jobs wait. Returns whether some may be left."""
Beginner = Callable[[Context, Mapping[str, int]], Program[None]]
"""Does the first work of a node that has become the leader. Raises `Conflict` to be called again."""


@define(eq=False)
class Queue:
    """The jobs of one kind for one mount."""

    due_keys: deque[str] = field(factory=deque[str])
    """Keys that a lane may take, oldest first."""
    at_work: set[str] = field(factory=set[str])
    """Keys whose jobs are running."""
    lanes: int = 0
    """Number of running lanes."""


@frozen
class Backlog:
    """The due keys of a queue, at most a few more than its budget, and when its first key is due."""

    name: str
    """The queue's prefix in the store."""
    queue: Queue
    due_keys: tuple[str, ...]
    next_at: Instant

    @property
    def is_behind(self) -> bool:
        """Return whether more is due than one round can do."""
        return len(self.due_keys) > BUDGET

    def lanes_to_start(self, most: int) -> int:
        """Return how many more lanes its queue needs, up to a maximum."""
        wanted = min(LANES_BEHIND if self.is_behind else LANES, most)
        return max(0, min(wanted - self.queue.lanes, len(self.due_keys)))


class Loop:
    """The background work of one node."""

    def __init__(
        self, context: Context, node: str, handlers: Mapping[str, Handler], sweep: Sweeper, begin: Beginner
    ) -> None:
        self._context = context
        self._node = node
        self._handlers = {**handlers, queue.TIDY: self._ask_for_sweep}
        self._sweep = sweep
        self._begin = begin
        self._has_started = False
        self._is_stopped = False
        self._compared_at: Instant = 0.0
        self._swept_at: Instant = 0.0
        self._aside: Bounded[str, Instant] = Bounded(MOST_ASIDE)
        """Due entries that hit a bug, and until when they are set aside."""
        self._queues: dict[str, Queue] = {}
        """Queues with running lanes, by their prefixes in the store."""
        self._lane_number = 0
        self._bugs: list[Exception] = []
        """Bugs in jobs that no round has raised yet."""

    async def run(self) -> Instant:
        """Run one round and return when to run the next. Raise the bugs of jobs at the end of the round."""
        await keep_reserve(self._context)
        now = await Now()
        if self._is_stopped:
            return now + ROUND_INTERVAL
        fence = await hold_leadership(self._context, self._node, now, take_over=not self._has_started)
        if self._is_stopped:  # while it took over
            await release_leadership(self._context, self._node)
            return now + ROUND_INTERVAL
        if fence is None:
            return now + LEADER_CHECK_INTERVAL
        self._has_started = True
        if not 0 <= now - self._compared_at < LENGTH / 2:  # the leadership was renewed, so the store's clock was read
            self._context.node.clock, self._compared_at = await CompareClocks(), now
        if self._context.node.leader != self._node:
            try:
                await self._begin(self._context, fence)
            except Conflict:  # with a request, or with a node that has taken over meanwhile
                return now + RETRY_INTERVAL
            self._context.node.leader = self._node
            await record_if_possible(LeadershipTaken())
        all_backlogs = await self._backlogs(now)
        backlogs = sorted((each for each in all_backlogs if each.due_keys), key=lambda backlog: backlog.next_at)
        if not backlogs and not self._bugs and not self._is_sweep_due(now):
            return self._visit_at(now, now, all_backlogs)
        are_left = await self._work_off(backlogs, fence)
        if self._is_sweep_due(now):
            self._swept_at = self._context.node.swept_at = now
            if await self._sweep(self._context, fence, await Now()):
                self._swept_at = 0.0
        if bugs := self._bugs:
            self._bugs = []
            raise ExceptionGroup("background work failed because of bugs", bugs) if bugs[1:] else bugs[0]
        return await self._next_visit(0.0 if are_left else RETRY_INTERVAL)

    async def leads(self) -> bool:
        """Return whether this node leads, so that no other node has taken over."""
        return not self._is_stopped and await is_leader(self._context, self._node)

    async def stop(self) -> None:
        """Start no further work, and let another node lead immediately."""
        self._is_stopped = True
        await release_leadership(self._context, self._node)

    def _is_sweep_due(self, now: Instant) -> bool:
        return not 0 <= now - self._swept_at < SWEEP_INTERVAL

    async def _ask_for_sweep(self, job: Job) -> None:
        """Run a sweep in this round, because a request asks for one."""
        await job.context.records.commit(Changes(job.fence, deletes=(job.key,)))
        self._swept_at = 0.0

    async def _backlogs(self, now: Instant) -> list[Backlog]:
        """Return all queues that have entries, without reading more of them than can be done.

        If this machine's clock is ahead of the store's, the store's clock decides what is due, so that nothing ends
        early.
        """
        backlogs = []
        after = ""
        ahead = self._context.node.seconds_ahead
        damaged: list[str] = []
        while first := await ListKeys(keys.DUE, after, 1):
            if not queue.is_named(first[0]):
                damaged += takewhile(lambda key: not queue.is_named(key), await ListKeys(keys.DUE, after, MOST_ASIDE))
                after = damaged[-1]
                continue
            at, kind, mount_id, _ = queue.parse(first[0])
            prefix = keys.due_queue(mount_id, kind)
            known = self._queues.get(prefix) or Queue()
            passed_over = len(self._aside) + len(known.at_work)
            listed = first if at + ahead > now else await ListKeys(prefix, "", BUDGET + 1 + passed_over)
            damaged += [key for key in listed if not queue.is_named(key)]
            ready = [key for key in listed if queue.is_named(key) and not now < (self._aside.get(key) or 0.0)]
            ready = [key for key in ready if key not in known.at_work]
            times = [queue.parse(key)[0] + ahead for key in ready]
            due_keys = tuple(key for key, at in zip(ready, times, strict=True) if at <= now)
            backlogs.append(Backlog(prefix, known, due_keys, times[0] if times else inf))
            after = f"{prefix}:"  # sorts after all digits
        await self._set_aside(sorted(set(damaged))[:MOST_TOLD], now)
        return backlogs

    async def _set_aside(self, damaged: Sequence[str], now: Instant) -> None:
        """Set aside names that no version of this service wrote, and report each of them occasionally."""
        self._context.node.note(HealthProblem.DUE_NAME_DAMAGED, [{"key": key[:MOST_SHOWN]} for key in damaged])
        for key in damaged:
            if not now < (self._aside.get(key) or 0.0):
                self._aside.put(key, now + queue.PAUSES.longest)
                damage = Problem.of(EntryDamaged(key, ABSENT))
                await record_if_possible(JobFailed(job="due name", ref=key[:MOST_SHOWN], problem=damage))

    async def _work_off(self, backlogs: Sequence[Backlog], fence: Mapping[str, int]) -> bool:
        """Fill the queues, start missing lanes, and wait briefly for them.

        Return whether the lanes took everything from this round and more is due, so that the next round is due now.
        """
        most = max(1, MOST_LANES // max(1, len(backlogs)))
        started: list[Program[None]] = []
        given: list[Backlog] = []
        for backlog in backlogs:
            lanes = backlog.lanes_to_start(most)
            if len(started) + lanes > MOST_LANES:
                break
            backlog.queue.due_keys = deque(backlog.due_keys[:BUDGET])
            self._queues[backlog.name] = backlog.queue
            started += [self._start_lane(backlog, fence) for _ in range(lanes)]
            given.append(backlog)
        if started:
            with suppress(TimeIsUp):
                await within(ROUND_SECONDS, gather(started))
        self._queues = {name: each for name, each in self._queues.items() if each.lanes}
        return len(given) < len(backlogs) or any(each.is_behind and not each.queue.due_keys for each in given)

    def _start_lane(self, backlog: Backlog, fence: Mapping[str, int]) -> Program[None]:
        """Start a lane that runs to its end even if the round does not wait for it."""
        self._lane_number += 1
        name = f"lane {self._node} {self._lane_number} {backlog.name}"
        return shared(name, self._lane(backlog.queue, fence))

    async def _lane(self, worked_off: Queue, fence: Mapping[str, int]) -> None:
        """Do one job after the other, until none is due, the lane's time is over or the store fails."""
        worked_off.lanes += 1
        try:
            started_at = now = await Now()
            while worked_off.due_keys and now < started_at + LANE_SECONDS and not self._is_stopped:
                key = worked_off.due_keys.popleft()
                worked_off.at_work.add(key)
                try:
                    may_go_on = await self._do(key, now, fence)
                finally:
                    worked_off.at_work.discard(key)
                if not may_go_on:
                    break
                now = await Now()
        finally:
            worked_off.lanes -= 1

    async def _do(self, key: str, now: Instant, fence: Mapping[str, int]) -> bool:
        """Do one job. Return whether its lane can do another."""
        _, kind, mount_id, ref = queue.parse(key)
        job = Job(
            context=self._context,
            key=key,
            mount_id=mount_id,
            ref=ref,
            now=now,
            deadline=Deadline(now + WORK_SECONDS),
            fence=fence,
        )
        try:
            await self._handlers[kind](job)
        except Conflict:
            pass  # another request was faster: what is still due is read again
        except EntryDamaged as damaged:
            self._aside.put(key, now + queue.PAUSES.longest)  # others must not wait for what cannot be read
            await record_if_possible(JobFailed(job=kind, mount_id=mount_id, ref=ref, problem=Problem.of(damaged)))
        except (HostFailure, Refused) as failure:
            await record_if_possible(JobFailed(job=kind, mount_id=mount_id, ref=ref, problem=Problem.of(failure)))
            return False
        except Exception as bug:  # noqa: BLE001  # one broken record must not delay the others
            self._aside.put(key, now + queue.PAUSES.longest)
            self._bugs.append(bug)
            await record_if_possible(JobFailed(job=kind, mount_id=mount_id, ref=ref, problem=Problem.of(bug)))
        return True

    async def _next_visit(self, pause: float) -> Instant:
        now = await Now()
        if self._is_sweep_due(now):
            return now + pause
        return self._visit_at(now, now + pause, await self._backlogs(now))

    def _visit_at(self, now: Instant, earliest: Instant, backlogs: Sequence[Backlog]) -> Instant:
        """Return when the first entry is due.

        Other nodes may write entries that are due sooner, and cannot wake this node. Running lanes may leave work that
        is due again soon.
        """
        first = min((backlog.next_at for backlog in backlogs), default=inf)
        is_awaited = self._context.node.others or self._queues
        latest = now + (CLUSTER_ROUND_INTERVAL if is_awaited else ROUND_INTERVAL)
        return min(latest, max(earliest, first))
