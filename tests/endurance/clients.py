"""Clients that use everything the service offers, and compare what is there with what it has acknowledged."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http import HTTPStatus
from random import Random
from typing import Any, Final, TypeAlias, TypeGuard

import httpx

from tests.servers.deployment import Deployment
from tests.servers.running import Running

from .expectations import GONE, Expectations, Thing

ALIVE: Final = "alive"
RENEWED: Final = "renewed"
LONG: Final = 6 * 3600
"""Seconds that renewals ask for: more than the first TTL of anything."""
NAMES: Final = 6
"""How many roles, policies and mounts each client has to itself."""

Answer: TypeAlias = httpx.Response | None
"""`None`: the connection broke before there was an answer."""


class ServiceClient:
    """One client, with things of its own. A server after the other is used, over the same store."""

    def __init__(self, deployment: Deployment, number: int, seed: int) -> None:
        self.expectations = Expectations()
        self.statuses: Counter[str] = Counter()
        """What was answered, by operation and status; status 0: no answer."""
        self.credentials: dict[str, dict[str, str]] = {}
        """By lease id."""
        self._token_of: dict[str, str] = {}
        self._deployment = deployment
        self._prefix = f"c{number}"
        self._dice = Random(f"{seed} {number}")
        self._service: httpx.Client | None = None

    def run(self, server: Running, stop: threading.Event) -> None:
        """Send requests until `stop` is set, or the server is gone."""
        with self._deployment.client(server) as self._service:
            while not stop.is_set():
                operation = self._dice.choice(OPERATIONS)
                answer = operation(self)
                if answer is None:
                    return

    # Operations. Each answers what its last request was answered.

    def log_in(self) -> Answer:
        form = self._deployment.form
        answer = self._send("log in", "POST", "auth/cloud/login", form, token="")
        if _is_done(answer):
            self._acknowledge(("token", answer.json()["auth"]["client_token"]), ALIVE)
        return answer

    def borrow(self) -> Answer:
        """Borrow credentials with a token of this client, which they end with."""
        tokens = self.expectations.certainly("token", ALIVE, RENEWED)
        if not tokens:
            return self.log_in()
        token, role = self._dice.choice(tokens), self._dice.choice(("fresh", "existing"))
        answer = self._send("borrow", "GET", f"cloud/creds/{role}", token=token)
        if _is_done(answer):
            lease = answer.json()
            self._token_of[lease["lease_id"]] = token
            self.credentials[lease["lease_id"]] = lease["data"]
            self._acknowledge(("lease", lease["lease_id"]), ALIVE)
        return answer

    def renew_token(self) -> Answer:
        tokens = self.expectations.certainly("token", ALIVE)
        if not tokens:
            return self.log_in()
        token = self._dice.choice(tokens)
        return self._change(("token", token), RENEWED, "POST", "auth/token/renew", {"token": token, "increment": LONG})

    def renew_lease(self) -> Answer:
        leases = self.expectations.certainly("lease", ALIVE)
        if not leases:
            return self.borrow()
        lease = self._dice.choice(leases)
        body = {"lease_id": lease, "increment": LONG}
        return self._change(("lease", lease), RENEWED, "POST", "sys/leases/renew", body)

    def revoke_token(self) -> Answer:
        """What was borrowed with it ends with it."""
        tokens = self.expectations.certainly("token", ALIVE, RENEWED)
        if not tokens:
            return self.log_in()
        token = self._dice.choice(tokens)
        leases = [("lease", lease) for lease, owner in self._token_of.items() if owner == token]
        return self._change(("token", token), GONE, "POST", "auth/token/revoke", {"token": token}, *leases)

    def revoke_lease(self) -> Answer:
        leases = self.expectations.certainly("lease", ALIVE, RENEWED)
        if not leases:
            return self.borrow()
        lease = self._dice.choice(leases)
        return self._change(("lease", lease), GONE, "POST", "sys/leases/revoke", {"lease_id": lease})

    def write_role(self) -> Answer:
        path, ttl = self._path("auth/cloud/role"), str(self._dice.randrange(100, 1000))
        body = {"bound_locations": "westeurope", "token_ttl": ttl}
        return self._change(("login role", path), ttl, "POST", path, body)

    def delete_role(self) -> Answer:
        path = self._path("auth/cloud/role")
        return self._change(("login role", path), GONE, "DELETE", path)

    def write_engine_role(self) -> Answer:
        """What the role refers to is looked up at the provider."""
        path, ttl = self._path("cloud/roles"), str(self._dice.randrange(100, 1000))
        roles = f'[{{"role_name": "Reader", "scope": "/subscriptions/{self._deployment.form["subscription_id"]}"}}]'
        return self._change(("engine role", path), ttl, "POST", path, {"azure_roles": roles, "ttl": ttl})

    def write_policy(self) -> Answer:
        path = self._path("sys/policies/acl")
        policy = f'path "some/{self._dice.random()}" {{ capabilities = ["read"] }}'
        return self._change(("policy", path), policy, "POST", path, {"policy": policy})

    def enable(self) -> Answer:
        """A mount of either kind; a failure because it is enabled already is one like any other."""
        path = self._path(self._dice.choice(("sys/auth", "sys/mounts")))
        return self._change(("mount", path), ALIVE, "POST", path, {"type": "cloud"})

    def disable(self) -> Answer:
        path = self._path(self._dice.choice(("sys/auth", "sys/mounts")))
        return self._change(("mount", path), GONE, "DELETE", path)

    def rotate_root(self) -> Answer:
        return self._send("rotate root", "POST", "cloud/rotate-root", {"force": True})

    # The comparison

    def differences(self, service: httpx.Client, *, settled: bool) -> Iterator[str]:
        """Where the service has another state than it acknowledged.

        What ends in the background is compared only once that has had its time (`settled`).
        """
        for (kind, name), states in self.expectations.items():
            if states == {GONE} and kind == "lease" and not settled:
                continue
            found = OBSERVERS[kind](service, name)
            if found not in states:
                yield f"{kind} {name if kind != 'token' else '(a token)'}: {found}, not {' or '.join(sorted(states))}"

    # Below

    def _path(self, folder: str) -> str:
        return f"{folder}/{self._prefix}-{self._dice.randrange(NAMES)}"

    def _change(self, thing: Thing, state: str, method: str, path: str, body: object = None, *ending: Thing) -> Answer:
        """A request that brings a thing into a state, and ends some others."""
        self.expectations.begin(thing, state)
        for other in ending:
            self.expectations.begin(other, GONE)
        answer = self._send(f"{method} {thing[0]}", method, path, body)
        if _is_done(answer):
            self._acknowledge(thing, state)
            for other in ending:
                self._acknowledge(other, GONE)
        return answer

    def _acknowledge(self, thing: Thing, state: str) -> None:
        self.expectations.acknowledge(thing, state)

    def _send(self, operation: str, method: str, path: str, body: object = None, token: str | None = None) -> Answer:
        assert self._service is not None
        headers = {} if token is None else {"X-Service-Token": token}
        try:
            answer = self._service.request(method, path, json=body, headers=headers)
        except httpx.TransportError:
            self.statuses[f"{operation}: 0"] += 1
            return None
        self.statuses[f"{operation}: {answer.status_code}"] += 1
        assert answer.status_code != HTTPStatus.INTERNAL_SERVER_ERROR, answer.text
        return answer


OPERATIONS: Final[tuple[Callable[[ServiceClient], Answer], ...]] = (
    *[ServiceClient.log_in] * 4,
    *[ServiceClient.borrow] * 6,
    ServiceClient.renew_token,
    ServiceClient.renew_lease,
    ServiceClient.revoke_token,
    ServiceClient.revoke_lease,
    *[ServiceClient.write_role] * 2,
    ServiceClient.delete_role,
    ServiceClient.write_engine_role,
    *[ServiceClient.write_policy] * 2,
    ServiceClient.enable,
    ServiceClient.disable,
    ServiceClient.rotate_root,
)
"""What a client does next is one of these; what should happen more often is here more often."""


def _is_done(answer: Answer) -> TypeGuard[httpx.Response]:
    return answer is not None and answer.is_success


def _data(service: httpx.Client, path: str) -> Any:
    """The data of a read; `None` when there is nothing."""
    answer = service.get(path)
    if answer.status_code in (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND):
        return None
    answer.raise_for_status()
    return answer.json()["data"]


def _observe_token(service: httpx.Client, text: str) -> str:
    answer = service.get("auth/token/lookup-self", headers={"X-Service-Token": text})
    if answer.status_code == HTTPStatus.FORBIDDEN:
        return GONE
    answer.raise_for_status()
    return _life(answer.json()["data"]["ttl"])


def _observe_lease(service: httpx.Client, lease_id: str) -> str:
    answer = service.post("sys/leases/lookup", json={"lease_id": lease_id})
    if answer.status_code in (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND):
        return GONE
    answer.raise_for_status()
    data = answer.json()["data"]
    return GONE if data.get("revoking") else _life(data["ttl"])


def _life(seconds: int) -> str:
    return RENEWED if seconds > LONG / 2 else ALIVE


def _observe_ttl(field: str) -> Callable[[httpx.Client, str], str]:
    def observe(service: httpx.Client, path: str) -> str:
        data = _data(service, path)
        return GONE if data is None else str(data[field])

    return observe


def _observe_policy(service: httpx.Client, path: str) -> str:
    data = _data(service, path)
    return GONE if data is None else str(data["policy"])


def _observe_mount(service: httpx.Client, path: str) -> str:
    return GONE if _data(service, path) is None else ALIVE


OBSERVERS: Final[dict[str, Callable[[httpx.Client, str], str]]] = {
    "token": _observe_token,
    "lease": _observe_lease,
    "login role": _observe_ttl("token_ttl"),
    "engine role": _observe_ttl("ttl"),
    "policy": _observe_policy,
    "mount": _observe_mount,
}
"""How the state of a thing is found out."""
