"""A tenant that forbids passwords, over real sockets: tokens are given, and then everything is searched for secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from cloudid_core.effects import HttpResponse
from cloudid_servers.provider_simulator import Running as Cloud
from cloudid_servers.provider_simulator import Simulator, start
from tests.waiting import PATIENT

from .running import SERVERS, Running, initialise

pytestmark = pytest.mark.one_server

ISSUER: Final = "https://id.test"
AUDIENCE: Final = "api://AzureADTokenExchange"
SCOPE: Final = "https://storage.azure.com/.default"
SETTINGS: Final = """
[server]
listen = "127.0.0.1:0"
log_level = "debug"
[service]
issuer = "{issuer}"
[clouds.CloudPublicCloud]
login = "{cloud}/login"
resource_manager = "{cloud}/arm"
directory = "{cloud}/graph"
[audit.main]
type = "file"
file_path = "audit.log"
"""
FORBIDDEN: Final = {
    "match": {"path": ".*/addPassword"},
    "times": None,
    "action": {"status": 400, "code": "CredentialTypeNotAllowedAsPerAppPolicy"},
}


@pytest.mark.parametrize("server", SERVERS)
def test_tokens_are_given_and_no_secret_is_anywhere(server: str, tmp_path: Path) -> None:
    settings = tmp_path / "cloudid.toml"
    with start(Simulator()) as cloud, httpx.Client(**PATIENT) as client:
        settings.write_text(SETTINGS.format(issuer=ISSUER, cloud=cloud.url))
        client.headers["X-Vault-Token"] = initialise(server, settings)
        with Running(f"cloudid_servers.{server}", "--settings", str(settings)) as running:
            connect(cloud, running, client)
            client.post(f"{cloud.url}/simulator/faults", json=[FORBIDDEN]).raise_for_status()
            proofs = ("federated_credential", "certificate")
            answers = {proof: give_token(running, client, proof) for proof in proofs}
            assert ask(running, client, "POST", "cloud/roles/web", {"proof": "secret"}).is_success
            assert ask(running, client, "GET", "cloud/token/web").status_code == 502
            cloud.simulator.world.faults.clear()
            answers["secret"] = give_token(running, client, "secret")
            code, log = running.stop()
            assert code == 0
        places = {
            "log": log.encode(),
            "answers": "".join(answers.values()).encode(),
            "cloud": "".join(secrets_of(cloud)).encode(),
            **{path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()},
        }
        assert {"audit.log", "cloudid.sqlite"} <= set(places)
        for token in answers.values():
            assert found(token, places) == ["answers"]
        (secret,) = secrets_of(cloud)
        assert found(secret, places) == ["cloud"]
        assert found("PRIVATE KEY", places) == []
        assert found("cloud/token/web", places) == ["audit.log", "log"]


def connect(cloud: Cloud, running: Running, client: httpx.Client) -> None:
    """The mount proves itself by identity tokens, and the cloud reads their keys at the service."""

    def fetch(url: str) -> HttpResponse:
        answer = client.get(url.replace(ISSUER, running.url))
        return HttpResponse(answer.status_code, dict(answer.headers), answer.content)

    cloud.simulator.world.fetch = fetch
    world = client.get(f"{cloud.url}/simulator/world").json()
    accessor = ask(running, client, "GET", "sys/mounts").json()["data"]["cloud/"]["accessor"]
    client_id = world["applications"][0]["client_id"]
    federation = {
        "client_id": client_id,
        "issuer": f"{ISSUER}/v1/identity/oidc/plugins",
        "subject": f"plugin-identity:root:secret:{accessor}",
        "audience": AUDIENCE,
    }
    client.post(f"{cloud.url}/simulator/federations", json=federation).raise_for_status()
    config = {
        "tenant_id": world["tenant"],
        "subscription_id": world["subscriptions"][0],
        "client_id": client_id,
        "identity_token_audience": AUDIENCE,
    }
    ask(running, client, "POST", "cloud/config", config).raise_for_status()
    role = {"application_object_id": world["applications"][1]["object_id"], "token_scopes": [SCOPE]}
    ask(running, client, "POST", "cloud/roles/web", role).raise_for_status()


def give_token(running: Running, client: httpx.Client, proof: str) -> str:
    ask(running, client, "POST", "cloud/roles/web", {"proof": proof}).raise_for_status()
    answer = ask(running, client, "GET", "cloud/token/web")
    answer.raise_for_status()
    token: str = answer.json()["data"]["access_token"]
    return token


def ask(running: Running, client: httpx.Client, method: str, path: str, body: Any = None) -> httpx.Response:
    return client.request(method, f"{running.url}/v1/{path}", json=body)


def secrets_of(cloud: Cloud) -> list[str]:
    """The texts of the passwords that the service has made."""
    made = {each.id for each in cloud.simulator.world.ledger.entries if each.kind == "password"}
    applications = cloud.simulator.world.directory.applications.all()
    return [each.secret for one in applications for each in one.passwords if each.key_id in made]


def found(text: str, places: dict[str, bytes]) -> list[str]:
    return sorted(name for name, content in places.items() if text.encode() in content)
