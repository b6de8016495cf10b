"""Workers: several processes that serve one port, over a store that they share.

The parent binds the port and forks the workers, which all accept from its socket: one that dies takes no connection
with it that it has not accepted. The parent starts another in its place, after a pause when that keeps happening, and
passes signals on. A worker ends when its parent is gone.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from types import FrameType
from typing import Final

from attrs import define, frozen
from structlog.typing import FilteringBoundLogger

from cloudid_core.backoff import Backoff

from ..logs import describe_error
from ..machine import Overseer, ServiceManager

STEADY_SECONDS: Final = 10.0
"""A worker that dies sooner is replaced after a pause."""

PAUSES: Final = Backoff(first=0.25, longest=30.0, spread=(1.0, 1.0))
FORWARDED: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@frozen(eq=False)
class Worker(Overseer):
    """What one of the processes knows of itself. Its parent notifies the service manager."""

    number: int
    """From 1 on. A replacement has the number of the worker that died."""

    sockets: Sequence[socket.socket]
    """They are bound, and shared with the other workers."""

    _ready: int

    def ready(self) -> None:
        with suppress(OSError):  # the parent is gone, and this worker ends soon
            os.write(self._ready, bytes([self.number]))


@define(eq=False)
class _Place:
    """One of the workers, and those that replace it."""

    number: int
    pid: int = 0
    started_at: float = 0.0
    start_at: float = inf
    """When the next process is started in this place; `inf`: not before something happens."""

    short_lives: int = 0
    """How many of its processes have died, one after the other, before they were steady."""

    is_ready: bool = False

    def plan_replacement(self, now: float) -> float:
        """Note that the process has died; seconds until the next one is started."""
        self.short_lives = self.short_lives + 1 if now - self.started_at < STEADY_SECONDS else 0
        pause = PAUSES.pause(self.short_lives - 1, 0.0) if self.short_lives > 1 else 0.0
        self.pid, self.is_ready, self.start_at = 0, False, now + pause
        return pause


class Supervisor:
    """The parent. `work` is what a worker does; it answers the exit code, in a process of its own.

    The parent must have no thread when it runs. `on_ready` is called once, when all workers are ready;
    `on_reload` before they reload.
    """

    def __init__(
        self,
        count: int,
        sockets: Sequence[socket.socket],
        work: Callable[[Worker], int],
        on_ready: Callable[[], None],
        on_reload: Callable[[], None],
        log: FilteringBoundLogger,
        manager: ServiceManager,
    ) -> None:
        self._places = [_Place(number) for number in range(1, count + 1)]
        self._sockets = sockets
        self._work = work
        self._on_ready = on_ready
        self._on_reload = on_reload
        self._log = log
        self._manager = manager
        self._is_serving = False
        self._is_announced = False
        self._is_stopping = False
        self._code = 0

    def run(self) -> int:
        """Until a signal ends it; the exit code. It is that of the first worker where it ends before it is ready."""
        self._signals, wake = _unblocking_pipe()
        self._ready, self._report = _unblocking_pipe()
        self._lifeline, self._alive = os.pipe()
        before = {number: signal.signal(number, _ignore) for number in (*FORWARDED, signal.SIGCHLD)}
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        try:
            self._places[0].start_at = 0.0  # alone, so that what is wrong is reported once
            while not self._is_stopping or any(place.pid for place in self._places):
                self._turn()
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)
            for descriptor in (self._signals, wake, self._ready, self._report, self._lifeline, self._alive):
                os.close(descriptor)
        return self._code

    def _turn(self) -> None:
        """Start due workers, and wait for an event."""
        now = time.monotonic()
        for place in self._places:
            if place.start_at <= now:
                self._start(place)
        self._manager.give_sign_of_life()
        next_start = min(place.start_at for place in self._places)
        pause = min(next_start - now, self._manager.watchdog_pause or inf)
        select.select([self._signals, self._ready], [], [], None if pause == inf else max(0.0, pause))
        self._note_ready()
        numbers = _read(self._signals)
        if signal.SIGCHLD in numbers:
            self._reap()
        for number in numbers:
            if number in FORWARDED:
                self._forward(number)

    def _start(self, place: _Place) -> None:
        place.start_at, place.started_at = inf, time.monotonic()
        signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)  # the child must not handle them like its parent
        place.pid = os.fork()
        if place.pid == 0:
            os._exit(self._be(Worker(place.number, self._sockets, self._report)))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)

    def _be(self, worker: Worker) -> int:
        """In the worker's process: its exit code."""
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            os.setpgid(0, 0)  # a terminal's interrupt reaches the parent only, which passes it on once
            os.close(self._alive)
            threading.Thread(target=_end_with_parent, args=(self._lifeline,), daemon=True).start()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
            return self._work(worker)
        except BaseException as bug:  # noqa: BLE001  # nothing of the parent's may run in this process
            self._log.error("worker failed", worker=worker.number, **describe_error(bug))
            return 1

    def _note_ready(self) -> None:
        told = _read(self._ready)
        for number in told:
            self._places[number - 1].is_ready = True
        if not told or self._is_stopping:
            return
        if not self._is_serving and self._places[0].is_ready:
            self._is_serving = True
            for place in self._places[1:]:
                place.start_at = 0.0
        if all(place.is_ready for place in self._places):
            if not self._is_announced:
                self._is_announced = True
                self._on_ready()
            self._manager.ready()

    def _reap(self) -> None:
        """Note which workers have ended, and plan their replacement."""
        for place in self._places:
            if not place.pid:
                continue
            pid, status = os.waitpid(place.pid, os.WNOHANG)
            if not pid:
                continue
            code = os.waitstatus_to_exitcode(status)
            if not self._is_stopping and self._is_serving:
                pause = place.plan_replacement(time.monotonic())
                self._log.error("worker died", worker=place.number, pid=pid, code=code, pause=round(pause, 2))
                continue
            place.pid = 0
            if not self._is_stopping:
                self._forward(signal.SIGTERM)
            is_as_asked = code == 0 or (self._is_stopping and -code in FORWARDED)  # it was not ready for signals yet
            self._code = self._code or (0 if is_as_asked else 1)

    def _forward(self, number: int) -> None:
        if number == signal.SIGHUP:
            self._manager.reloading()
            self._on_reload()
            for place in self._places:
                place.is_ready = False  # until it has reloaded
        else:
            self._is_stopping = True
            self._manager.stopping()
            for place in self._places:
                place.start_at = inf
            for listener in self._sockets:
                listener.close()
        for place in self._places:
            if place.pid:
                with suppress(ProcessLookupError):
                    os.kill(place.pid, number)


def _ignore(number: int, frame: FrameType | None) -> None:
    """The wake-up descriptor reports the signal."""


def _unblocking_pipe() -> tuple[int, int]:
    """Return both ends of a pipe that never blocks. `os.pipe2` is missing on some platforms."""
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    return ends


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except BlockingIOError:
        return b""


def _end_with_parent(lifeline: int) -> None:
    """The parent holds the other end of this pipe, and writes nothing."""
    os.read(lifeline, 1)
    os.kill(os.getpid(), signal.SIGTERM)
