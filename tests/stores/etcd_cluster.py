"""A real etcd cluster that tests start themselves, on loopback."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import httpx
import pytest

from cloudid_servers.stores.etcd import Address, EtcdStore
from tests.waiting import PATIENT, wait_until

_NUMBERS = count(1)


class Member:
    """One member. It can be killed, stopped for a while, and started again with what it has on its disk."""

    def __init__(self, number: int, folder: Path, *options: str) -> None:
        self.name = f"m{number}"
        self.folder = folder / self.name
        self.log = folder / f"{self.name}.log"
        self.port, self.peer_port = _free_ports()
        self.options = options
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def peer(self) -> str:
        return f"{self.name}=http://127.0.0.1:{self.peer_port}"

    def start(self, cluster: str) -> None:
        client, peer = self.url, f"http://127.0.0.1:{self.peer_port}"
        command = ["etcd", "--name", self.name, "--data-dir", str(self.folder), "--log-level", "error"]
        command += ["--listen-client-urls", client, "--advertise-client-urls", client]
        command += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        command += ["--initial-cluster", cluster, "--initial-cluster-token", str(self.folder.parent), *self.options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def is_healthy(self) -> bool:
        try:
            return "true" in httpx.get(f"{self.url}/health", **PATIENT).text
        except httpx.HTTPError:
            return False


class EtcdCluster:
    def __init__(self, members: list[Member]) -> None:
        self.members = members

    @property
    def places(self) -> str:
        return ",".join(f"127.0.0.1:{member.port}" for member in self.members)

    @property
    def peers(self) -> str:
        return ",".join(member.peer for member in self.members)

    def start(self, member: Member) -> None:
        member.start(self.peers)
        wait_until(member.is_healthy)

    def new_prefix(self) -> str:
        """The address of a place where nothing is yet."""
        return f"etcd://{self.places}/tests/{next(_NUMBERS)}"


def etcd_at(address: str, *, is_new: bool = True) -> EtcdStore:
    return EtcdStore(Address.parse(address), is_new=is_new)


@contextmanager
def running_etcd(size: int, *options: str) -> Iterator[EtcdCluster]:
    """A cluster for as long as the block lasts; skips the test where none can be had."""
    if shutil.which("etcd") is None:
        pytest.skip("etcd is not installed: apt-get install etcd-server")
    with tempfile.TemporaryDirectory(prefix="cloudid-etcd-") as folder, ExitStack() as stack:
        cluster = EtcdCluster([Member(number, Path(folder), *options) for number in range(size)])
        for member in cluster.members:
            member.start(cluster.peers)
            stack.callback(member.kill)
        wait_until(lambda: all(member.is_healthy() for member in cluster.members))
        yield cluster


def _free_ports() -> tuple[int, int]:
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        return int(first.getsockname()[1]), int(second.getsockname()[1])
