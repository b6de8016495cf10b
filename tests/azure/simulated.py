"""A simulated cloud that is asked over HTTP, with the objects that the recordings are about."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from itertools import count
from typing import Any, Final
from urllib.parse import quote, urlencode

import jwt
from attrs import field, frozen

from cloudid_core.credentials.application_keys import self_signed
from cloudid_core.effects import HttpRequest
from cloudid_core.testing.rsa_keys import private_key_pem
from cloudid_core.values import Secret
from cloudid_servers.provider_simulator import Simulator, start
from cloudid_servers.provider_simulator.identity.assertions import JWT_BEARER
from cloudid_servers.web import send
from tests.waiting import PATIENCE

ABSENT: Final = "00000000-0000-4000-8000-00000000dead"
NEW: Final = "88888888-0000-4000-8000-000000000001"
GRAPH: Final = "https://graph.microsoft.com/.default"
MANAGEMENT: Final = "https://management.azure.com/.default"
READER: Final = "acdd72a7-3385-48ef-bd42-f606fba81ae7"
AUTHORIZATION: Final = "/providers/Microsoft.Authorization"
ISSUER: Final = "https://token.actions.example"
SUBJECT: Final = "repo:o/r:environment:P"
EXCHANGE: Final = "api://AzureADTokenExchange"
FEDERATED: Final = {"name": "n", "issuer": ISSUER, "subject": "s", "audiences": [EXCHANGE], "description": "d"}
VERSIONS: Final = {
    "Compute": "2026-04-01",
    "ManagedIdentity": "2024-11-30",
    "Authorization": "2022-04-01",
    "Web": "2022-09-01",
}
"""API versions by the provider in the path."""
KEY: Final = private_key_pem("key 0 of a world")


@frozen
class Answer:
    """A status, headers with names in lower case, and the JSON of a body."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: Any


class Cloud:
    """A simulated cloud in its initial state."""

    def __init__(self, url: str, simulator: Simulator) -> None:
        self.url = url
        self.simulator = simulator
        self.names = count(1)
        self._tokens: dict[str, str] = {}

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Ask anything; a body is JSON, or a form where the path is of the token endpoint."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        content = b""
        if isinstance(body, dict) and "/oauth2/" in path:
            sent["content-type"], content = "application/x-www-form-urlencoded", urlencode(body).encode()
        elif body is not None:
            sent["content-type"] = "application/json"
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = HttpRequest(method, self.url + quote(path, safe="/?&=%"), sent, content)
        answer = send(request, PATIENCE, through_proxies=False)
        return Answer(answer.status, answer.headers, json.loads(answer.body) if answer.body else None)

    def graph(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        return self.ask(method, f"/graph/v1.0{path}", body, authorization=self.bearer(GRAPH), **headers)

    def arm(self, method: str, path: str, body: Any = None, bearer: str = "") -> Answer:
        provider = re.findall(r"/providers/Microsoft\.(\w+)", path)
        version = VERSIONS.get(provider[-1] if provider else "", "2022-09-01")
        target = f"/arm{path}{'&' if '?' in path else '?'}api-version={version}"
        return self.ask(method, target, body, authorization=bearer or self.bearer(MANAGEMENT))

    def sign_in(self, scope: str = MANAGEMENT, tenant: str = "", **form: str | None) -> Answer:
        fields: dict[str, str | None] = {
            "grant_type": "client_credentials",
            "client_id": self.service["client_id"],
            "client_secret": self.service["client_secret"],
            "scope": scope,
            **form,
        }
        given = {name: value for name, value in fields.items() if value is not None}
        return self.ask("POST", f"/login/{tenant or self.tenant}/oauth2/v2.0/token", given)

    def assert_identity(self, claims: dict[str, Any], header: dict[str, str] | None = None) -> Answer:
        """Sign in with an assertion, signed with a key that is not published."""
        text = jwt.encode(
            {"exp": 1 << 33, "iat": 0, **claims}, KEY, "RS256", {"kid": "k"} if header is None else header
        )
        return self.sign_in(client_secret=None, client_assertion_type=JWT_BEARER, client_assertion=text)

    def federate(self, issuer: str = ISSUER) -> None:
        """Let the service's application trust an issuer."""
        trusted = {"issuer": issuer, "subject": SUBJECT, "audience": EXCHANGE}
        self.ask("POST", "/simulator/federations", {"client_id": self.service["client_id"], **trusted})

    def bearer(self, scope: str) -> str:
        if scope not in self._tokens:
            self._tokens[scope] = self.sign_in(scope).body["access_token"]
        return f"Bearer {self._tokens[scope]}"

    @cached_property
    def world(self) -> Any:
        return self.ask("GET", "/simulator/world").body

    @property
    def tenant(self) -> str:
        return str(self.world["tenant"])

    @property
    def service(self) -> Any:
        return self.world["applications"][0]

    @property
    def subscription(self) -> str:
        return str(self.world["subscriptions"][0])

    @property
    def scope(self) -> str:
        return f"/subscriptions/{self.subscription}/resourceGroups/prod"

    @cached_property
    def application(self) -> Any:
        """An application with everything that its document may show."""
        made = self.new_application(keyCredentials=[certificate()], tags=["t"])
        for name in ("one", None):
            self.graph("POST", f"/applications/{made['id']}/addPassword", {"passwordCredential": {"displayName": name}})
        return self.graph("GET", f"/applications/{made['id']}").body

    def new_application(self, **properties: Any) -> Any:
        return self.graph("POST", "/applications", {"displayName": f"made-{next(self.names)}", **properties}).body

    @cached_property
    def principal(self) -> Any:
        return self.graph("POST", "/servicePrincipals", {"appId": self.application["appId"]}).body

    @property
    def group(self) -> str:
        return str(self.world["groups"][0]["id"])

    @cached_property
    def member(self) -> str:
        """The id of a principal that is in the group."""
        self.graph("POST", f"/groups/{self.group}/members/$ref", self.link(self.principal["id"]))
        return str(self.principal["id"])

    def link(self, object_id: str) -> dict[str, str]:
        return {"@odata.id": f"{self.url}/graph/v1.0/directoryObjects/{object_id}"}

    @cached_property
    def api(self) -> Any:
        """An API that gives roles to applications."""
        found = self.graph("GET", "/servicePrincipals?$filter=displayName eq 'reporting'")
        return found.body["value"][0]

    @cached_property
    def app_role(self) -> dict[str, str]:
        role = self.api["appRoles"][0]["id"]
        return {"principalId": self.principal["id"], "resourceId": self.api["id"], "appRoleId": role}

    @cached_property
    def directory_role(self) -> dict[str, str]:
        found = self.graph("GET", "/roleManagement/directory/roleDefinitions").body["value"][0]["id"]
        return {"roleDefinitionId": found, "principalId": self.principal["id"], "directoryScopeId": "/"}

    @property
    def assignment(self) -> dict[str, Any]:
        definition = f"/subscriptions/{self.subscription}{AUTHORIZATION}/roleDefinitions/{READER}"
        principal = {"principalId": self.principal["id"], "principalType": "ServicePrincipal"}
        return {"properties": {"roleDefinitionId": definition, **principal}}

    @property
    def definition(self) -> dict[str, Any]:
        permission = {"actions": ["Microsoft.Compute/*/read"], "notActions": [], "dataActions": ["a/b"]}
        named = {"roleName": "made", "description": "d", "type": "CustomRole"}
        scopes = [f"/subscriptions/{self.subscription}"]
        return {"properties": {**named, "permissions": [permission], "assignableScopes": scopes}}

    def machine(self, name: str = "vm-both") -> Any:
        return next(each for each in self.world["machines"] if each["name"] == name)

    def place_of(self, resource_id: str) -> tuple[str, ...]:
        """The names in a resource id: subscription, group, and those of the resource."""
        before, _, behind = resource_id.partition("/providers/")
        return (*before.split("/")[2::2], *behind.split("/")[2::2])

    @property
    def identity(self) -> str:
        return str(self.world["identities"][0]["resource_id"])

    def stranger(self, scope: str) -> str:
        """The header of an application without rights."""
        other = self.world["applications"][1]
        given = {name: other[name] for name in ("client_id", "client_secret")}
        return f"Bearer {self.sign_in(scope, **given).body['access_token']}"

    def expired(self) -> str:
        claims = {"exp": 1, "nbf": 0, "aud": "https://management.azure.com/", "oid": ABSENT}
        return f"Bearer {self.ask('POST', '/simulator/tokens', {'claims': claims}).body['token']}"


@contextmanager
def cloud() -> Iterator[Cloud]:
    """Serve a new cloud."""
    with start(Simulator(7)) as running:
        yield Cloud(running.url, running.simulator)


def certificate(**properties: Any) -> dict[str, Any]:
    """Describe a certificate as the vendor's tools send one."""
    der = self_signed(Secret(KEY), 1, 1_700_000_000, 4_000_000_000)
    sent = {"type": "AsymmetricX509Cert", "usage": "Verify", "key": base64.b64encode(der).decode()}
    return {"@odata.type": "#microsoft.graph.keyCredential", "displayName": None, **sent, **properties}
