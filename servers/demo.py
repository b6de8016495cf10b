"""A machine of a simulated cloud logs in and borrows credentials: `python -m cloudid_servers.demo [--server NAME]`

It starts a server of its own with everything in memory, and ends it: nothing is left behind, however it ends.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpx
from attrs import field, frozen

RESOURCE: Final = "https://management.azure.com/"
AUDIENCE: Final = "api://AzureADTokenExchange"
PERIOD_SECONDS: Final = 5
SERVERS: Final = ("trio_server", "aiohttp_server")
PATIENCE: Final = 30.0
LEASE_SECONDS: Final = 4


class DemoFailed(Exception):
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
    command = [sys.executable, "-m", f"cloudid_servers.{name}", "--dev", "--listen", "127.0.0.1:0"]
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
    """Stop a process at the end of the block."""
    try:
        yield
    finally:
        process.terminate()
        try:
            process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


class Storyteller:
    """Sends requests and tells what it does."""

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


def log_in(story: Storyteller) -> str:
    """From a machine's metadata service to a service token that works; answers the token."""
    root = story.started.root_token
    world = story.cloud("GET", "/simulator/world")
    application, machine = world["applications"][0], world["machines"][0]

    story.tell("The operator tells the authentication method which tenant it serves, and with which credentials.")
    config = {name: application[name] for name in ("client_id", "client_secret")}
    story.ask(
        "POST", "auth/cloud/config", token=root, body={**config, "tenant_id": world["tenant"], "resource": RESOURCE}
    )

    story.tell("A role admits the machines of one resource group at one location.")
    role = {
        "bound_subscription_ids": [machine["subscription"]],
        "bound_resource_groups": [machine["resource_group"]],
        "bound_locations": [machine["location"]],
        "token_policies": ["app"],
        "token_ttl": "1h",
    }
    story.ask("POST", "auth/cloud/role/app", token=root, body=role)
    policy = 'path "cloud/creds/*" { capabilities = ["read"] }\npath "sys/leases/*" { capabilities = ["update"] }'
    story.ask("POST", "sys/policies/acl/app", token=root, body={"policy": policy})

    story.tell(f"The machine {machine['name']!r} asks its metadata service for its signed identity.")
    form = credentials(story, machine)
    story.show(jwt=f"{form['jwt'][:24]}… ({len(form['jwt'])} characters)")

    story.tell("It logs in with it.")
    token = _log_in_with(story, form)

    story.tell("The service token works.")
    found = story.ask("GET", "auth/token/lookup-self", token=token)["data"]
    story.show(display_name=found["display_name"], verified_facts=found["meta"])
    return token


def log_in_again(story: Storyteller) -> str:
    """Another token for the same machine."""
    return _log_in_with(story, credentials(story, story.cloud("GET", "/simulator/world")["machines"][0]))


def _log_in_with(story: Storyteller, form: dict[str, str]) -> str:
    auth = story.ask("POST", "auth/cloud/login", body=form)["auth"]
    story.show(policies=", ".join(auth["policies"]), lease_duration=auth["lease_duration"])
    return str(auth["client_token"])


def credentials(story: Storyteller, machine: Any) -> dict[str, str]:
    """The form of a machine's login, with its signed identity."""
    query = {"api-version": "2018-02-01", "resource": RESOURCE}
    path = f"/machines/{machine['name']}/metadata/identity/oauth2/token"
    identity = story.cloud("GET", path, params=query, headers={"Metadata": "true"})
    return {
        "role": "app",
        "jwt": identity["access_token"],
        "subscription_id": machine["subscription"],
        "resource_group_name": machine["resource_group"],
        "vm_name": machine["name"],
    }


def configure_engine(story: Storyteller) -> None:
    """A secrets engine with a role that may read one subscription."""
    root = story.started.root_token
    world = story.cloud("GET", "/simulator/world")
    application, subscription = world["applications"][0], world["subscriptions"][0]
    story.tell("The operator configures the secrets engine, and a role that may read one subscription.")
    config = {name: application[name] for name in ("client_id", "client_secret")}
    config |= {"tenant_id": world["tenant"], "subscription_id": subscription}
    story.ask("POST", "cloud/config", token=root, body=config)
    assignments = [{"role_name": "Reader", "scope": f"/subscriptions/{subscription}"}]
    role = {"azure_roles": json.dumps(assignments), "ttl": f"{LEASE_SECONDS}s", "max_ttl": "1h"}
    story.ask("POST", "cloud/roles/reader", token=root, body=role)


def borrow_credentials(story: Storyteller, token: str) -> None:
    """Credentials of a fresh service principal, renewed and left to expire; then a new root secret."""
    root = story.started.root_token
    configure_engine(story)

    story.tell(
        "The machine borrows credentials: an application, a principal, a password and a role assignment are made."
    )
    lease = story.ask("GET", "cloud/creds/reader", token=token)
    story.show(client_id=lease["data"]["client_id"], lease=lease["lease_id"], seconds=lease["lease_duration"])
    story.show(objects_at_the_provider=len(alive(story)))

    story.tell("It renews the lease.")
    renewal = {"lease_id": lease["lease_id"], "increment": LEASE_SECONDS}
    story.show(seconds=story.ask("POST", "sys/leases/renew", token=token, body=renewal)["lease_duration"])

    story.tell("It forgets about it; the lease runs out, and everything that was made for it is removed.")
    story.wait_until("objects at the provider", lambda: len(alive(story)), 0)

    story.tell(
        "The root secret is to be replaced. The authentication method uses it too, and would be locked out: refused."
    )
    story.ask("POST", "cloud/rotate-root", token=root, refused=409)

    story.tell(
        "Without that: a new one that only the service knows is added, proven and put in place; then the old one goes."
    )
    story.ask("DELETE", "auth/cloud/config", token=root)
    story.ask("POST", "cloud/rotate-root", token=root)
    rotation = story.ask("GET", "cloud/rotation", token=root)["data"]
    story.show(phase=rotation["phase"], expires=rotation["expires"])

    story.tell("Credentials still work, now with the new root secret; given back, they leave nothing behind.")
    lease = story.ask("GET", "cloud/creds/reader", token=token)
    story.ask("POST", "sys/leases/revoke", token=root, body={"lease_id": lease["lease_id"]})
    story.wait_until("objects at the provider", lambda: len(alive(story)), 0)


def rotate_by_itself(story: Storyteller) -> None:
    """The root secret is replaced every few seconds, until the operator stops that."""
    root = story.started.root_token
    story.tell(f"From now on the root secret is to be replaced every {PERIOD_SECONDS} seconds, without anybody's help.")
    before = story.ask("GET", "cloud/rotation", token=root)["data"]["last_rotation"]
    story.ask("POST", "cloud/config", token=root, body={"rotation_period": PERIOD_SECONDS})
    story.show(next_rotation=story.ask("GET", "cloud/rotation", token=root)["data"]["next_rotation"])

    def rotations() -> int:
        status = _json(story.client.get(f"{story.started.url}/v1/cloud/rotation", headers={"X-Service-Token": root}))
        return int(status["data"]["last_rotation"] != before)

    story.wait_until("rotations", rotations, 1)
    story.tell("That is enough; rotations can be stopped, and they can follow a schedule instead.")
    story.ask("POST", "cloud/config", token=root, body={"rotation_period": 0})


def without_secret(story: Storyteller) -> None:
    """The authentication method has no secret: the cloud trusts identity tokens that the service signs."""
    root = story.started.root_token
    world = story.cloud("GET", "/simulator/world")
    application, machine = world["applications"][0], world["machines"][0]

    story.tell("The authentication method needs no secret at all: the cloud is told to trust what the service signs.")
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
    story.ask("POST", "auth/cloud/config", token=root, body={**config, "identity_token_audience": AUDIENCE})

    story.tell(
        "A machine that was never seen logs in: to look it up, the service proves itself with an identity token."
    )
    place = {name: machine[name] for name in ("subscription", "resource_group", "location")}
    newcomer = story.cloud("POST", "/simulator/machines", json={"name": "newcomer", **place})
    story.ask("POST", "auth/cloud/login", body=credentials(story, newcomer))
    story.show(credential_source=story.ask("GET", "auth/cloud/rotation", token=root)["data"]["credential_source"])


def alive(story: Storyteller) -> list[Any]:
    """What was made at the provider for leases and lives, by its own ledger: all but the new root secret."""
    root_application = story.cloud("GET", "/simulator/world")["applications"][0]["object_id"]
    made = story.cloud("GET", "/simulator/ledger")
    return [one for one in made if one["deleted_at"] is None and root_application not in one["of"]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m cloudid_servers.demo", description=__doc__)
    parser.add_argument("--server", choices=SERVERS, default=SERVERS[0])
    options = parser.parse_args()
    try:
        with server(options.server) as started, httpx.Client(trust_env=False, timeout=PATIENCE) as client:
            story = Storyteller(client, started)
            story.tell(f"A server runs at {started.url}, a simulated cloud at {started.simulator}.")
            borrow_credentials(story, log_in(story))
            rotate_by_itself(story)
            without_secret(story)
            story.tell("That was it; the server ends now, and nothing is left of it.")
    except (DemoFailed, httpx.HTTPError) as failure:
        sys.stderr.write(f"error: {failure}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
