"""Processes of a benchmark: pinned to CPUs apart from each other where there are enough, and ended with it."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, TypeVar

from attrs import frozen

from .report import available_cpus

T = TypeVar("T")
Cpus = frozenset[int]

FORK: Final = multiprocessing.get_context("fork")
"""What a child works on is there without being sent to it. The parent has no threads."""

STOP_SECONDS: Final = 10.0
LOG_LINES: Final = 10


class ProcessFailed(Exception):
    """A process of the benchmark ended before its time."""


@frozen
class Places:
    """The CPUs of the server under test, of what asks it, and of the simulated cloud."""

    server: Cpus
    load: Cpus
    cloud: Cpus

    @classmethod
    def choose(cls) -> Places:
        """Two CPUs for the server, if there are four: its store waits for the disk in a thread of its own."""
        cpus = available_cpus()
        if len(cpus) >= 4:
            return cls(frozenset(cpus[:2]), frozenset({cpus[2]}), frozenset({cpus[3]}))
        return cls(frozenset({cpus[0]}), frozenset({cpus[1 % len(cpus)]}), frozenset({cpus[-1]}))


def pin(cpus: Cpus, process: int = 0) -> None:
    """Bind a process (0: this one) to CPUs, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(process, cpus)


def in_process(cpus: Cpus, work: Callable[[], T]) -> T:
    """The result of `work`, done in a process of its own on these CPUs. Raises `ProcessFailed`."""
    receiver, sender = FORK.Pipe(duplex=False)
    process = FORK.Process(target=_work, args=(cpus, work, sender), daemon=True)
    process.start()
    sender.close()
    try:
        result: T = receiver.recv()
    except EOFError:
        raise ProcessFailed("a process of the benchmark failed; its traceback is above") from None
    finally:
        process.join()
        receiver.close()
    return result


def _work(cpus: Cpus, work: Callable[[], Any], sender: Connection) -> None:
    pin(cpus)
    gc.disable()  # its pauses would count as the server's
    sender.send(work())


@contextmanager
def background(cpus: Cpus, work: Callable[[Callable[[str], None]], None]) -> Iterator[str]:
    """Run `work` in a process of its own for as long as the block lasts; yields the text that it reports once ready."""
    receiver, sender = FORK.Pipe(duplex=False)

    def start(report: Connection) -> None:
        pin(cpus)
        work(report.send)

    process = FORK.Process(target=start, args=(sender,), daemon=True)
    process.start()
    sender.close()
    try:
        yield receiver.recv()
    finally:
        process.terminate()
        process.join()
        receiver.close()


@frozen
class Running:
    """A server that listens."""

    url: str
    pid: int


def cpu_seconds(pid: int) -> float:
    """The CPU that a process has used so far, with all its threads; 0 where the system does not tell."""
    try:
        return time.clock_gettime(~pid << 3 | 2)  # the clock of another process, as `clock_getcpuclockid` makes it
    except OSError:
        return 0.0


@contextmanager
def server(cpus: Cpus, log: Path, module: str, *arguments: str) -> Iterator[Running]:
    """Run a server for as long as the block lasts, once it prints its `listening on` line. Its log goes to a file.

    Raises `ProcessFailed` with the end of the log when the server ends before it is ready.
    """
    with log.open("wb") as stderr:
        command = [sys.executable, "-m", module, *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)
    pin(cpus, process.pid)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line.startswith("listening on "):
                yield Running(line.removeprefix("listening on ").strip(), process.pid)
                return
        lines = log.read_text("utf-8", "replace").splitlines()
        raise ProcessFailed("\n".join([f"{module} did not start:", *lines[-LOG_LINES:]]))
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
