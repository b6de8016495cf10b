"""Every operation of both servers completes on the answers of the tables, and Azure's errors give the right code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import httpx
import pytest
from attrs import field, frozen

from cloudid_core.effects import HttpRequest, HttpResponse
from cloudid_core.values.secret import Secret
from cloudid_servers.provider_simulator import APP_ROLES
from cloudid_servers.transcripts import Tenant, record, unlike_the_tables
from tests.engines import EVERYTHING
from tests.servers.cli.shell import Shell, Shown
from tests.servers.running import SERVERS, Running, initialise, wait_until
from tests.servers.story import RESOURCE, login_form
from tests.waiting import PATIENT

from .replay import ISSUER, Form, Replay, Trouble, error_of, replay

SETTINGS: Final = f"""
[server]
listen = "127.0.0.1:0"
store = "store.db"
key_file = "key"
log_format = "json"

[service]
settle_time = 8
fact_max_age = 0
missing_max_age = 0
machine_check = "needed"
issuer = "{ISSUER}"
"""
FORMS: Final = {
    "as recorded": Form(),
    "least, compressed in chunks, behind an empty page": Form(least=True, compressed=True, first_page_empty=True),
}
SCOPES: Final = f"{RESOURCE}/.default".replace("//.", "/.")


@frozen
class Served:
    """A server that has the replaying host for Azure."""

    host: Replay
    running: Running
    client: httpx.Client
    world: Any
    login_secret: str = field(repr=False)
    """The secret of the mount of logins: what two mounts have is not rotated."""

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        return self.client.request(method, f"{self.running.url}/v1/{path}", json=body, headers=headers)

    def must(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.ask(method, path, body)
        assert answer.is_success, (method, path, answer.status_code, answer.text, self.host.unknown)
        return answer.json() if answer.content else None

    @property
    def scope(self) -> str:
        return f"/subscriptions/{self.world['subscriptions'][0]}"

    @property
    def config(self) -> dict[str, Any]:
        root = self.world["applications"][0]
        named = {"tenant_id": self.world["tenant"], "client_id": root["client_id"]}
        return {**named, "client_secret": root["client_secret"], "max_retries": 1, "retry_delay": 1}

    @property
    def other(self) -> Mapping[str, str]:
        """An existing application."""
        found: Mapping[str, str] = self.world["applications"][1]
        return found

    @property
    def app_role(self) -> Mapping[str, str]:
        """A role of the API that the existing application is."""
        api = self.host.simulator.world.directory.principal_of(self.other["client_id"])
        assert api is not None
        return {"resource_id": api.id, "app_role_id": next(iter(APP_ROLES[api.display_name]))}

    def configure(self) -> None:
        own = {"client_secret": self.login_secret, "resource": RESOURCE}
        self.must("POST", "auth/cloud/config", {**self.config, **own})
        roles = {**EVERYTHING, "allowed_directory_roles": ["Directory Readers"], "allowed_app_roles": [self.app_role]}
        subscription = {"subscription_id": self.world["subscriptions"][0]}
        self.must("POST", "cloud/config", {**self.config, **subscription, **roles})

    def revoke_all(self) -> None:
        """Until no lease of the engine is left."""
        wait_until(lambda: self.ask("PUT", "sys/leases/revoke-prefix/cloud", {}).is_success)

    def alive(self) -> list[str]:
        """The kinds of what was made and lives."""
        return [each.kind for each in self.host.simulator.world.ledger.alive()]


@pytest.fixture(scope="module", params=SERVERS)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("replayed")
    with replay() as host:
        (folder / "cloudid.toml").write_text(f"{SETTINGS}\n{host.settings}\n")
        token = initialise(request.param, folder / "cloudid.toml")
        with (
            Running(f"cloudid_servers.{request.param}", "--settings", str(folder / "cloudid.toml")) as running,
            httpx.Client(headers={"X-Service-Token": token}, **PATIENT) as client,
        ):
            host.product = running.url
            world = client.get(f"{host.url}/simulator/world").json()
            served = Served(host, running, client, world, second_secret(host))
            served.configure()
            yield served


Connect: TypeAlias = Callable[[str, str], Shown]
"""`cloudid connect azure` for a mount, with a client secret."""


@pytest.fixture
def connect(
    served: Served, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> Connect:
    cloudid = Shell(served.running.url, monkeypatch, capfd)
    cloudid.set(VAULT_TOKEN=served.client.headers["X-Service-Token"], HOME=str(tmp_path))

    def connect(mount: str, secret: str) -> Shown:
        (tmp_path / "secret").write_text(secret)
        tenant = ["--tenant", served.world["tenant"], "--subscription", served.world["subscriptions"][0]]
        application = ["--client-id", served.config["client_id"], "--client-secret", str(tmp_path / "secret")]
        return cloudid("connect", "azure", mount, *tenant, *application, "--wait", "0", "--format", "json")

    return connect


def second_secret(host: Replay) -> str:
    """Give the service's application another secret."""
    directory, now = host.simulator.world.directory, host.simulator.world.now()
    application = next(each for each in directory.applications.all() if each.display_name == "cloudid-service")
    return directory.add_password(application, "second", now, now + 86_400).secret


@pytest.mark.parametrize("form", FORMS)
def test_every_operation_completes(served: Served, form: str) -> None:
    """And sends nothing that no table has, to no address that no table has."""
    host = served.host
    with host.written(FORMS[form]):
        served.configure()
        check_permissions(served)
        check_logins(served)
        check_credentials(served)
        check_tokens(served)
        check_static(served)
    assert (host.unknown, host.untold) == ([], [])


def check_permissions(served: Served) -> None:
    for mount in ("auth/cloud", "cloud"):
        data = served.must("GET", f"{mount}/permissions?scope={served.scope}")["data"]
        assert {each["granted"] for each in data["features"]} == {True}


def check_logins(served: Served) -> None:
    """Of a machine of each kind, with what Azure knows of the machine."""
    role = {"bound_subscription_ids": served.world["subscriptions"], "bound_locations": ["westus2", "westeurope"]}
    served.must("POST", "auth/cloud/role/all", role)
    for name in ("vm-system", "vm-user", "vm-both", "fleet-uniform", "fleet-flexible", "shop"):
        machine = next(each for each in served.world["machines"] if each["name"] == name)
        form = login_form(served.host.url, machine)
        assert form is not None
        answer = served.ask("POST", "auth/cloud/login", {**form, "role": "all"})
        assert answer.status_code == 200, (name, answer.text, served.host.unknown)


def check_credentials(served: Served) -> None:
    """A service principal with everything that a role can give, by names and by ids; renewed, and revoked."""
    groups = {each["display_name"]: each["id"] for each in served.world["groups"]}
    reader = "/providers/Microsoft.Authorization/roleDefinitions/acdd72a7-3385-48ef-bd42-f606fba81ae7"
    served.must(
        "POST",
        "cloud/roles/all",
        {
            "azure_roles": [
                {"role_name": "Contributor", "scope": served.scope},
                {"role_id": f"{served.scope}{reader}", "scope": f"{served.scope}/resourceGroups/prod"},
            ],
            "azure_groups": [{"group_name": "web-machines"}, {"object_id": groups["batch-machines"]}],
            "directory_roles": [{"role_name": "Directory Readers"}],
            "app_roles": [{"resource_name": "reporting", "app_role_name": "Reports.Read.All"}],
            "permanently_delete": True,
            "tags": ["ours"],
            "ttl": "1h",
        },
    )
    lease = served.must("GET", "cloud/creds/all")
    assert {"application", "principal", "password", "assignment", "membership", "directory_role", "app_role"} <= {
        *served.alive()
    }
    served.must("POST", "sys/leases/renew", {"lease_id": lease["lease_id"], "increment": 600})
    served.must("POST", "sys/leases/revoke", {"lease_id": lease["lease_id"], "sync": True})
    wait_until(lambda: "application" not in served.alive())
    reconciled = served.must("GET", "cloud/reconcile")["data"]
    assert reconciled


def check_tokens(served: Served) -> None:
    """Of a kept application with a secret, with a federated credential and with a certificate; of an existing one."""
    grants = [{"role_name": "Reader", "scope": served.scope}]
    for proof in ("secret", "federated_credential", "certificate"):
        role = {"azure_roles": grants, "persist_app": True, "token_scopes": SCOPES, "proof": proof}
        served.must("POST", f"cloud/roles/{proof}", role)
        assert served.must("GET", f"cloud/token/{proof}")["data"]["access_token"]
        served.must("GET", f"cloud/creds/{proof}")
        served.must("DELETE", f"cloud/roles/{proof}")
    served.must("POST", "cloud/roles/existing", {"application_object_id": served.other["object_id"]})
    lease = served.must("GET", "cloud/creds/existing")["lease_id"]
    served.must("POST", "sys/leases/revoke", {"lease_id": lease, "sync": True})
    served.revoke_all()


def check_static(served: Served) -> None:
    served.must(
        "POST",
        "cloud/static-roles/app",
        {"application_object_id": served.other["object_id"], "rotation_period": "30d"},
    )
    assert served.must("GET", "cloud/static-creds/app")["data"]["client_secret"]
    served.must("DELETE", "cloud/static-roles/app")


DENIED: Final = "provider_permission_denied"
FAILED: Final = "provider_failed"
ASSIGNMENT: Final = "PUT arm .*/roleAssignments/.*"
HTML: Final = b"<html><head><title>Service Unavailable</title></head><body><h1>503</h1></body></html>"
ERRORS: Final[Mapping[str, tuple[str, HttpResponse, str]]] = {
    "the secret is wrong": ("POST login .*", error_of(401, "AADSTS7000215"), "provider_secret_refused"),
    "the application is not there": ("POST login .*", error_of(400, "AADSTS700016"), "provider_application_unknown"),
    "the tenant is not there": ("POST login .*", error_of(400, "AADSTS90002"), "provider_tenant_unknown"),
    "no right to assign": (ASSIGNMENT, error_of(403, "AuthorizationFailed"), DENIED),
    "no right in the directory": ("PATCH graph .*", error_of(403, "Authorization_RequestDenied"), DENIED),
    "a quota is used up": (ASSIGNMENT, error_of(409, "QuotaExceeded"), "provider_quota_exceeded"),
    "throttled, with a code that is a number": (ASSIGNMENT, error_of(429, "429"), "provider_throttled"),
    "throttled, for so many seconds": (
        "PATCH graph .*",
        HttpResponse(429, {"retry-after": "7", "content-type": "text/html"}, b"<html>Too many</html>"),
        "provider_throttled",
    ),
    "an error of the gateway": (ASSIGNMENT, error_of(504, "GatewayTimeout"), FAILED),
    "an error of a provider": (ASSIGNMENT, error_of(500, "InternalServerError"), FAILED),
    "a page of HTML": ("PATCH graph .*", HttpResponse(503, {"content-type": "text/html"}, HTML), FAILED),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_of_azure_has_the_right_code(served: Served, name: str) -> None:
    call, response, code = ERRORS[name]
    served.configure()
    served.must("POST", "cloud/roles/web", {"azure_roles": [{"role_name": "Reader", "scope": served.scope}]})
    served.configure()  # what was known of access tokens is forgotten
    with served.host.trouble(Trouble(call, response, times=100)):
        answer = served.ask("GET", "cloud/creds/web", **{"x-service-deadline": "3"})  # too short for a retry
    assert answer.headers["x-service-error-code"] == code, answer.text
    assert ("do not repeat me" in answer.text, "<h" in answer.text) == (False, False)
    if "retry-after" in response.headers:
        assert answer.headers["retry-after"] == response.headers["retry-after"]
    ours = {each.headers["client-request-id"] for each in served.host.requests if re.fullmatch(call, _call(each))}
    wait_until(lambda: any(own in served.running.log() for own in ours))


def _call(request: HttpRequest) -> str:
    api, _, path = urlsplit(request.url).path.removeprefix("/").partition("/")
    return f"{request.method} {api} /{path}"


LATE: Final[Mapping[str, tuple[Trouble, ...]]] = {
    "an application is found late": (
        Trouble("POST graph /v1.0/applications/.*/addPassword", error_of(404, "Request_ResourceNotFound"), 2),
        Trouble("PATCH graph /v1.0/servicePrincipals.*", error_of(400, "Request_BadRequest"), 1),
        Trouble("POST graph /v1.0/servicePrincipals", error_of(403, "Authorization_RequestDenied"), 1),
    ),
    "a principal is found late": (Trouble(ASSIGNMENT, error_of(400, "PrincipalNotFound"), 2),),
    "changes at the same time": (
        Trouble("POST graph .*/addPassword", error_of(409, "Directory_ConcurrencyViolation"), 2),
        Trouble("DELETE graph /v1.0/applications/.*", error_of(409, "Directory_ConcurrencyViolation"), 1),
    ),
}


@pytest.mark.parametrize("name", LATE)
def test_what_is_late_at_azure_is_waited_for(served: Served, name: str) -> None:
    served.configure()
    served.must("POST", "cloud/roles/web", {"azure_roles": [{"role_name": "Reader", "scope": served.scope}]})
    troubles = LATE[name]
    with served.host.trouble(*troubles):
        lease = served.must("GET", "cloud/creds/web")["lease_id"]
        served.must("POST", "sys/leases/revoke", {"lease_id": lease, "sync": True})
    assert all(each.seen for each in troubles)


def test_the_root_secret_is_rotated(served: Served) -> None:
    served.configure()
    served.must("POST", "cloud/rotate-root")
    assert served.must("GET", "cloud/rotation")["data"]["phase"] == "overlapping"
    assert (served.host.unknown, served.host.untold) == ([], [])


@pytest.mark.parametrize("mount", ["cloud", "auth/cloud"])
def test_a_tenant_is_connected_and_its_rights_are_read(served: Served, connect: Connect, mount: str) -> None:
    served.configure()
    kept, secret = served.config["client_secret"], served.login_secret
    shown = connect(mount, kept if mount == "cloud" else secret)
    proof = {row["what"]: row["granted"] for row in shown.json["proof"]}
    assert (shown.code, set(proof.values())) == (0, {"✓"}), shown.out
    assert proof.keys() > {"token", "directory"}, shown.out
    assert (served.host.unknown, served.host.untold) == ([], [])


@pytest.mark.parametrize("mount", ["cloud", "auth/cloud"])
def test_a_tenant_that_refuses_the_secret_leaves_a_mount_as_it_was(
    served: Served, connect: Connect, mount: str
) -> None:
    served.configure()
    before = served.must("GET", f"{mount}/config")["data"]
    with served.host.trouble(Trouble("POST login .*", error_of(401, "AADSTS7000215"), times=100)):
        shown = connect(mount, "refused")
    assert (shown.code, "AADSTS7000215" in shown.err) == (1, True), shown.err
    assert served.must("GET", f"{mount}/config")["data"] == before


def test_everything_that_is_recorded_of_a_tenant_is_in_the_tables(tmp_path: Path) -> None:
    """`connect azure --record`, with everything that its options name, on the answers of the tables."""
    with replay() as host, httpx.Client(**PATIENT) as client:
        world = client.get(f"{host.url}/simulator/world").json()
        root, machines = world["applications"][0], world["machines"]
        tenant = Tenant(
            world["tenant"],
            world["subscriptions"][0],
            "prod",
            root["client_id"],
            Secret(root["client_secret"]),
            tuple(each["resource_id"] for each in machines if each["name"] in ("vm-both", "fleet-flexible", "shop")),
            world["groups"][0]["id"],
            "Directory Readers",
        )
        lines: list[dict[str, Any]] = []
        steps, is_gone = record(tenant, tmp_path / "store", lines.append, host.url)
        assert (steps["credentials"], steps["machine"], is_gone) == (200, 200, True)
        assert steps["federated credential"] == 502, "Azure does not find the documents of the issuer"
        assert (host.unknown, host.untold) == ([], [])
        assert list(unlike_the_tables(lines)) == []
        assert host.simulator.ledger.alive() == []
