"""A server with roles for machines, pods and applications, beside a simulated cloud: what clients talk to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import httpx
from attrs import field, frozen

from cloudid_core.effects import HttpResponse
from cloudid_servers.provider_simulator import Running as Cloud
from cloudid_servers.provider_simulator import Simulator, start
from cloudid_servers.provider_simulator.identity.keys import SigningKey, signing_key
from tests.waiting import PATIENT, wait_until

from .running import Running

ROOT: Final = "canary-of-a-root-token"
RESOURCE: Final = "https://management.azure.com/"
SUBJECT: Final = "system:serviceaccount:shop:web"
AUDIENCE: Final = "api://AzureADTokenExchange"
ISSUER: Final = "https://oidc.kubernetes.test"
POLICY: Final = """
path "cloud/creds/*" { capabilities = ["read"] }
path "sys/leases/revoke" { capabilities = ["update"] }
path "auth/cloud/explain" { capabilities = ["update", "sudo"] }
"""


class Cluster:
    """A Kubernetes cluster, as far as the cloud sees it: an issuer of the tokens of pods."""

    def __init__(self) -> None:
        self.key: SigningKey = signing_key(7, 0)

    def fetch(self, url: str) -> HttpResponse:
        documents: dict[str, Any] = {
            f"{ISSUER}/.well-known/openid-configuration": {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys"},
            f"{ISSUER}/keys": {"keys": [self.key.jwk()]},
        }
        return HttpResponse(200, {}, json.dumps(documents[url]).encode())

    def token(self, now: float) -> str:
        claims = {"iss": ISSUER, "sub": SUBJECT, "aud": [AUDIENCE], "iat": now, "nbf": now, "exp": now + 3600}
        return self.key.sign(claims)


@frozen
class Site:
    """The addresses of both, and what a client must know."""

    cloud: Cloud
    server: Running
    cluster: Cluster
    world: Any = field(repr=False)

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def application(self) -> Any:
        return self.world["applications"][0]

    def machine(self, name: str) -> Any:
        return next(machine for machine in self.world["machines"] if machine["name"] == name)

    def simulate(self, method: str, path: str, body: object = None) -> Any:
        answer = httpx.request(method, f"{self.cloud.url}/simulator/{path}", json=body, **PATIENT)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def ask(self, method: str, path: str, body: object = None, token: str = ROOT) -> Any:
        headers = {"X-Service-Token": token}
        answer = httpx.request(method, f"{self.url}/v1/{path}", headers=headers, json=body, **PATIENT)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def of_vm(self, name: str = "web") -> dict[str, str]:
        """The environment of a virtual machine."""
        return {"AZURE_POD_IDENTITY_AUTHORITY_HOST": f"{self.cloud.url}/machines/{name}"}

    def of_app_service(self, name: str = "shop") -> dict[str, str]:
        secret = self.machine(name)["platform_secret"]
        return {"IDENTITY_ENDPOINT": f"{self.cloud.url}/machines/{name}/msi/token", "IDENTITY_HEADER": secret}

    def of_arc(self, name: str = "shop") -> dict[str, str]:
        url = f"{self.cloud.url}/machines/{name}"
        return {"IDENTITY_ENDPOINT": f"{url}/arc/token", "IMDS_ENDPOINT": url}

    def of_pod(self, file: str) -> dict[str, str]:
        return {**self._of_tenant, "AZURE_FEDERATED_TOKEN_FILE": file}

    def of_application(self) -> dict[str, str]:
        return {**self._of_tenant, "AZURE_CLIENT_SECRET": self.application["client_secret"]}

    @property
    def _of_tenant(self) -> dict[str, str]:
        return {
            "AZURE_TENANT_ID": self.world["tenant"],
            "AZURE_CLIENT_ID": self.application["client_id"],
            "AZURE_AUTHORITY_HOST": self.cloud.url,
        }

    def alive(self) -> int:
        """How many principals lent credentials have at the cloud."""
        made = self.simulate("GET", "ledger")
        return sum(one["kind"] == "principal" and one["deleted_at"] is None for one in made)

    def end_loans(self) -> None:
        """End what earlier tests left, some of which ends anyway at some moment."""
        self.ask("PUT", "sys/leases/revoke-prefix/cloud/creds")
        wait_until(lambda: not self.alive())


@contextmanager
def client_site(
    runtime: str = "trio_server", *more: str, environment: Mapping[str, str] | None = None
) -> Iterator[Site]:
    """Both, with the roles `all` for machines, `anybody` for any workload, and `reader`, whose credentials are lent."""
    cluster = Cluster()
    with start(Simulator(fetch=cluster.fetch)) as cloud:
        arguments = ("--dev", "--listen", "127.0.0.1:0", "--root-token", ROOT, "--provider", cloud.url)
        with Running(f"cloudid_servers.{runtime}", *arguments, *more, environment=environment) as server:
            world = httpx.get(f"{cloud.url}/simulator/world", **PATIENT).json()
            site = Site(cloud, server, cluster, world)
            _configure(site)
            yield site


def _configure(site: Site) -> None:
    world, application = site.world, site.application
    root = {name: application[name] for name in ("client_id", "client_secret")} | {"tenant_id": world["tenant"]}
    reader = [{"role_name": "Reader", "scope": f"/subscriptions/{world['subscriptions'][0]}"}]
    machines = {"bound_subscription_ids": world["subscriptions"], "token_policies": "app", "token_ttl": "1h"}
    site.ask("POST", "auth/cloud/config", {**root, "resource": RESOURCE, "max_retries": 0})
    site.ask("POST", "auth/cloud/role/all", machines)
    site.ask("POST", "auth/cloud/role/west", {**machines, "bound_locations": "westus2", "bound_scale_sets": "fleet"})
    site.ask("POST", "auth/cloud/role/anybody", {"bound_service_principal_ids": "*", "token_policies": "app"})
    site.ask("POST", "sys/policies/acl/app", {"policy": POLICY})
    site.ask("POST", "cloud/config", {**root, "subscription_id": world["subscriptions"][0]})
    site.ask("POST", "cloud/roles/reader", {"azure_roles": json.dumps(reader), "ttl": "1h"})
    issuer = {"issuer": ISSUER, "subject": SUBJECT, "audience": AUDIENCE}
    site.simulate("POST", "federations", {"client_id": application["client_id"], **issuer})
