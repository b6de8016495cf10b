"""Servers in processes of their own, and a client that sees every byte."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Final

from tests.servers import warm
from tests.waiting import PATIENCE as PATIENCE
from tests.waiting import wait_until as wait_until

ANEW: Final = "INTERPRETERS_ANEW"
"""Environment variable of the tests: whether each program gets an interpreter of its own, with all its imports."""
SERVERS: Final = ("trio_server", "aiohttp_server")
ROOT: Final = Path(__file__).parent.parent.parent


def are_forked() -> bool:
    """Whether programs do without the time of their imports."""
    return sys.platform == "linux" and ANEW not in os.environ


def start(
    module: str,
    *arguments: str,
    stdout: IO[str],
    stderr: IO[str],
    folder: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    python: Path | None = None,
) -> warm.Forked | subprocess.Popen[str]:
    """`python -m module …`: forked from a process that has made the imports, unless an interpreter is named or told
    how to work, or the long targets run.
    """
    given, is_told = {**os.environ, **(environment or {})}, any(name.startswith("PYTHON") for name in environment or ())
    if python is None and not is_told and are_forked():
        return warm.fork(module, *arguments, folder=folder, environment=given, stdout=stdout, stderr=stderr)
    command = [python or sys.executable, "-m", module, *arguments]
    return subprocess.Popen(command, cwd=folder, env=given, stdout=stdout, stderr=stderr, text=True)


def finished(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command, and what it has shown when it has ended."""
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        code = start(module, *arguments, stdout=stdout, stderr=stderr).wait(PATIENCE)
        shown = [os.pread(file.fileno(), 2**30, 0).decode() for file in (stdout, stderr)]
    return subprocess.CompletedProcess([module, *arguments], code, *shown)


def initialise(name: str, settings: Path) -> str:
    """Prepare a server's store; the root token, which is shown this once."""
    done = finished(f"cloudid_servers.{name}", "init", "--settings", str(settings))
    done.check_returncode()
    return done.stdout.partition(": ")[2].strip()


class Running:
    """A server from its ready line to its end."""

    def __init__(
        self,
        module: str,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        log: Path | None = None,
        python: Path | None = None,
        folder: Path = ROOT,
    ) -> None:
        """`log`: the file that stderr goes to, if somebody needs to find it. `python`: of another installation."""
        # A pipe that is not read would fill up and stop the server.
        self._log = log.open("w+") if log else tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed on exit
        reading, writing = os.pipe()
        self._shown = os.fdopen(reading)
        with os.fdopen(writing, "w") as shown:
            self.process = start(
                module,
                *arguments,
                stdout=shown,
                stderr=self._log,
                folder=folder,
                environment=environment,
                python=python,
            )
        self.introduction: list[str] = []
        for line in self._shown:
            if line.startswith("listening on "):
                self.url = line.removeprefix("listening on ").strip()
                self.port = int(self.url.rpartition(":")[2])
                return
            self.introduction.append(line.strip())
        with self:
            raise AssertionError("the server ended before it was ready: " + self.wait()[1])

    def stop(self) -> tuple[int, str]:
        """Tell it to stop; its exit code and its log."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> tuple[int, str]:
        return self.process.wait(PATIENCE), self.log()

    def log(self) -> str:
        """What it has logged so far."""
        return os.pread(self._log.fileno(), 2**30, 0).decode()

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        self._shown.close()
        self._log.close()


class Client:
    """One connection, from `source` if that is given."""

    def __init__(self, port: int, source: tuple[str, int] | None = None) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE, source)
        self._unread = b""

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self, *, to_head: bool = False) -> bytes:
        """One answer, all its bytes; empty when the server has closed the connection."""
        while b"\r\n\r\n" not in self._unread:
            if not self._more():
                assert not self._unread, "the server closed the connection amid an answer"
                return b""
        head, _, rest = self._unread.partition(b"\r\n\r\n")
        length = 0 if to_head else content_length(head)
        while len(rest) < length:
            assert self._more(), "the server closed the connection amid an answer"
            rest = self._unread.partition(b"\r\n\r\n")[2]
        self._unread = rest[length:]
        return head + b"\r\n\r\n" + rest[:length]

    def ask(self, data: bytes, *, to_head: bool = False) -> bytes:
        self.send(data)
        return self.receive(to_head=to_head)

    def is_closed(self) -> bool:
        """Whether the server has closed the connection, or soon does, without another word."""
        return self.receive() == b""

    def _more(self) -> bool:
        try:
            data = self.socket.recv(65536)
        except ConnectionResetError:
            data = b""
        self._unread += data
        return bool(data)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()


class Gate:
    """A folder that requests to `/waits` and `/holds` of the fake server wait at, until a test opens it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def wait_for(self, count: int) -> None:
        """Until so many requests wait."""
        wait_until(lambda: len(list(self.folder.glob("begun-*"))) >= count)

    def open(self) -> None:
        (self.folder / "open").touch()


def content_length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def body(answer: bytes) -> bytes:
    return answer.partition(b"\r\n\r\n")[2]
