"""Requests of clients that were read in their sources, in order, against each server; their types read the answers."""

from __future__ import annotations

import string
from typing import Any

import httpx
import msgspec
import pytest
from attrs import field, frozen

from cloudid_servers.provider_simulator import Simulator, start
from tests.servers.running import SERVERS, Running
from tests.servers.story import RESOURCE, identity
from tests.waiting import PATIENT

from .recorded import NOTHING, REQUESTS, RULES, NoBody, Recorded

pytestmark = pytest.mark.one_server


@frozen
class Target:
    """A server beside its cloud, and what is made on it for the requests."""

    url: str
    cloud: str
    world: Any = field(repr=False)

    def send(
        self, method: str, path: str, body: Any = NOTHING, token: str = "root", headers: dict[str, str] | None = None
    ) -> httpx.Response:
        content = None if body is NOTHING else msgspec.json.encode(body)
        sent = {**({"X-Vault-Token": token} if token else {}), **(headers or {})}
        return httpx.request(method, f"{self.url}/v1/{path}", content=content, headers=sent, **PATIENT)

    def must(self, method: str, path: str, body: Any = NOTHING, **options: Any) -> Any:
        answer = self.send(method, path, body, **options)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def make(self, name: str) -> Any:
        """What `$name` stands for: each time a new one."""
        match name:
            case "jwt":
                return identity(self.cloud, self.world["machines"][0]["name"])
            case "machine":
                machine = self.world["machines"][0]
                return {
                    "role": "web",
                    "jwt": self.make("jwt"),
                    "subscription_id": machine["subscription"],
                    "resource_group_name": machine["resource_group"],
                    "vm_name": machine["name"],
                    "vmss_name": "",
                }
            case "login":
                return self.must("POST", "auth/cloud/login", self.make("machine"))["auth"]["client_token"]
            case "token" | "accessor":
                auth = self.must("POST", "auth/token/create", {"policies": ["app"], "ttl": "1h"})["auth"]
                return auth["accessor" if name == "accessor" else "client_token"]
            case "application":
                return self.world["applications"][1]["object_id"]
            case "lease":
                return self.must("GET", "cloud/creds/app")["lease_id"]
            case "wrapped":
                wrapped = self.must("GET", "auth/token/lookup-self", headers={"X-Vault-Wrap-TTL": "60"})
                return wrapped["wrap_info"]["token"]
        raise AssertionError(f"nothing is made for ${name}")

    def filled(self, value: Any) -> Any:
        """The value with everything made that it names."""
        if isinstance(value, dict):
            return {name: self.filled(each) for name, each in value.items()}
        if not isinstance(value, str) or "$" not in value:
            return value
        if value.startswith("$"):
            return self.make(value[1:])
        names = string.Template(value).get_identifiers()
        return string.Template(value).substitute({name: self.make(name) for name in names})

    def prepare(self) -> None:
        own, other = self.world["applications"]
        subscriptions = self.world["subscriptions"]
        proof = {"tenant_id": self.world["tenant"], **{name: own[name] for name in ("client_id", "client_secret")}}
        self.must("POST", "auth/cloud/config", {**proof, "resource": RESOURCE})
        self.must("POST", "auth/cloud/role/web", {"bound_subscription_ids": subscriptions, "token_policies": ["app"]})
        self.must("POST", "auth/cloud/role/any", {"bound_service_principal_ids": ["*"], "token_policies": ["app"]})
        self.must("POST", "cloud/config", {**proof, "subscription_id": subscriptions[0]})
        self.must("POST", "cloud/roles/app", {"application_object_id": other["object_id"], "ttl": "1h"})
        self.must("POST", "sys/policies/acl/app", {"policy": RULES})
        self.must("POST", "auth/token/roles/ci", {"allowed_policies": ["app"]})


def fault(target: Target, row: Recorded) -> str | None:
    """What is wrong with the answer to a request."""
    path, body, token = (target.filled(each) for each in (row.path, row.body, row.token))
    answer = target.send(row.method, path, body, token, row.client.headers)
    if answer.status_code != row.status:
        return f"{answer.status_code} instead of {row.status}: {answer.text}"
    if row.takes is NoBody:
        return None if not answer.content else f"a body: {answer.text}"
    try:
        msgspec.json.decode(answer.content, type=row.takes or Any)
    except msgspec.ValidationError as error:
        return f"{error}: {answer.text}"
    return None


@pytest.mark.parametrize("server", SERVERS)
def test_every_recorded_request_is_answered_as_its_client_expects(server: str) -> None:
    with start(Simulator()) as cloud:
        world = httpx.get(f"{cloud.url}/simulator/world", **PATIENT).json()
        arguments = ("--dev", "--listen", "127.0.0.1:0", "--root-token", "root", "--provider", cloud.url)
        with Running(f"cloudid_servers.{server}", *arguments) as running:
            target = Target(running.url, cloud.url, world)
            target.prepare()
            faults = [
                f"{row.client.name} {row.method} {row.path} ({row.source}): {wrong}"
                for row in REQUESTS
                if (wrong := fault(target, row)) is not None
            ]
    assert not faults, "\n".join(faults)


def test_every_row_says_where_it_was_read() -> None:
    assert all(row.source and row.client.version for row in REQUESTS)
    clients = {"community.hashi_vault", "vaultrs", "spring-vault", "bao", "terraform-provider-vault"}
    assert {row.client.name for row in REQUESTS} == clients
