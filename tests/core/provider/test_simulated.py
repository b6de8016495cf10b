"""The whole way to a simulated cloud: keys, tokens, machines of every kind, groups."""

from __future__ import annotations

import json
from typing import Any, Final

import jwt
import pytest

from cloudid_core.clouds import Cloud
from cloudid_core.deadline import Deadline
from cloudid_core.effects import HttpRequest
from cloudid_core.errors import Code, ProviderProblem, ProviderUnreachable
from cloudid_core.provider.client import Credentials, refusal_of
from cloudid_core.provider.compute import Machine
from cloudid_core.provider.facts import machine_facts, member_groups
from cloudid_core.provider.signing_keys import refreshed_for, signing_keys
from cloudid_core.testing import World
from cloudid_core.values.resource_id import parse
from cloudid_core.values.secret import Secret
from cloudid_servers.provider_simulator import Simulator

from ..contexts import new_context
from .cloud import START, client

BASE: Final = "http://cloud.test"
CLOUD: Final = Cloud(
    login=f"{BASE}/login",
    resource_manager=f"{BASE}/arm",
    resource_audience="https://management.core.windows.net/",
    directory=f"{BASE}/graph",
)


class Simulated:
    """A simulated cloud, a world whose clock it shares, and a client with the service's own credentials."""

    def __init__(self) -> None:
        self.world = World(provider=self._handle, start=START)
        self.simulator = Simulator(0, BASE, lambda: self.world.clock)
        self.scene = self.control("GET", "/simulator/world")
        service = self.scene["applications"][0]
        self.client = client(
            new_context(),
            cloud=CLOUD,
            tenant=self.scene["tenant"],
            credentials=Credentials(client_id=service["client_id"], client_secret=Secret(service["client_secret"])),
            deadline=Deadline(START + 10**6),
        )

    def _handle(self, request: HttpRequest) -> Any:
        return self.simulator.handle(request)

    def control(self, method: str, path: str, body: Any = None) -> Any:
        sent = b"" if body is None else json.dumps(body).encode()
        answer = self.simulator.handle(HttpRequest(method, f"{BASE}{path}", {}, sent)).response.body
        return json.loads(answer) if answer else None

    def machine(self, name: str) -> Any:
        return next(machine for machine in self.scene["machines"] if machine["name"] == name)

    def claims(self, name: str) -> Any:
        path = f"/machines/{name}/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https://management.azure.com/"
        response = self.simulator.handle(HttpRequest("GET", f"{BASE}{path}", {"Metadata": "true"})).response
        return jwt.decode(json.loads(response.body)["access_token"], options={"verify_signature": False})


@pytest.fixture(scope="module")
def simulated() -> Simulated:
    return Simulated()


def find(simulated: Simulated, resource_id: str) -> Machine | None:
    return simulated.world.perform(machine_facts(simulated.client, parse(resource_id)))


def named(simulated: Simulated, name: str) -> str:
    claims = simulated.claims(name)
    return str(claims.get("xms_az_rid") or claims["xms_mirid"])


@pytest.mark.parametrize(
    "name, scale_set",
    [
        ("vm-system", ""),
        ("vm-user", ""),
        ("worker-1", ""),
        ("fleet-uniform", "fleet-uniform"),
        ("fleet-flexible", "fleet-flexible"),
        ("shop", ""),
    ],
)
def test_a_machine_of_every_kind_is_found_by_its_claim_and_carries_its_principal(
    simulated: Simulated, name: str, scale_set: str
) -> None:
    claims = simulated.claims(name)
    machine = find(simulated, named(simulated, name))
    assert machine is not None
    assert claims["oid"] in machine.principals
    assert machine.location == simulated.machine(name)["location"]
    assert machine.scale_set == scale_set


def test_the_principals_are_all_that_the_machine_has(simulated: Simulated) -> None:
    for name in ("vm-both", "vm-many", "vm-bare", "fleet-flexible"):
        listed = simulated.machine(name)
        machine = find(simulated, listed["resource_id"])
        assert machine is not None
        assert machine.principals == {principal.lower() for principal in listed["principals"]}


def test_what_is_not_there_is_none(simulated: Simulated) -> None:
    known = simulated.machine("vm-system")["resource_id"]
    subscription = simulated.scene["subscriptions"][0]
    for missing in (
        f"{known}x",
        known.replace("/machines/", "/nowhere/"),
        known.replace(subscription, "0" * 8 + subscription[8:]),
    ):
        assert find(simulated, missing) is None


def test_groups_of_a_principal_with_the_groups_around_them(simulated: Simulated) -> None:
    ids = {group["display_name"]: group["id"] for group in simulated.scene["groups"]}
    (principal,) = simulated.machine("vm-system")["principals"]
    groups = simulated.world.perform(member_groups(simulated.client, principal))
    assert groups is not None
    assert groups == {ids["batch-machines"], ids["all-machines"]}


def test_rotated_keys_are_found_and_faults_survived() -> None:
    simulated = Simulated()
    keys = simulated.world.perform(signing_keys(simulated.client))
    assert keys.tenant_id == simulated.scene["tenant"]
    assert keys.issuers == {f"https://sts.windows.net/{keys.tenant_id}/", f"{CLOUD.login}/{keys.tenant_id}/v2.0"}
    simulated.control("POST", "/simulator/keys/rotate")
    simulated.world.advance(31)
    fault = {"match": {"family": "login"}, "times": 2, "action": {"status": 503, "retry_after": 3}}
    simulated.control("POST", "/simulator/faults", [fault])
    newer = simulated.world.perform(refreshed_for(simulated.client, "unknown"))
    assert newer.generation != keys.generation
    assert newer.keys.keys() - keys.keys.keys()


@pytest.mark.parametrize(
    "action, code",
    [
        ({"status": 429, "code": "TooManyRequests", "retry_after": 1200}, Code.PROVIDER_THROTTLED),
        ({"status": 403, "code": "AuthorizationFailed"}, Code.PROVIDER_PERMISSION_DENIED),
        ({"status": 500}, Code.PROVIDER_FAILED),
        ({"drop": True}, Code.PROVIDER_UNREACHABLE),
    ],
)
def test_lasting_faults_are_refused_by_their_kind(simulated: Simulated, action: Any, code: Code) -> None:
    simulated.world.advance(60)
    resource_id = simulated.machine("vm-system")["resource_id"]
    simulated.control("POST", "/simulator/faults", [{"match": {"family": "arm"}, "action": action}])
    with pytest.raises((ProviderProblem, ProviderUnreachable)) as failed:
        find(simulated, resource_id)
    simulated.control("POST", "/simulator/faults", [])
    failure = failed.value
    assert isinstance(failure, (ProviderProblem, ProviderUnreachable))
    assert refusal_of(failure).code is code
