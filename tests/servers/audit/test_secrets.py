"""What both servers write to an audit device: an entry before and after each kind of request, and no secret in them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Set
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.waiting import PATIENT

from .test_devices import RUNTIMES, TOKEN, Service, furnish, lines_of, serving

pytestmark = pytest.mark.one_server

HIDDEN: Final = {"access_token", "accessor", "client_secret", "client_token", "jwt", "token", "wrapped_accessor"}
"""The members of bodies that hold secrets, or what is hashed as they are."""

OPERATIONS: Final = {"GET": "read", "LIST": "list"}
CANARY: Final = "c4n4ry-s3cret"
NUMBER: Final = 4_815_162_342_108


class Recorded:
    """A server with an audit file. It notes each request that it is asked for, and the secrets of both bodies."""

    def __init__(self, service: Service, path: Path) -> None:
        self.path = path
        self.secrets = {TOKEN, CANARY, str(NUMBER)}
        self.asked: set[tuple[str, str]] = set()
        self._http = service.http
        assert service.enable("file", file_path=str(path)).status_code == 204
        self._http.event_hooks = {"response": [self._note]}

    def ask(
        self, method: str, path: str, body: Any = None, *, status: int = 200, token: str = TOKEN, ttl: str = ""
    ) -> Any:
        """The body of an answer that must have a status. `ttl` asks for a wrapped one."""
        headers = {"x-vault-token": token} | ({"x-vault-wrap-ttl": ttl} if ttl else {})
        answer = self._http.request(method, path, json=body, headers=headers)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    def _note(self, answer: httpx.Response) -> None:
        answer.read()
        request = answer.request
        self.asked.add((OPERATIONS.get(request.method, "update"), request.url.path.removeprefix("/v1/")))
        for content in (request.content, answer.content):
            self.secrets |= set(secrets_in(json.loads(content))) if content else set()


def secrets_in(value: Any, name: str = "", names: Set[str] = HIDDEN) -> Iterator[str]:
    """The texts of a body that must not be in an entry: those of the members of these names."""
    if isinstance(value, str) and value and name in names:
        yield value
    members: Iterable[tuple[str, Any]] = ()
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list):
        members = [(name, item) for item in value]
    for each, item in members:
        yield from secrets_in(item, each, names)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_no_kind_of_request_writes_a_secret(runtime: str, tmp_path: Path) -> None:
    with serving(runtime) as service:
        recorded = Recorded(service, tmp_path / "audit.log")
        cloud = next(line for line in service.running.introduction if line.startswith("provider simulator: "))
        simulator = cloud.removeprefix("provider simulator: ")
        login = furnish(service, simulator)
        ask_for_everything(recorded, login, httpx.get(f"{simulator}/simulator/world", **PATIENT).json())
        assert len(recorded.secrets) > 15
        text = recorded.path.read_text()
        assert [secret for secret in recorded.secrets if secret in text] == []
        requests, responses = told(recorded.path, "request"), told(recorded.path, "response")
        assert requests - {("update", "sys/audit/test")} == responses == recorded.asked
        show_client_secrets(recorded)


def told(path: Path, kind: str) -> set[tuple[str, str]]:
    """The operations and paths of all entries of a kind."""
    requests = [line["request"] for line in lines_of(path) if line["type"] == kind]
    return {(request["operation"], request["path"]) for request in requests}


def ask_for_everything(recorded: Recorded, login: Any, world: Any) -> None:
    """Every kind of request that takes or gives a secret, and a few that fail."""
    ask = recorded.ask
    token = ask("POST", "auth/cloud/login", login)["auth"]["client_token"]
    for refused in ({"resource_group_name": "other"}, {"jwt": login["jwt"][:-8] + "AAAAAAAA"}):
        ask("POST", "auth/cloud/login", {**login, **refused}, status=403)
    ask("GET", "auth/token/lookup-self", status=403, token=CANARY)
    assert ask("POST", "auth/cloud/explain", login)["data"]["checks"]
    application, other = world["applications"][:2]
    config = {name: application[name] for name in ("client_id", "client_secret")}
    config |= {"tenant_id": world["tenant"], "subscription_id": world["subscriptions"][0]}
    ask("POST", "cloud/config", {**config, "unknown": {"deep": [CANARY, NUMBER]}})
    ask("POST", "cloud/roles/web", {"application_object_id": other["object_id"], "ttl": "1h"}, status=204)
    lease = ask("GET", "cloud/creds/web")
    assert lease["data"]["client_secret"]
    ask("POST", "cloud/roles/web", {"token_scopes": "https://graph.microsoft.com/.default"}, status=204)
    tokens = [ask(method, "cloud/token/web")["data"]["access_token"] for method in ("GET", "POST")]
    assert tokens[0] == tokens[1]
    ask("PUT", "sys/leases/renew", {"lease_id": lease["lease_id"], "increment": 600})
    ask("PUT", "sys/leases/revoke", {"lease_id": lease["lease_id"]}, status=204)
    ask("POST", "auth/token/renew-self", {"increment": 600}, token=token)
    assert ask("LIST", "auth/token/accessors")["data"]["keys"]
    policy = f'path "secret/{CANARY}" {{ capabilities = ["read"] }}'
    ask("PUT", "sys/policies/acl/app", {"policy": policy}, status=204)
    ask("GET", "sys/policies/acl/app")
    for path in ("cloud/creds/web", "cloud/token/web", "auth/token/lookup-self"):
        wrapped = ask("GET", path, ttl="60")["wrap_info"]["token"]
        assert ask("POST", "sys/wrapping/unwrap", {"token": wrapped})["data"]
    wrapped = ask("POST", "sys/wrapping/wrap", {"anything": CANARY}, ttl="60")["wrap_info"]["token"]
    ask("POST", "sys/wrapping/lookup", {"token": wrapped})
    ask("POST", "sys/wrapping/unwrap", token=wrapped)
    ask("POST", "sys/wrapping/unwrap", {"token": wrapped}, status=400)
    ask("POST", "auth/token/lookup", {"token": token})
    ask("POST", "auth/token/revoke", {"token": token}, status=204)


def show_client_secrets(recorded: Recorded) -> None:
    """Entries have what a mount is tuned to show: this test would find a secret that is not hashed."""
    recorded.ask("POST", "sys/mounts/cloud/tune", {"audit_non_hmac_response_keys": "client_id"}, status=204)
    shown = recorded.ask("GET", "cloud/creds/web")["data"]["client_id"]
    assert shown in recorded.path.read_text()
