"""A simulated cloud under test: a clock that stands still, and short ways to ask."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from cloudid_core.effects import HttpRequest, HttpResponse
from cloudid_servers.provider_simulator import Answer, Simulator

BASE: Final = "http://cloud.test"
NOON: Final = 1_800_000_000.0
MANAGEMENT: Final = "https://management.azure.com/"
GRAPH: Final = "https://graph.microsoft.com"
METADATA: Final = {"Metadata": "true"}
UPSERT: Final = {"Prefer": "create-if-missing"}
NAMED: Final = "/applications(uniqueName='our-key')"
AUTHORIZATION: Final = "/providers/Microsoft.Authorization"
ASSIGNMENT: Final = f"{AUTHORIZATION}/roleAssignments/11111111-1111-4111-8111-111111111111"
READER: Final = f"{AUTHORIZATION}/roleDefinitions/acdd72a7-3385-48ef-bd42-f606fba81ae7"


class Cloud:
    """Asks a simulator in-process."""

    def __init__(self, seed: int = 0) -> None:
        self.simulator = Simulator(seed, BASE, lambda: NOON)
        self.world = self.json("GET", "/simulator/world")

    def answer(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Answer:
        url = f"{BASE}{path}" + (f"?{urlencode(query)}" if query else "")
        return self.simulator.handle(HttpRequest(method, url, headers or {}, body))

    def ask(self, method: str, path: str, body: Any = None, query: Mapping[str, str] | None = None) -> HttpResponse:
        return self.answer(method, path, b"" if body is None else json.dumps(body).encode(), query=query).response

    def json(self, method: str, path: str, body: Any = None, query: Mapping[str, str] | None = None) -> Any:
        """The body of an answer that must be a success."""
        return read(self.ask(method, path, body, query), 200)

    def machine(self, name: str) -> Any:
        return next(m for m in self.json("GET", "/simulator/world")["machines"] if m["name"] == name)

    def create(self, name: str, **fields: Any) -> Any:
        return read(self.ask("POST", "/simulator/machines", {"name": name, **fields}), 201)

    def sign_in(self, **form: str) -> HttpResponse:
        """Ask the token endpoint as the service, for the resource manager."""
        service = self.world["applications"][0]
        fields = {
            "grant_type": "client_credentials",
            "client_id": service["client_id"],
            "client_secret": service["client_secret"],
            "scope": "https://management.core.windows.net//.default",
            **form,
        }
        body = urlencode({name: value for name, value in fields.items() if value}).encode()
        return self.answer("POST", f"/login/{self.world['tenant']}/oauth2/v2.0/token", body).response

    def access_token(self, **form: str) -> str:
        return str(read(self.sign_in(**form), 200)["access_token"])

    def machine_token(self, machine: str, resource: str = MANAGEMENT, **query: str) -> HttpResponse:
        path = f"/machines/{machine}/metadata/identity/oauth2/token"
        query = {"api-version": "2018-02-01", "resource": resource, **query}
        return self.answer("GET", path, headers=METADATA, query=query).response

    def machine_claims(self, machine: str, resource: str = MANAGEMENT, **query: str) -> Any:
        return claims_of(read(self.machine_token(machine, resource, **query), 200)["access_token"])

    def arm(self, path: str, token: str | None = None, version: str = "2022-11-01", **query: str) -> HttpResponse:
        headers = {"Authorization": f"Bearer {token or self.access_token()}"}
        return self.answer("GET", f"/arm{path}", headers=headers, query={"api-version": version, **query}).response

    def arm_list(self, path: str) -> list[Any]:
        """All items of a list, page by page."""
        found, query = [], {"$skiptoken": "0"}
        while query["$skiptoken"]:
            answer = read(self.arm(path, **query), 200)
            found += answer["value"]
            query["$skiptoken"] = (answer.get("nextLink") or "").rpartition("=")[2]
        return found

    def ask_arm(self, method: str, path: str, body: Any = None, token: str | None = None) -> HttpResponse:
        headers = {"Authorization": f"Bearer {token or self.access_token()}"}
        sent = b"" if body is None else json.dumps(body).encode()
        return self.answer(method, f"/arm{path}", sent, headers, {"api-version": "2022-04-01"}).response

    def assign(self, principal: Any, path: str = ASSIGNMENT) -> HttpResponse:
        """Assign a principal the role of readers; `path` is that of the assignment, below the subscription."""
        properties = {"roleDefinitionId": READER, "principalId": principal["id"]}
        return self.ask_arm("PUT", f"{self.subscription}{path}", {"properties": properties})

    def graph(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        token: str | None = None,
    ) -> HttpResponse:
        bearer = token or self.access_token(scope=f"{GRAPH}/.default")
        sent = b"" if body is None else json.dumps(body).encode()
        sent_headers = {"Authorization": f"Bearer {bearer}", **(headers or {})}
        return self.answer(method, f"/graph/v1.0{path}", sent, sent_headers, query).response

    def listed(self, path: str, condition: str) -> list[Any]:
        """What a filter of the directory finds."""
        return list(read(self.graph("GET", path, query={"$filter": condition}), 200)["value"])

    def application(self, display_name: str = "made", **properties: Any) -> Any:
        return read(self.graph("POST", "/applications", {"displayName": display_name, **properties}), 201)

    def principal(self, application: Any) -> Any:
        return read(self.graph("POST", "/servicePrincipals", {"appId": application["appId"]}), 201)

    def password(self, path: str, **properties: Any) -> Any:
        """Add a password to the application or principal at the path."""
        return read(self.graph("POST", f"{path}/addPassword", {"passwordCredential": properties}), 200)

    def behave(self, **fields: Any) -> Any:
        return self.json("POST", "/simulator/behaviour", fields)

    def wait(self, seconds: float) -> None:
        self.json("POST", "/simulator/clock", {"advance": seconds})

    @property
    def subscription(self) -> str:
        """The scope of the first subscription."""
        return f"/subscriptions/{self.world['subscriptions'][0]}"

    def stranger(self, scope: str) -> str:
        """A token of an application that has no rights."""
        other = self.world["applications"][1]
        return self.access_token(client_id=other["client_id"], client_secret=other["client_secret"], scope=scope)


def read(response: HttpResponse, status: int) -> Any:
    """The JSON of an answer that must have this status, without the name of its type."""
    assert response.status == status, response.body
    answer = json.loads(response.body)
    if isinstance(answer, dict):
        answer.pop("@odata.context", None)
    return answer


def claims_of(token: str) -> Any:
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


def code_of(response: HttpResponse, status: int) -> str:
    """The code of an error that must have this status."""
    return str(read(response, status)["error"]["code"])
