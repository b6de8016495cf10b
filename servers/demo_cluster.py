"""The demo of two servers over one store, one of which is killed: `python -m cloudid_servers.demo_cluster [etcd]`

The store is PostgreSQL, or three members of etcd, one of which is killed too. It starts everything itself, the store
too, and ends it.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import httpx
from attrs import frozen

from .client import RESOURCE
from .command import MACHINE, first_writes, machine_of
from .demo import LEASE_SECONDS, PATIENCE, DemoFailed, Started, Storyteller, alive, stopping
from .provider_simulator import Simulator, start
from .stores.etcd.temporary import NoEtcd, address_of, temporary_cluster
from .stores.postgres.temporary import NoPostgres, temporary_server

SERVERS: Final = ("trio_server", "aiohttp_server")
TAKE_OVER_SECONDS: Final = 90.0
"""Longer than a node leads without renewing it, and what is left to do after that."""

SETTINGS: Final = """
[server]
listen = "127.0.0.1:0"
store = "{store}"
key_file = "{folder}/key"

[service]
request_deadline = "10s"
request_grace = "1s"
settle_time = 5
"""


@contextmanager
def node(name: str, settings: Path, simulator: str, root_token: str) -> Iterator[tuple[subprocess.Popen[str], Started]]:
    """A server over the shared store, for as long as the block lasts."""
    command = [sys.executable, "-m", f"cloudid_servers.{name}", "--settings", str(settings), "--provider", simulator]
    with (settings.parent / f"{name}.log").open("w") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    with stopping(process):
        assert process.stdout is not None  # it was asked for
        line = process.stdout.readline()
        if not line.startswith("listening on "):
            raise DemoFailed(f"{name} did not start: {(settings.parent / f'{name}.log').read_text()}")
        yield process, Started(line.removeprefix("listening on ").strip(), root_token, simulator)


def prepare(settings: Path) -> str:
    """Make the store; the root token."""
    done = subprocess.run(
        [sys.executable, "-m", f"cloudid_servers.{SERVERS[0]}", "init", "--settings", str(settings)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise DemoFailed(done.stderr)
    return done.stdout.partition("root token: ")[2].strip()


def prepare_roles(story: Storyteller) -> None:
    """Connect the service with the cloud, as `cloudid dev` does."""
    story.tell(
        "The operator connects the service with the cloud: a role for machines, and a role that issues credentials."
    )
    root = story.started.root_token
    for path, body in first_writes(story.cloud("GET", "/simulator/world")):
        story.ask("POST", path, token=root, body=body)
    story.ask("POST", "cloud/roles/reader", token=root, body={"ttl": LEASE_SECONDS, "max_ttl": "1h"})


def share_tokens(one: Storyteller, other: Storyteller) -> str:
    """A token of one node is used and revoked at the other; answers another token."""
    token = log_in(one)
    other.tell(f"The other node, {other.started.url}, knows the token too.")
    found = other.ask("GET", "auth/token/lookup-self", token=token)["data"]
    other.show(display_name=found["display_name"], verified_facts=found["meta"])
    other.tell("It is revoked there, and counts nowhere any more.")
    other.ask("POST", "auth/token/revoke-self", token=token)
    one.ask("GET", "auth/token/lookup-self", token=token, refused=403)
    return log_in(one)


def log_in(story: Storyteller) -> str:
    """From a machine's metadata service to a service token; answers the token."""
    story.tell(f"The machine {MACHINE} gets a token from its metadata service and logs in with it.")
    machine = machine_of(story.cloud("GET", "/simulator/world"))
    query = {"api-version": "2018-02-01", "resource": RESOURCE}
    path = f"/machines/{MACHINE}/metadata/identity/oauth2/token"
    jwt = story.cloud("GET", path, params=query, headers={"Metadata": "true"})["access_token"]
    story.show(jwt=f"{jwt[:24]}… ({len(jwt)} characters)")
    place = {"subscription_id": machine["subscription"], "resource_group_name": machine["resource_group"]}
    form = {"role": MACHINE, "jwt": jwt, **place, "vm_name": MACHINE}
    auth = story.ask("POST", "auth/cloud/login", body=form)["auth"]
    story.show(policies=", ".join(auth["policies"]), lease_duration=auth["lease_duration"])
    return str(auth["client_token"])


def leader_of(stories: dict[str, Storyteller]) -> str:
    """The name of the node that does the background work, once all nodes agree on it."""
    until = time.monotonic() + PATIENCE
    while True:
        shown = {name: story.client.get(f"{story.started.url}/v1/sys/leader").json() for name, story in stories.items()}
        names = {each["node_id"]: name for name, each in shown.items()}
        leaders = {each["background_node_id"] for each in shown.values()}
        if len(leaders) == 1 and leaders <= names.keys():
            return names[leaders.pop()]
        if time.monotonic() > until:
            raise DemoFailed("no node does the background work")
        time.sleep(0.5)


@frozen
class SharedStore:
    """What both servers use. `lose_member` kills what the store can lose, if it can lose anything."""

    address: str
    name: str
    lose_member: Callable[[], None] | None = None


@contextmanager
def postgres() -> Iterator[SharedStore]:
    with temporary_server() as address:
        yield SharedStore(address, "PostgreSQL runs")


@contextmanager
def etcd() -> Iterator[SharedStore]:
    with temporary_cluster() as members:
        yield SharedStore(address_of(members, "demo"), "Three members of etcd run", members[0].kill)


def main() -> int:
    try:
        with (
            tempfile.TemporaryDirectory(prefix="cloudid-demo-") as folder,
            (etcd if "etcd" in sys.argv[1:] else postgres)() as store,
            start(Simulator()) as cloud,
            httpx.Client(trust_env=False, timeout=PATIENCE) as client,
        ):
            settings = Path(folder) / "cloudid.toml"
            settings.write_text(SETTINGS.format(store=store.address, folder=folder))
            root_token = prepare(settings)
            with ExitStack() as stack:
                nodes = {name: stack.enter_context(node(name, settings, cloud.url, root_token)) for name in SERVERS}
                stories = {name: Storyteller(client, started) for name, (_, started) in nodes.items()}
                tell_all(stories, {name: process for name, (process, _) in nodes.items()}, store)
    except (DemoFailed, NoPostgres, NoEtcd, httpx.HTTPError) as failure:
        sys.stderr.write(f"error: {failure}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def tell_all(stories: dict[str, Storyteller], processes: dict[str, subprocess.Popen[str]], store: SharedStore) -> None:
    one, other = stories.values()
    one.tell(
        f"{store.name}, and two servers over that: {SERVERS[0]} at {one.started.url}, {SERVERS[1]} at "
        f"{other.started.url}."
    )
    if store.lose_member is not None:
        one.tell("One member of the store is lost (kill -9). No client notices.")
        store.lose_member()
    prepare_roles(one)
    token = share_tokens(one, other)
    leader = leader_of(stories)
    survivor = next(story for name, story in stories.items() if name != leader)
    survivor.tell(f"{leader} does the background work, so it cleans up after leases. The machine requests credentials.")
    lease = survivor.ask("GET", "cloud/creds/reader", token=token)
    survivor.show(lease=lease["lease_id"], seconds=LEASE_SECONDS, objects_at_the_provider=len(alive(survivor)))
    survivor.tell(f"{leader} is killed (kill -9). The other node notices within a minute, and does its work.")
    processes[leader].send_signal(signal.SIGKILL)
    began = time.monotonic()
    survivor.wait_until("objects at the provider", lambda: len(alive(survivor)), 0, TAKE_OVER_SECONDS)
    survivor.show(seconds_since_the_kill=round(time.monotonic() - began))
    survivor.tell("The ledger of the provider is empty; everything ends now, and nothing is left of it.")


if __name__ == "__main__":
    sys.exit(main())
