"""`kill -9` of the servers amid every request and every fault of the cloud.

    python -m tests.endurance.kills [--server NAME] [--cycles N] [--seed N] [--seconds N]

Again and again a server is killed with `kill -9` amid logins, credentials, renewals, revocations, changes of roles,
policies and mounts, and rotations of the root secret, while the simulated cloud has every fault at once. After each
restart, what was acknowledged is compared with what is there. In the end the faults stop, the background work comes to
its end, and what lives at the provider is compared with the leases. It ends with 1 at the first difference.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import httpx
from attrs import define, field

from benchmarks.report import tell
from cloudid_servers.provider_simulator import Simulator, start
from cloudid_servers.provider_simulator.server import Running as Cloud
from tests.servers.credentials import ROLES, alive, leases
from tests.servers.deployment import Deployment
from tests.servers.running import SERVERS, Running
from tests.servers.threads import Threads
from tests.waiting import PATIENT

from .clients import ServiceClient
from .expectations import GONE
from .trouble import PROVIDER_TIMEOUT, SETTLED, Trouble

CLIENTS: Final = 8
CYCLES: Final = 60
SECONDS: Final = 6.0
PATIENCE: Final = 600.0
"""Seconds in which the background work comes to its end: it retries what has failed often after minutes."""
SERVICE: Final = {
    "request_deadline": "5s",
    "request_grace": "1s",
    "provider_timeout": f"{PROVIDER_TIMEOUT:g}s",
    "settle_time": int(SETTLED + 2 * PROVIDER_TIMEOUT),
}
ROOT_KEYS: Final = 2
"""Secrets of the mount's app registration that the service may keep: the one in use, and the one it has replaced."""


@define
class Report:
    """What one server went through."""

    kills: int = 0
    acknowledged: int = 0
    statuses: Counter[str] = field(factory=Counter)
    faults: Counter[str] = field(factory=Counter)
    differences: list[str] = field(factory=list)
    leases: int = 0
    """How many were alive in the end."""

    def lines(self) -> list[str]:
        answers = ", ".join(f"{name} × {count}" for name, count in sorted(self.statuses.items()))
        faults = ", ".join(f"{name} × {count}" for name, count in sorted(self.faults.items()))
        return [
            f"{self.kills} kills, {self.acknowledged} acknowledged changes, {self.leases} leases in the end",
            f"answers: {answers}",
            f"faults: {faults}",
            *(f"DIFFERENT: {difference}" for difference in self.differences),
        ]


def prove(name: str, folder: Path, cycles: int, seed: int, seconds: float) -> Report:
    """All cycles on one server; it stops at the first difference."""
    report = Report()
    dice = Random(seed)
    with start(Simulator(seed)) as cloud:
        deployment = Deployment.prepare(name, folder, cloud.url, SERVICE)
        clients = [ServiceClient(deployment, number, seed) for number in range(CLIENTS)]
        with deployment.serving() as server:
            deployment.configure(server)
        for cycle in range(cycles):
            tell(f"{name}: cycle {cycle + 1} of {cycles}")
            with Trouble(cloud.url, seed + cycle) as trouble:
                with deployment.serving() as server:
                    report.differences += _differences(deployment, server, clients, settled=False)
                    with Threads(*(partial(client.run, server) for client in clients)):
                        time.sleep(dice.uniform(0.25, 1) * seconds)
                        server.process.kill()
                report.kills += 1
            report.faults += trouble.met
            if report.differences:
                break
        report.acknowledged = sum(client.expectations.acknowledged for client in clients)
        report.statuses = sum((client.statuses for client in clients), Counter())
        tell(f"{name}: waiting for the end of the background work")
        if not report.differences:
            with deployment.serving() as server:
                report.differences += _in_the_end(deployment, server, clients, cloud, report)
        tell("")
    return report


def _differences(
    deployment: Deployment, server: Running, clients: Sequence[ServiceClient], *, settled: bool
) -> list[str]:
    with deployment.client(server) as service:
        return [found for client in clients for found in client.differences(service, settled=settled)]


def _in_the_end(
    deployment: Deployment, server: Running, clients: Sequence[ServiceClient], cloud: Cloud, report: Report
) -> list[str]:
    """What is wrong once nothing goes wrong any more."""
    with deployment.client(server) as service:
        differences = _until_there_are_none(lambda: _leaks(service, cloud))
        differences += _differences(deployment, server, clients, settled=True)
        differences += [found for client in clients for found in _dead_or_alive(client, cloud)]
        borrowed = service.get("cloud/creds/fresh")
        if not borrowed.is_success:
            differences.append(f"the root secret does not work: {borrowed.status_code} {borrowed.text}")
        report.leases = len(leases(service))
        service.put("sys/leases/revoke-prefix/cloud/creds").raise_for_status()
        differences += _until_there_are_none(lambda: _leaks(service, cloud))
    return differences


def _leaks(service: httpx.Client, cloud: Cloud) -> list[str]:
    """Where the objects at the provider, by its own ledger, are not those of the leases."""
    root = httpx.get(f"{cloud.url}/simulator/world", **PATIENT).json()["applications"][0]["object_id"]
    made = alive(cloud.url)
    found = Counter(one["kind"] for one in made if root not in one["of"])
    fresh, existing = (len(leases(service, role)) for role in ROLES)
    wanted = {"application": fresh, "principal": fresh, "assignment": fresh, "password": fresh + existing}
    differences = [
        f"{found[kind]} of kind {kind} at the provider, {count} of the leases"
        for kind, count in wanted.items()
        if found[kind] != count
    ]
    keys = sum(root in one["of"] for one in made)
    if keys > ROOT_KEYS:
        differences.append(f"{keys} secrets of the mount's app registration that were made by rotations")
    return differences


def _dead_or_alive(client: ServiceClient, cloud: Cloud) -> list[str]:
    """Credentials that work although their lease has ended, or do not although it lives, by the truth of the cloud."""
    differences = []
    for lease_id, credentials in client.credentials.items():
        application = cloud.simulator.world.directory.application_of(credentials["client_id"])
        secrets = [one.secret for one in application.passwords] if application else []
        works, states = credentials["client_secret"] in secrets, client.expectations.states(("lease", lease_id))
        if works and states == {GONE}:
            differences.append(f"the credentials of {lease_id} work although it has ended")
        if not works and GONE not in states:
            differences.append(f"the credentials of {lease_id} do not work although it lives")
    return differences


def _until_there_are_none(differences: Callable[[], list[str]]) -> list[str]:
    """The differences that are left when there was time enough for them to go."""
    until = time.monotonic() + PATIENCE
    while (found := differences()) and time.monotonic() < until:
        time.sleep(1.0)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.endurance.kills", description=__doc__.split("\n")[0])
    parser.add_argument("--server", choices=SERVERS, action="append", help="default: both")
    parser.add_argument("--cycles", type=int, default=CYCLES, help=f"kills of each server (default: {CYCLES})")
    parser.add_argument("--seed", type=int, default=0, help="of requests, faults and the moments of kills")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"of load before each kill, at most ({SECONDS})")
    options = parser.parse_args()
    is_broken = False
    with suppress(KeyboardInterrupt):
        for name in options.server or SERVERS:
            with tempfile.TemporaryDirectory() as folder:
                report = prove(name, Path(folder), options.cycles, options.seed, options.seconds)
            is_broken = is_broken or bool(report.differences)
            sys.stdout.write("\n".join([f"{name}: {report.lines()[0]}", *report.lines()[1:], ""]))
        return 1 if is_broken else 0
    return 130


if __name__ == "__main__":
    sys.exit(main())
