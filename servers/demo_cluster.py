"""The demo of two servers over one PostgreSQL, one of which is killed: `python -m cloudid_servers.demo_cluster`

It starts everything itself, the database too, and ends it: nothing is left behind, however it ends.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx

from .demo import (
    LEASE_SECONDS,
    PATIENCE,
    SERVERS,
    DemoFailed,
    Started,
    Storyteller,
    alive,
    configure_engine,
    log_in,
    log_in_again,
    stopping,
)
from .provider_simulator import Simulator, start
from .stores.postgres.temporary import NoPostgres, temporary_server

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


def share_tokens(one: Storyteller, other: Storyteller) -> str:
    """A token of one node is used and revoked at the other; answers another token."""
    token = log_in(one)
    other.tell(f"The other node, {other.started.url}, knows the token too.")
    other.ask("GET", "auth/token/lookup-self", token=token)
    other.tell("It is revoked there, and counts nowhere any more.")
    other.ask("POST", "auth/token/revoke-self", token=token)
    one.ask("GET", "auth/token/lookup-self", token=token, refused=403)
    one.tell("The machine logs in again.")
    return log_in_again(one)


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


def main() -> int:
    try:
        with (
            tempfile.TemporaryDirectory(prefix="cloudid-demo-") as folder,
            temporary_server() as store,
            start(Simulator()) as cloud,
            httpx.Client(trust_env=False, timeout=PATIENCE) as client,
        ):
            settings = Path(folder) / "cloudid.toml"
            settings.write_text(SETTINGS.format(store=store, folder=folder))
            root_token = prepare(settings)
            first, second = (node(name, settings, cloud.url, root_token) for name in SERVERS)
            with first as (one, started_one), second as (other, started_other):
                processes = dict(zip(SERVERS, (one, other), strict=True))
                stories = {
                    name: Storyteller(client, started)
                    for name, started in zip(SERVERS, (started_one, started_other), strict=True)
                }
                tell_all(stories, processes)
    except (DemoFailed, NoPostgres, httpx.HTTPError) as failure:
        sys.stderr.write(f"error: {failure}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def tell_all(stories: dict[str, Storyteller], processes: dict[str, subprocess.Popen[str]]) -> None:
    one, other = stories.values()
    one.tell(
        f"PostgreSQL runs, and two servers over it: {SERVERS[0]} at {one.started.url}, {SERVERS[1]} at "
        f"{other.started.url}."
    )
    token = share_tokens(one, other)
    configure_engine(one)
    leader = leader_of(stories)
    survivor = next(story for name, story in stories.items() if name != leader)
    survivor.tell(f"{leader} does the background work, so it cleans up after leases. The machine borrows credentials.")
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
