"""First steps: what `dev` prepares on the simulated cloud, and what a person types next."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from cloudid_core import Request
from cloudid_core.service import Service
from cloudid_core.values.secret import Secret

from ..client import RESOURCE
from ..settings import SettingsError

MACHINE: Final = "web"
"""The machine that may log in."""
STRANGER: Final = "web-evil"
"""A machine of the same name in another resource group."""
METADATA: Final = "AZURE_POD_IDENTITY_AUTHORITY_HOST"
"""The variable with the address of a machine's metadata service."""
LEASE_SECONDS: Final = 60
POLICY: Final = """\
path "cloud/creds/*" { capabilities = ["read"] }
path "sys/leases/*" { capabilities = ["update"] }
"""


async def prepare(service: Service, root_token: Secret, world: Mapping[str, Any]) -> None:
    """Connect a new service to the simulated cloud: a role for its machines, and a role that issues credentials.

    Raises `SettingsError`.

    `world`: what the simulator answers to `GET /simulator/world`.
    """
    headers = {"x-service-token": root_token.reveal(), "content-type": "application/json"}
    for path, body in first_writes(world):
        response = await service.handle(Request("POST", f"/v1/{path}", headers, msgspec.json.encode(body)))
        if response.status >= 400:
            told = "; ".join(msgspec.json.decode(response.body)["errors"])
            raise SettingsError(f"{path} cannot be written with these settings: {told}")


def machine_of(world: Mapping[str, Any]) -> Mapping[str, Any]:
    """The machine that may log in, as the simulator shows it."""
    return next(machine for machine in world["machines"] if machine["name"] == MACHINE)


def first_writes(world: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The paths and fields of what `prepare` writes."""
    application = {name: world["applications"][0][name] for name in ("client_id", "client_secret")}
    config = {**application, "tenant_id": world["tenant"]}
    machine = machine_of(world)
    subscription = machine["subscription"]
    yield "auth/cloud/config", {**config, "resource": RESOURCE}
    yield "sys/policies/acl/app", {"policy": POLICY}
    bounds = {"bound_subscription_ids": [subscription], "bound_resource_groups": [machine["resource_group"]]}
    yield f"auth/cloud/role/{MACHINE}", {**bounds, "token_policies": ["app"], "token_ttl": "1h"}
    yield "cloud/config", {**config, "subscription_id": subscription}
    reader = [{"role_name": "Reader", "scope": f"/subscriptions/{subscription}"}]
    yield "cloud/roles/reader", {"azure_roles": msgspec.json.encode(reader).decode(), "ttl": LEASE_SECONDS}


def guide(url: str, root_token: Secret, provider: str) -> str:
    """What to type next where `prepare` has run: a login, credentials and their end, a refusal. For a POSIX shell."""
    identity = f"{METADATA}={provider}/machines"
    return f"""
The auth role {MACHINE} admits the machines of one resource group. The engine role reader issues Azure credentials.
In another terminal, run:

{_definition()}  export CLOUDID_ADDR={url} {identity}/{MACHINE}
  cloudid status
  cloudid login --role {MACHINE}
  cloudid creds reader
  cloudid creds reader --exec sh -c 'echo "only for this command: $AZURE_CLIENT_ID"'
  curl -s {provider}/simulator/ledger
  export CLOUDID_TOKEN={root_token.reveal()}
  {identity}/{STRANGER} cloudid why --role {MACHINE}

You can also open {url}/ui/ and sign in with the root token.

The machine {MACHINE} logs in. Its credentials are valid for {LEASE_SECONDS} s, or until the command that uses them
ends. The ledger shows that all of them are deleted from Azure. The last line explains why the login of another machine
with the same name is refused.
"""


def addresses(url: str, root_token: Secret, provider: str) -> str:
    """What to type next where nothing was prepared. For a POSIX shell."""
    return f"""
In another terminal, run:

{_definition()}  export CLOUDID_ADDR={url} CLOUDID_TOKEN={root_token.reveal()} SIMULATOR={provider}
  cloudid status

"""


def _definition() -> str:
    """The line that makes `cloudid` known to a shell that does not know it."""
    if shutil.which("cloudid"):
        return ""
    return f'  cloudid() {{ {sys.executable} -m cloudid_servers.cli "$@"; }}\n'
