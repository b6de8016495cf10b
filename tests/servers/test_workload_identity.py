"""Root credentials over real sockets: a service without any secret, and one that rotates its own every few seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from cloudid_servers.provider_simulator import Running as Cloud
from cloudid_servers.provider_simulator import Simulator, start
from cloudid_servers.provider_simulator.world.objects import Application
from tests.waiting import PATIENT, wait_until

from .running import SERVERS, Running

pytestmark = pytest.mark.one_server

ROOT: Final = "root-of-workload-identity"
RESOURCE: Final = "https://management.azure.com/"
AUDIENCE: Final = "api://AzureADTokenExchange"
HOST: Final = "host"
"""The machine whose metadata service the server could use."""


class Site:
    """A server and its simulated cloud, with the usual requests."""

    def __init__(self, cloud: Cloud, server: Running, client: httpx.Client) -> None:
        self.cloud_url = cloud.url
        self.simulator = cloud.simulator
        self.server = server
        self.client = client
        self.world = self.cloud("GET", "world")
        self.application = self.world["applications"][0]
        self.logins = 0

    def cloud(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.client.request(method, f"{self.cloud_url}/simulator/{path}", json=body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def ask(self, method: str, path: str, body: Any = None, token: str = ROOT) -> httpx.Response:
        headers = {"x-service-token": token} if token else {}
        return self.client.request(method, f"{self.server.url}/v1/{path}", json=body, headers=headers)

    def must(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.ask(method, path, body)
        assert answer.is_success, (path, answer.status_code, answer.text)
        return answer.json() if answer.content else None

    def configure(self, **credential: Any) -> None:
        """The auth method, and a role for every machine of the cloud."""
        config = {"tenant_id": self.world["tenant"], "resource": RESOURCE, "client_id": self.application["client_id"]}
        self.must("POST", "auth/cloud/config", {**config, "max_retries": 0, **credential})
        self.must("POST", "auth/cloud/role/all", {"bound_subscription_ids": self.world["subscriptions"]})

    def log_in(self) -> httpx.Response:
        """The login of a machine that was never seen: it makes a call to the provider."""
        return self.ask("POST", "auth/cloud/login", self.credentials(), token="")

    def credentials(self) -> dict[str, str]:
        """The form of a login of a new machine."""
        self.logins += 1
        name = f"machine-{self.logins}"
        machine = self.cloud("POST", "machines", {"name": name})
        path = f"/machines/{name}/metadata/identity/oauth2/token"
        query = {"api-version": "2018-02-01", "resource": RESOURCE}
        identity = self.client.get(f"{self.cloud_url}{path}", params=query, headers={"metadata": "true"}).json()
        return {
            "role": "all",
            "jwt": identity["access_token"],
            "subscription_id": machine["subscription"],
            "resource_group_name": machine["resource_group"],
            "vm_name": name,
        }

    @property
    def status(self) -> Any:
        return self.must("GET", "auth/cloud/rotation")["data"]

    @property
    def host_calls(self) -> int:
        """How often the metadata service of the server's own machine was called."""
        calls: int = self.cloud("GET", "world")["metadata_calls"].get(HOST, 0)
        return calls

    def federation(self, **changes: str) -> dict[str, str]:
        accessor = self.must("GET", "sys/auth")["data"]["cloud/"]["accessor"]
        right = {
            "client_id": self.application["client_id"],
            "issuer": f"{self.server.url}/v1/identity/oidc/plugins",
            "subject": f"plugin-identity:root:auth:{accessor}",
            "audience": AUDIENCE,
        }
        return {**right, **changes}

    def federate(self, **changes: str) -> None:
        """Trust the service, and nobody else."""
        for federation in self.cloud("GET", "federations"):
            self.cloud("DELETE", f"federations/{federation['id']}")
        self.cloud("POST", "federations", self.federation(**changes))

    def renew_configuration(self) -> None:
        """Another version of the configuration: no access token is reused."""
        self.must("POST", "auth/cloud/config", {"identity_token_ttl": 3600})

    @property
    def root(self) -> Application:
        found = self.simulator.world.directory.application_of(self.application["client_id"])
        assert found is not None
        return found


@contextmanager
def site(name: str, folder: Path, service: str = "", **environment: str) -> Iterator[Site]:
    """A server whose own machine's metadata service is switched off."""
    with start(Simulator()) as cloud:
        httpx.post(f"{cloud.url}/simulator/machines", json={"name": HOST}, **PATIENT).raise_for_status()
        off = [{"match": {"path": f"/machines/{HOST}/"}, "times": None, "action": {"drop": True}}]
        httpx.post(f"{cloud.url}/simulator/faults", json=off, **PATIENT).raise_for_status()
        settings = folder / f"{name}.toml"
        settings.write_text(f'[server]\nmetadata_address = "{cloud.url}/machines/{HOST}"\n[service]\n{service}\n')
        arguments: tuple[str, ...] = ("--dev", "--listen", "127.0.0.1:0", "--root-token", ROOT, "--provider", cloud.url)
        arguments += ("--settings", str(settings))
        with (
            Running(f"cloudid_servers.{name}", *arguments, environment=environment) as server,
            httpx.Client(**PATIENT) as client,
        ):
            yield Site(cloud, server, client)


@contextmanager
def both(folder: Path, service: str = "") -> Iterator[tuple[Site, Site]]:
    """Both servers, for tests that watch them for a while: they wait once."""
    with site(SERVERS[0], folder, service) as first, site(SERVERS[1], folder, service) as second:
        yield first, second


each_server = pytest.mark.parametrize("name", SERVERS)


@each_server
def test_without_any_secret_a_machine_logs_in_and_every_mismatch_is_told(name: str, tmp_path: Path) -> None:
    """No secret, no metadata service; then one thing after the other is wrong, and its code is told."""
    with site(name, tmp_path) as here:
        here.configure(identity_token_audience=AUDIENCE, identity_token_ttl=600)
        here.federate()
        assert here.log_in().status_code == 200
        assert here.status["credential_source"] == "identity_token"
        assert here.status["last_error"] == ""
        assert [seen["lifetime"] for seen in here.cloud("GET", "world")["assertions"]] == [600]
        wrong = {
            "issuer": ("https://other.example", "AADSTS700211"),
            "subject": ("plugin-identity:root:auth:auth_cloud_00000000", "AADSTS700213"),
            "audience": ("api://other", "AADSTS700212"),
        }
        for field, (value, code) in wrong.items():
            here.federate(**{field: value})
            here.renew_configuration()
            answer = here.log_in()
            assert (answer.status_code, answer.json()["codes"]) == (502, ["provider_assertion_refused"]), field
            assert code in here.status["last_error"], field
        here.cloud("DELETE", f"federations/{here.cloud('GET', 'federations')[0]['id']}")
        here.renew_configuration()
        assert here.log_in().status_code == 502
        assert "AADSTS70021 " in here.status["last_error"]
        here.federate()
        here.renew_configuration()
        assert here.log_in().status_code == 200
        assert here.status["last_error"] == ""
        assert here.host_calls == 0
        _, log = here.server.stop()
        for _, code in wrong.values():
            assert code in log
        assert "eyJ" not in log


@each_server
def test_expired_tokens_and_unknown_keys_are_told(name: str, tmp_path: Path) -> None:
    with site(name, tmp_path) as here:
        here.configure(identity_token_audience=AUDIENCE)
        here.federate()
        assert here.log_in().status_code == 200
        here.simulator.world.issuer_keys = {
            issuer: type(keys)({}, keys.fresh_until) for issuer, keys in here.simulator.world.issuer_keys.items()
        }
        here.renew_configuration()
        assert here.log_in().status_code == 502
        assert "AADSTS700027" in here.status["last_error"]
        here.renew_configuration()
        form = here.credentials()
        here.simulator.world.clock_offset = 7200.0  # the provider's clock is two hours ahead
        assert here.ask("POST", "auth/cloud/login", form, token="").status_code == 502
        assert "AADSTS700024" in here.status["last_error"]
        assert here.host_calls == 0


def test_no_login_fails_while_keys_are_rolled_over(tmp_path: Path) -> None:
    """While the provider keeps the documents for their `max-age`."""
    with both(tmp_path, "signing_key_period = 10") as sites:
        for here in sites:
            here.configure(identity_token_audience=AUDIENCE)
            here.federate()
            document = here.ask("GET", "identity/oidc/plugins/.well-known/keys", token="")
            assert document.headers["cache-control"] == "public, max-age=5"
        used: dict[Site, set[str]] = {here: set() for here in sites}

        def have_been_rolled_over() -> bool:
            for here in sites:
                here.renew_configuration()
                answer = here.log_in()
                assert answer.status_code == 200, (answer.text, here.status)
                used[here] = {seen["kid"] for seen in here.cloud("GET", "world")["assertions"]}
            time.sleep(1)
            return all(len(keys) >= 2 for keys in used.values())

        wait_until(have_been_rolled_over)
        for here, keys in used.items():
            published = {key["kid"] for key in here.must("GET", "identity/oidc/plugins/.well-known/keys")["keys"]}
            assert keys <= published


def test_a_short_period_never_leaves_the_service_without_a_secret(tmp_path: Path) -> None:
    """A period of five seconds, until there have been two secrets that the service has made."""
    with both(tmp_path) as sites:
        for here in sites:
            here.configure(client_secret=here.application["client_secret"], rotation_period=5)
        seen: dict[Site, set[str]] = {here: set() for here in sites}

        def have_been_rotated() -> bool:
            for here in sites:
                alive = {password.secret for password in here.root.passwords}
                assert 1 <= len(alive) <= 8
                seen[here] |= alive
                here.renew_configuration()
                assert here.log_in().status_code == 200
            time.sleep(0.5)
            return all(
                len(seen[here]) >= 3
                and here.application["client_secret"] not in [password.secret for password in here.root.passwords]
                for here in sites
            )

        wait_until(have_been_rotated)
        for here in sites:
            status = here.status
            assert status["last_rotation"]
            assert status["next_rotation"]
            assert here.host_calls == 0


@each_server
def test_the_federated_token_file_is_read_anew(name: str, tmp_path: Path) -> None:
    """What another issuer wrote for this workload; a file that cannot be read is named."""
    file = tmp_path / "token"
    with site(name, tmp_path, AZURE_FEDERATED_TOKEN_FILE=str(file)) as here:
        here.configure()
        assert here.status["credential_source"] == "federated_token_file"
        assert here.log_in().json()["codes"] == ["credential_unusable"]
        assert "AZURE_FEDERATED_TOKEN_FILE" in here.status["last_error"]
        file.write_text("no.token.yet\n")
        assert here.log_in().status_code == 502
        assert "AADSTS50027" in here.status["last_error"] or "AADSTS70021" in here.status["last_error"]
        assert here.host_calls == 0
