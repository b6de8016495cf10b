"""A fleet to log in: machines of a simulated cloud with their tokens, and a service in memory that admits them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK

from cloudid_core import (
    HttpRequest,
    HttpResponse,
    Request,
    Secret,
    Service,
    Settings,
    initialise,
    open_service,
    run,
    run_now,
)
from cloudid_core.auth_method.form import LoginForm
from cloudid_core.effects import Entry, Host, PlatformToken, Program, Ready
from cloudid_core.errors import PlatformTokenUnavailable
from cloudid_core.events import Event
from cloudid_core.store.memory import MemoryStore
from cloudid_core.testing.rsa_keys import private_key_pem
from cloudid_servers.provider_simulator import Simulator
from cloudid_servers.settings.settings import clouds_at

BASE_URL: Final = "http://cloud.test"
AUDIENCE: Final = "https://management.azure.com/"
RESOURCE_GROUP: Final = "web"
LOCATION: Final = "westus2"
ROLE: Final = "web"
ADMITTED: Final = "admitted"
"""The group that the role binds, of the eight that every machine is in."""


class MemoryHost(Host):
    """A host that never waits: its store is a dictionary, and the cloud an object.

    What it answers in place the servers' hosts answer in place too, commits to a store in memory included.
    """

    def __init__(self, cloud: Simulator) -> None:
        self.store, self.cloud = MemoryStore(), cloud

    def read_entry(self, key: str) -> Ready[Entry | None]:
        return Ready(self.store.read(key))

    async def read_entries(self, keys: tuple[str, ...]) -> Mapping[str, Entry]:
        return self.store.read_all(keys)

    async def list_keys(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        return self.store.list(prefix, after, limit)

    def commit(self, expects: Any, puts: Any, deletes: tuple[str, ...]) -> Ready[int]:
        return Ready(self.store.commit(expects, puts, deletes))

    async def call_provider(self, request: HttpRequest, timeout: float) -> HttpResponse:
        return self.cloud.handle(request).response

    async def read_platform_token(self, resource: str, client_id: str) -> PlatformToken:
        raise PlatformTokenUnavailable("there is none here")

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing here waits")

    def now(self) -> Ready[float]:
        return Ready(time.time())

    async def compare_clocks(self) -> None:
        return None

    def random_bytes(self, count: int) -> Ready[bytes]:
        return Ready(os.urandom(count))

    async def generate_key(self) -> Secret:
        return Secret(private_key_pem("key 0 of a world"))

    async def read_federated_token(self, path: str) -> Secret:
        raise PlatformTokenUnavailable("there is none here")

    def record(self, event: Event) -> Ready[None]:
        """Benchmarks have no audit devices."""
        return Ready(None)

    async def together(self, programs: tuple[Program[Any], ...]) -> tuple[Any, ...]:
        return tuple([await run(program, self) for program in programs])

    async def within(self, seconds: float, program: Program[Any]) -> Any:
        return await run(program, self)

    async def shared(self, key: str, program: Program[Any]) -> Any:
        return await run(program, self)


@frozen
class Member:
    """A machine, the token that it fetched, and the login that it asks for."""

    resource_id: str
    principal_id: str
    token: str
    form: LoginForm
    request: Request


@frozen
class Fleet:
    """Members, all of one role, and what their tokens are verified with."""

    cloud: Simulator
    tenant_id: str
    application: dict[str, str]
    role: Mapping[str, tuple[str, ...]]
    members: tuple[Member, ...]
    keys: dict[str, RSAPublicKey]

    @property
    def issuer(self) -> str:
        return f"https://sts.windows.net/{self.tenant_id}/"


def raise_fleet(size: int, *, own_groups: bool = False) -> Fleet:
    """Make so many machines, in eight groups each, and let each fetch its token.

    All are in the same groups, or each in seven of its own.
    """
    cloud = Simulator(base_url=BASE_URL)
    subscription: str = ask_cloud(cloud, "GET", "/simulator/world")["subscriptions"][0]
    names = [f"web-{number:05d}" for number in range(size)]
    members = tuple(_member(cloud, subscription, name, name if own_groups else "fleet") for name in names)
    world = ask_cloud(cloud, "GET", "/simulator/world")
    group_ids = {group["display_name"]: group["id"] for group in world["groups"]}
    role = {
        "bound_subscription_ids": (subscription,),
        "bound_resource_groups": (RESOURCE_GROUP,),
        "bound_locations": (LOCATION,),
        "bound_group_ids": (group_ids[ADMITTED],),
    }
    published = ask_cloud(cloud, "GET", "/login/common/discovery/keys")["keys"]
    keys = {key["kid"]: PyJWK(key, "RS256").key for key in published}
    return Fleet(cloud, world["tenant"], world["applications"][0], role, members, keys)


def open_login(fleet: Fleet, **settings: Any) -> tuple[Service, MemoryHost]:
    """A service that admits the fleet."""
    host = MemoryHost(fleet.cloud)
    unlimited = {"provider_read_rate": 0, **settings}  # no login waits for Azure here
    options = Settings(master_key=Secret(os.urandom(32).hex()), clouds=clouds_at(BASE_URL), **unlimited)
    root_token = run_now(initialise(options), host)
    service = run_now(open_service(options), host)
    config = {
        "tenant_id": fleet.tenant_id,
        "resource": AUDIENCE,
        "client_id": fleet.application["client_id"],
        "client_secret": fleet.application["client_secret"],
    }
    headers = {"x-service-token": root_token.reveal()}
    for path, body in (("config", config), (f"role/{ROLE}", fleet.role)):
        request = Request("POST", f"/v1/auth/cloud/{path}", headers, json.dumps(body).encode(), is_folded=True)
        answer = run_now(service.handle(request), host)
        assert answer.status == 204, answer.body
    return service, host


def _member(cloud: Simulator, subscription: str, name: str, team: str) -> Member:
    groups = [*(f"{team}-{number}" for number in range(7)), ADMITTED]
    order = {"name": name, "resource_group": RESOURCE_GROUP, "location": LOCATION, "groups": groups}
    machine = ask_cloud(cloud, "POST", "/simulator/machines", order)
    query = f"api-version=2018-02-01&resource={AUDIENCE}"
    token = ask_cloud(cloud, "GET", f"/machines/{name}/metadata/identity/oauth2/token?{query}")["access_token"]
    body = {
        "role": ROLE,
        "jwt": token,
        "subscription_id": subscription,
        "resource_group_name": RESOURCE_GROUP,
        "vm_name": name,
    }
    return Member(
        resource_id=machine["resource_id"],
        principal_id=machine["principals"][0],
        token=token,
        form=LoginForm(**body),
        request=Request("POST", "/v1/auth/cloud/login", {}, json.dumps(body).encode(), is_folded=True),
    )


def ask_cloud(cloud: Simulator, method: str, path: str, body: object = None) -> Any:
    headers, content = {"metadata": "true"}, b"" if body is None else json.dumps(body).encode()
    response = cloud.handle(HttpRequest(method, BASE_URL + path, headers, content)).response
    assert response.status in (200, 201), response.body
    return json.loads(response.body)
