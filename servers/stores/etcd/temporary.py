"""A cluster of etcd of one's own, for a demo, a benchmark or tests."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import httpcore
from attrs import define, field

from ..postgres.temporary import free_port

START_SECONDS: Final = 60.0
HOW: Final = "etcd is not installed: apt-get install etcd-server"


class NoEtcd(Exception):
    """etcd is not installed, or did not start; the text says what to do."""


@define(kw_only=True)
class Member:
    """One member. It can be killed, and started again with what it has on its disk."""

    name: str
    folder: Path
    host: str = "127.0.0.1"
    port: int
    peer_port: int
    prefix: Sequence[str] = ()
    """Words before the command that starts it."""
    options: Sequence[str] = ()
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def place(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.place}"

    @property
    def peer(self) -> str:
        return f"http://{self.host}:{self.peer_port}"

    def start(self, members: Sequence[Member]) -> None:
        together = ",".join(f"{member.name}={member.peer}" for member in members)
        command = [*self.prefix, "etcd", "--name", self.name]
        command += ["--data-dir", str(self.folder / self.name), "--log-level", "error", "--initial-cluster", together]
        for option, url in (("client", self.url), ("peer", self.peer)):
            command += [f"--listen-{option}-urls", url]
        command += ["--advertise-client-urls", self.url, "--initial-advertise-peer-urls", self.peer]
        command += ["--initial-cluster-token", str(self.folder), *self.options]
        with (self.folder / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def is_healthy(self) -> bool:
        """Whether it serves, which needs a leader."""
        try:
            return httpcore.request("GET", f"{self.url}/health", extensions={"timeout": {"read": 5.0}}).status == 200
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError):
            return False


@contextmanager
def temporary_cluster(size: int = 3, *options: str) -> Iterator[list[Member]]:
    """Members on loopback, for as long as the block lasts. Raises `NoEtcd`."""
    with tempfile.TemporaryDirectory(prefix="cloudid-etcd-") as folder:
        members = []
        for number in range(size):
            name, port, peer_port = f"m{number}", free_port(), free_port()
            members.append(Member(name=name, folder=Path(folder), port=port, peer_port=peer_port, options=options))
        with running(members):
            yield members


@contextmanager
def running(members: Sequence[Member]) -> Iterator[None]:
    """Start members and wait for them; kill them in the end."""
    if shutil.which("etcd") is None:
        raise NoEtcd(HOW)
    with ExitStack() as stack:
        for member in members:
            member.start(members)
            stack.callback(member.kill)
        until = time.monotonic() + START_SECONDS
        while not all(member.is_healthy() for member in members):
            if time.monotonic() > until:
                logs = [(member.folder / f"{member.name}.log").read_text("utf-8", "replace") for member in members]
                raise NoEtcd(f"etcd did not start: {logs[0][-2000:]}")
            time.sleep(0.1)
        yield


def address_of(members: Sequence[Member], prefix: str) -> str:
    """The address of a store below a prefix."""
    return f"etcd://{','.join(member.place for member in members)}/{prefix}"
