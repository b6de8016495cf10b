"""Show a VM of a simulated Azure that logs in and requests credentials.

Usage: `python -m cloudid_servers.demo [--server NAME]`

It starts `cloudid dev`, runs the commands that a person would type, and stops it. Nothing is left behind.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import click
import httpx
from attrs import field, frozen

from .client import RESOURCE
from .command import MACHINE, METADATA, STRANGER, machine_of
from .terminal import COLUMNS_BEHIND, Failed, run

AUDIENCE: Final = "api://AzureADTokenExchange"
PERIOD_SECONDS: Final = 5
SERVERS: Final = ("trio", "aiohttp")
PATIENCE: Final = 30.0
LEASE_SECONDS: Final = 8
WIDTH: Final = 140
INDENT: Final = "    "
NEXT: Final = """
Next steps:

  make dev                                # start the same server and leave it running
  .venv/bin/cloudid --help                # list all commands
  docs/README.md                          # documentation by task
"""


class DemoFailed(Failed):
    """A step did not do what it shows."""


@frozen
class Started:
    """A server that runs, and the simulated cloud beside it."""

    url: str
    root_token: str = field(repr=False)
    simulator: str


@contextmanager
def server(name: str) -> Iterator[Started]:
    """A server with everything in memory and a simulated cloud, for as long as the block lasts."""
    command = [sys.executable, "-m", "cloudid_servers.cli", "dev", "--server", name, "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with stopping(process):
        assert process.stdout is not None  # it was asked for
        said: dict[str, str] = {}
        for line in process.stdout:
            what, _, value = line.strip().replace("listening on ", "listening on: ").partition(": ")
            said[what] = value
            if what == "listening on":
                break
        if "listening on" not in said:
            raise DemoFailed(f"the server did not start: {process.stderr.read() if process.stderr else ''}")
        yield Started(said["listening on"], said["root token"], said["provider simulator"])


@contextmanager
def stopping(process: subprocess.Popen[str]) -> Iterator[None]:
    try:
        yield
    finally:
        process.terminate()
        try:
            process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


@frozen
class Typist:
    """Types commands as a person at a machine of the simulated cloud would, and shows what they print."""

    story: Storyteller
    home: Path
    """Where the machine keeps its token."""

    def type(self, *words: str, machine: str = MACHINE, token: str = "", code: int = 0) -> None:
        """Run `cloudid`, which has to end with this exit code. Without a token, it uses the one that it keeps."""
        sys.stdout.write(f"    $ {shlex.join(('cloudid', *words))}\n")
        sys.stdout.flush()
        started, (name, *rest) = self.story.started, words
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.home),
            "CLOUDID_ADDR": started.url,
            "CLOUDID_TOKEN": token,
            METADATA: f"{started.simulator}/machines/{machine}",
            COLUMNS_BEHIND: str(WIDTH - len(INDENT)),
        }
        ran = subprocess.run(
            [sys.executable, "-m", "cloudid_servers.cli", name, "--format", "table", *rest],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        sys.stdout.write("".join(f"{INDENT}{shortened(line)}\n" for line in ran.stdout.splitlines()))
        if ran.returncode != code:
            raise DemoFailed(f"cloudid {name} ended with {ran.returncode}")


def shortened(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"


class Storyteller:
    """Send requests and print what they do."""

    def __init__(self, client: httpx.Client, started: Started) -> None:
        self.client = client
        self.started = started

    def tell(self, text: str) -> None:
        sys.stdout.write(f"\n{text}\n")
        sys.stdout.flush()

    def show(self, **facts: object) -> None:
        for name, fact in facts.items():
            sys.stdout.write(f"    {name.replace('_', ' ')}: {fact}\n")

    def wait_until(self, what: str, count: Callable[[], int], wanted: int, seconds: float = PATIENCE) -> None:
        """Show a number that changes by itself until it is what it should be."""
        shown, until = None, time.monotonic() + seconds
        while shown != wanted:
            if (now := count()) != shown:
                shown = now
                self.show(**{what: shown})
            if time.monotonic() > until:
                raise DemoFailed(f"{what}: still {shown}")
            time.sleep(0.2)

    def cloud(self, method: str, path: str, **options: Any) -> Any:
        return _json(self.client.request(method, self.started.simulator + path, **options))

    def ask(self, method: str, path: str, *, token: str = "", body: object = None, refused: int = 0) -> Any:
        """One request to the service; its answer is shown by its status, which may have to be a refusal."""
        headers = {"X-Service-Token": token} if token else {}
        response = self.client.request(method, f"{self.started.url}/v1/{path}", headers=headers, json=body)
        sys.stdout.write(f"    {method} /v1/{path} -> {response.status_code}\n")
        return None if refused and response.status_code == refused else _json(response)


def _json(response: httpx.Response) -> Any:
    if response.is_error:
        raise DemoFailed(
            f"{response.request.method} {response.request.url.path}: {response.status_code} {response.text}"
        )
    return response.json() if response.content else None


def log_in(typist: Typist) -> None:
    """Log a VM in, and show why another one is refused."""
    story = typist.story
    story.tell("Check that the server is healthy.")
    typist.type("status")

    story.tell(f"The VM {MACHINE} logs in. The command finds the VM's managed identity and stores the service token.")
    typist.type("login", "--role", MACHINE)

    story.tell("A VM with the same name in another resource group is refused. The operator looks up why.")
    typist.type("why", "--role", MACHINE, machine=STRANGER, token=story.started.root_token, code=1)


def climb(story: Storyteller) -> None:
    """Set a ceiling, and show that a team's role cannot exceed it."""
    root = story.started.root_token
    scope = f"/subscriptions/{story.cloud('GET', '/simulator/world')['subscriptions'][0]}"
    headers, service = {"X-Service-Token": root}, f"{story.started.url}/v1"
    policy = 'path "cloud/roles/team-*" { capabilities = ["create", "update"] }'
    _json(story.client.post(f"{service}/sys/policies/acl/team", headers=headers, json={"policy": policy}))
    created = _json(story.client.post(f"{service}/auth/token/create", headers=headers, json={"policies": ["team"]}))
    team = created["auth"]["client_token"]

    story.tell("The operator sets a ceiling: no role may grant more than Reader in one subscription.")
    ceiling = {"allowed_scopes": [scope], "allowed_role_definitions": ["Reader"]}
    story.ask("POST", "cloud/config", token=root, body=ceiling)

    story.tell("A team writes a role within the ceiling. A second role, which grants Owner, is refused.")
    for name, refused in (("Reader", 0), ("Owner", 403)):
        role = {"azure_roles": [{"role_name": name, "scope": scope}]}
        story.ask("POST", f"cloud/roles/team-{name.lower()}", token=team, body=role, refused=refused)


def borrow_credentials(typist: Typist) -> None:
    """Request credentials of a new service principal, and let them expire."""
    story, root = typist.story, typist.story.started.root_token
    story.tell(f"The operator limits leases of the role reader to {LEASE_SECONDS} seconds.")
    story.ask("POST", "cloud/roles/reader", token=root, body={"ttl": LEASE_SECONDS, "max_ttl": "1h"})

    story.tell(
        "The VM requests credentials: an app registration, service principal, secret and role assignment are created."
    )
    typist.type("creds", "reader")

    story.tell("The machine does nothing more. The lease expires, and everything that was created for it is deleted.")
    story.wait_until("objects in Azure", lambda: len(alive(story)), 0)


def rotate(typist: Typist) -> None:
    """Rotate the root secret, once the authentication method no longer uses it."""
    story, root = typist.story, typist.story.started.root_token
    story.tell(
        "Rotating the root secret is refused: the authentication method uses the same secret and would be locked out."
    )
    story.ask("POST", "cloud/rotate-root", token=root, refused=409)
    without_secret(typist)

    story.tell(
        "Now only the engine uses the secret. It adds a new one, proves it, switches to it and removes the old one."
    )
    story.ask("POST", "cloud/rotate-root", token=root)
    rotation = story.ask("GET", "cloud/rotation", token=root)["data"]
    story.show(phase=rotation["phase"], expires=rotation["expires"])

    story.tell("Credentials still work, now with the new root secret. These are revoked when the command ends.")
    typist.type("creds", "reader", "--exec", "sh", "-c", "echo I am $AZURE_CLIENT_ID")
    story.wait_until("objects in Azure", lambda: len(alive(story)), 0)


def rotate_by_itself(story: Storyteller) -> None:
    """Rotate the root secret every few seconds until the operator stops it."""
    root = story.started.root_token
    story.tell(f"From now on the service rotates the root secret every {PERIOD_SECONDS} seconds by itself.")
    before = story.ask("GET", "cloud/rotation", token=root)["data"]["last_rotation"]
    story.ask("POST", "cloud/config", token=root, body={"rotation_period": PERIOD_SECONDS})
    story.show(next_rotation=story.ask("GET", "cloud/rotation", token=root)["data"]["next_rotation"])

    def rotations() -> int:
        status = _json(story.client.get(f"{story.started.url}/v1/cloud/rotation", headers={"X-Service-Token": root}))
        return int(status["data"]["last_rotation"] != before)

    story.wait_until("rotations", rotations, 1)
    story.tell("The operator stops the rotation. It could also follow a schedule.")
    story.ask("POST", "cloud/config", token=root, body={"rotation_period": 0})


def without_secret(typist: Typist) -> None:
    """Log in without any root secret: Azure trusts identity tokens that the service signs."""
    story = typist.story
    root = story.started.root_token
    world = story.cloud("GET", "/simulator/world")
    application = world["applications"][0]
    machine = machine_of(world)

    story.tell(
        "The authentication method needs no secret at all: Azure is configured to trust tokens that the service signs."
    )
    document = "identity/oidc/plugins/.well-known/openid-configuration"
    accessor = story.ask("GET", "sys/auth", token=root)["data"]["cloud/"]["accessor"]
    federation = {
        "client_id": application["client_id"],
        "issuer": story.ask("GET", document)["issuer"],
        "subject": f"plugin-identity:root:auth:{accessor}",
        "audience": AUDIENCE,
    }
    story.cloud("POST", "/simulator/federations", json=federation)
    story.show(issuer=federation["issuer"], subject=federation["subject"])
    config = {"tenant_id": world["tenant"], "resource": RESOURCE, "client_id": application["client_id"]}
    story.ask(
        "POST",
        "auth/cloud/config",
        token=root,
        body={**config, "client_secret": "", "identity_token_audience": AUDIENCE},
    )

    story.tell("A new VM logs in. To look it up in Azure, the service authenticates with an identity token.")
    place = {name: machine[name] for name in ("subscription", "resource_group", "location")}
    story.cloud("POST", "/simulator/machines", json={"name": "newcomer", **place})
    typist.type("login", "--role", MACHINE, machine="newcomer")
    story.show(credential_source=story.ask("GET", "auth/cloud/rotation", token=root)["data"]["credential_source"])


def alive(story: Storyteller) -> list[Any]:
    """Return the objects in Azure that were created for leases and still exist, from the simulator's ledger."""
    root_application = story.cloud("GET", "/simulator/world")["applications"][0]["object_id"]
    made = story.cloud("GET", "/simulator/ledger")
    return [one for one in made if one["deleted_at"] is None and root_application not in one["of"]]


@click.command()
@click.option("--server", "name", type=click.Choice(SERVERS), default=SERVERS[0], help="Default: trio.")
def demo(name: str) -> None:
    """Show all main features on a simulated Azure, then stop."""
    try:
        with (
            server(name) as started,
            httpx.Client(trust_env=False, timeout=PATIENCE) as client,
            TemporaryDirectory(prefix="cloudid-demo-") as home,
        ):
            story = Storyteller(client, started)
            story.tell(
                f"`cloudid dev` runs at {started.url}, with a simulated Azure at {started.simulator}.\n"
                f"Its login role {MACHINE} admits VMs of one resource group. Its engine role reader issues credentials."
            )
            typist = Typist(story, Path(home))
            log_in(typist)
            climb(story)
            borrow_credentials(typist)
            rotate(typist)
            rotate_by_itself(story)
            story.tell("The demo is over. The server stops, and nothing is left of it.")
    except httpx.HTTPError as failure:
        raise DemoFailed(str(failure)) from failure
    sys.stdout.write(NEXT)


if __name__ == "__main__":
    sys.exit(run(demo, "python -m cloudid_servers.demo"))
