"""Real etcd clusters that tests start themselves: on loopback, or each member in a network of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Final

import httpx
import pytest

from cloudid_servers.stores.etcd import Address, EtcdStore
from cloudid_servers.stores.etcd.temporary import HOW, Member, address_of, running, temporary_cluster
from tests.waiting import PATIENT, wait_until

_NUMBERS = count(1)
PORTS: Final = (2379, 2380)
"""Of members that have a network of their own."""


class EtcdCluster:
    def __init__(self, members: Sequence[Member]) -> None:
        self.members = members

    @property
    def places(self) -> str:
        return ",".join(member.place for member in self.members)

    def start(self, member: Member) -> None:
        member.start(self.members)
        wait_until(member.is_healthy)

    def new_prefix(self) -> str:
        """The address of a place where nothing is yet."""
        return address_of(self.members, f"tests/{next(_NUMBERS)}")

    def leader(self) -> Member | None:
        for member in self.members:
            try:
                told = httpx.post(f"{member.url}/v3/maintenance/status", json={}, **PATIENT).json()
            except httpx.HTTPError:
                continue
            if told.get("leader") == told["header"]["member_id"]:
                return member
        return None


def freeze(member: Member) -> None:
    assert member.process is not None
    member.process.send_signal(signal.SIGSTOP)


def thaw(member: Member) -> None:
    assert member.process is not None
    member.process.send_signal(signal.SIGCONT)


def etcd_at(address: str, *, is_new: bool = True) -> EtcdStore:
    return EtcdStore(Address.parse(address), is_new=is_new)


@contextmanager
def running_etcd(size: int, *options: str) -> Iterator[EtcdCluster]:
    """A cluster for as long as the block lasts; skips the test where none can be had."""
    if shutil.which("etcd") is None:
        pytest.skip(HOW)
    with temporary_cluster(size, *options) as members:
        yield EtcdCluster(members)


class Network:
    """Networks of their own for members, joined by a bridge; a member can be cut off from it. Linux, as root."""

    def __init__(self, size: int) -> None:
        self.bridge = f"cid{os.getpid() % 100_000}"
        self.names = [f"{self.bridge}-{number}" for number in range(size)]
        self.net = f"198.18.{os.getpid() % 250}"  # kept for benchmarks of networks: nobody has such addresses

    def host(self, number: int) -> str:
        return f"{self.net}.{number + 1}"

    def __enter__(self) -> Network:
        _ip(f"link add {self.bridge} type bridge")
        _ip(f"addr add {self.net}.254/24 dev {self.bridge}")
        _ip(f"link set {self.bridge} up")
        for number, name in enumerate(self.names):
            _ip(f"netns add {name}")
            _ip(f"link add {name} type veth peer name eth0 netns {name}")
            _ip(f"link set {name} master {self.bridge} up")
            _ip(f"-n {name} addr add {self.host(number)}/24 dev eth0")
            _ip(f"-n {name} link set eth0 up")
            _ip(f"-n {name} link set lo up")
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.names:
            _ip(f"link delete {name}")
            _ip(f"netns delete {name}")
        _ip(f"link delete {self.bridge}")

    def cut(self, number: int) -> None:
        _ip(f"link set {self.names[number]} down")

    def join(self, number: int) -> None:
        _ip(f"link set {self.names[number]} up")


def _ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True, capture_output=True)


@contextmanager
def running_apart(size: int) -> Iterator[tuple[EtcdCluster, Network]]:
    """A cluster whose members can be cut off one by one; skips the test where none can be had."""
    if shutil.which("etcd") is None:
        pytest.skip(HOW)
    if os.getuid() != 0 or shutil.which("ip") is None:
        pytest.skip("networks of their own need root and iproute2: apt-get install iproute2")
    with tempfile.TemporaryDirectory(prefix="cloudid-etcd-") as folder, ExitStack() as stack:
        network = stack.enter_context(Network(size))
        members = [
            Member(
                name=f"m{number}",
                folder=Path(folder),
                host=network.host(number),
                port=PORTS[0],
                peer_port=PORTS[1],
                prefix=("ip", "netns", "exec", name),
            )
            for number, name in enumerate(network.names)
        ]
        stack.enter_context(running(members))
        yield EtcdCluster(members), network
