"""Programs without the time that their imports take: each is forked from a process that has made them already.

An interpreter takes 0.7 s of CPU until a server listens; what is forked here takes a fifth of that, or less. It is a
process all the same: with arguments, environment, folder, descriptors, signals, `__main__` and exit code of its own.
The long targets start a new interpreter for each, and so do tests of what happens while one starts.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Final

ROOT: Final = Path(__file__).parent.parent.parent
IMPORTED: Final = (
    "cloudid_servers.aiohttp_server.serve",
    "cloudid_servers.cli.servers",
    "cloudid_servers.cli.simulate",
    "cloudid_servers.command.program",
    "cloudid_servers.provider_simulator.server",
    "cloudid_servers.stores.group_commit",
    "cloudid_servers.stores.sqlite",
    "cloudid_servers.trio_server.serve",
    "tests.servers.handling",
)
NURSERY: Final = "NURSERY"
"""Environment variable of a page's shell: its descriptor that leads to the process that forks."""
ALSO_IMPORTED: Final = "ALSO_IMPORTED"
"""Environment variable with one more module to import, which may change the others."""
MOST: Final = 2**20
"""Bytes of a message: more than arguments and environment have."""
STDIO: Final = 3
"""Descriptors that every process has."""


class Forked:
    """A process that another one than this has forked; what tests use of `subprocess.Popen`."""

    def __init__(self, pid: int, end: socket.socket) -> None:
        self.pid, self._end = pid, end
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._end.settimeout(timeout)
            self.returncode = int(self._end.recv(MOST))
            self._end.close()
        return self.returncode

    def poll(self) -> int | None:
        with suppress(BlockingIOError):
            self.wait(0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def fork(
    module: str, *arguments: str, folder: Path, environment: Mapping[str, str], stdout: IO[str], stderr: IO[str]
) -> Forked:
    """`python -m module …` in a folder, forked from a process that has made the imports."""
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
    with theirs:
        task = json.dumps([module, arguments, str(folder), {**environment}]).encode()
        socket.send_fds(nursery(), [task], [theirs.fileno(), 0, stdout.fileno(), stderr.fileno()])
    return Forked(int(ours.recv(MOST)), ours)


@cache
def nursery() -> socket.socket:
    """The way to the process that forks; it ends when this one does."""
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-m", "tests.servers.warm", str(theirs.fileno())]
        process = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()])

    @atexit.register
    def end() -> None:
        ours.close()
        process.wait()

    return ours


def nurse(asked: socket.socket) -> tuple[str, list[str]] | None:
    """Fork what is asked for until nobody can ask any more. Answers in each of them: its module and arguments."""
    ends: dict[int, socket.socket] = {}

    def tell_ends(*_: object) -> None:
        while ends:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            with ends.pop(pid) as end, suppress(OSError):  # nobody may want to know any more
                end.sendall(str(os.waitstatus_to_exitcode(status)).encode())

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, tell_ends)
    while True:
        told, received, _, _ = socket.recv_fds(asked, MOST, 1 + STDIO)
        if not told:
            return None
        module, arguments, folder, environment = json.loads(told)
        end, *stdio = received
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        pid = os.fork()
        if not pid:
            break
        ends[pid] = socket.socket(fileno=end)
        ends[pid].sendall(str(pid).encode())
        for number in stdio:
            os.close(number)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    for number, given in enumerate(stdio):
        os.dup2(given, number)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(each, mode, 1, closefd=False) for each, mode in enumerate("rww"))
    for inherited in (asked, *ends.values()):
        inherited.close()
    os.closerange(STDIO, os.sysconf("SC_OPEN_MAX"))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0] = folder
    return module, arguments


if __name__ == "__main__":
    for name in (*IMPORTED, *os.environ.get(ALSO_IMPORTED, "").split()):
        importlib.import_module(name)
    gc.freeze()
    if task := nurse(socket.socket(fileno=int(sys.argv[1]))):
        sys.argv[1:] = task[1]
        runpy.run_module(task[0], run_name="__main__", alter_sys=True)
