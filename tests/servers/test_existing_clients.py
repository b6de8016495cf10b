"""An existing client library against both servers: it needs no more than the address."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import hvac
import pytest
import requests
from attrs import frozen
from hvac import exceptions

from cloudid_servers.provider_simulator import Simulator, start
from tests.waiting import PATIENCE, PATIENT

from .running import SERVERS, Running
from .story import RESOURCE, identity

pytestmark = pytest.mark.one_server

POLICY: Final = 'path "cloud/creds/*" { capabilities = ["read"] }'


@frozen
class Target:
    """A server beside its cloud."""

    url: str
    cloud: str

    def client(self, token: str = "root", **options: Any) -> Any:
        session = requests.Session()
        session.trust_env = False
        return hvac.Client(url=self.url, token=token, session=session, timeout=PATIENCE, **options)

    @property
    def world(self) -> Any:
        return httpx.get(f"{self.cloud}/simulator/world", **PATIENT).json()


@pytest.fixture(scope="module", params=SERVERS)
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    """One running server; each test leaves behind what does not disturb the others."""
    with start(Simulator()) as cloud:
        arguments = ("--dev", "--listen", "127.0.0.1:0", "--root-token", "root", "--provider", cloud.url)
        with Running(f"cloudid_servers.{request.param}", *arguments) as server:
            yield Target(server.url, cloud.url)


@pytest.fixture(scope="module")
def configured(target: Target) -> Target:
    """With a configured authentication method and a role, written by the client."""
    world = target.world
    application = world["applications"][0]
    azure = target.client().auth.azure
    azure.configure(
        tenant_id=world["tenant"],
        resource=RESOURCE,
        environment="AzurePublicCloud",
        client_id=application["client_id"],
        client_secret=application["client_secret"],
        mount_point="cloud",
    )
    azure.create_role(
        name="web",
        policies=["app", "db"],
        ttl="1h",
        max_ttl="2h",
        bound_subscription_ids=world["subscriptions"],
        mount_point="cloud",
    )
    return target


def log_in(target: Target, client: Any) -> Any:
    """The answer to the login of a machine; the client has the token from then on."""
    machine = target.world["machines"][0]
    return client.auth.azure.login(
        role="web",
        jwt=identity(target.cloud, machine["name"]),
        subscription_id=machine["subscription"],
        resource_group_name=machine["resource_group"],
        vm_name=machine["name"],
        mount_point="cloud",
    )


def test_the_authentication_method_is_configured_and_read(configured: Target) -> None:
    """The environment reads back in the spelling that this client insists on."""
    config = configured.client().auth.azure.read_config(mount_point="cloud")
    assert config["resource"] == RESOURCE
    assert config["environment"] == "AzurePublicCloud"


@pytest.mark.parametrize("strict_http", [False, True])
def test_roles_are_read_and_listed(configured: Target, strict_http: bool) -> None:
    """With the verb for it, and with a plain GET; the old names of the fields read back, as they were used."""
    azure = configured.client(strict_http=strict_http).auth.azure
    role = azure.read_role("web", mount_point="cloud")
    assert (role["token_policies"], role["policies"]) == (["app", "db"], ["app", "db"])
    assert (role["token_ttl"], role["token_max_ttl"], role["max_ttl"]) == (3600, 7200, 7200)
    assert "web" in azure.list_roles(mount_point="cloud")["keys"]


def test_a_role_is_deleted(configured: Target) -> None:
    azure = configured.client().auth.azure
    azure.create_role(name="brief", bound_locations=["westus2"], mount_point="cloud")
    assert azure.delete_role("brief", mount_point="cloud").status_code == 204
    with pytest.raises(exceptions.InvalidPath):
        azure.read_role("brief", mount_point="cloud")


def test_a_machine_logs_in_and_uses_its_token(configured: Target) -> None:
    client = configured.client("")
    answer = log_in(configured, client)
    assert answer["auth"]["policies"] == ["app", "db", "default"]
    assert client.token == answer["auth"]["client_token"]
    assert client.is_authenticated()
    own = client.auth.token.lookup_self()["data"]
    assert (own["id"], own["renewable"], own["path"]) == (client.token, True, "auth/cloud/login")
    assert client.auth.token.renew_self(increment="30m")["auth"]["lease_duration"] == 1800
    assert client.auth.token.renew_self()["auth"]["renewable"] is True
    client.auth.token.revoke_self()
    assert not client.is_authenticated()


@pytest.mark.parametrize("options", [{}, {"use_token": True}], ids=["defaults", "as community.hashi_vault does"])
def test_a_login_with_role_and_jwt_alone(configured: Target, options: dict[str, Any]) -> None:
    """Where the role binds no machine; the client leaves out what it was not given."""
    configured.client().auth.azure.create_role(
        name="anything", bound_service_principal_ids=["*"], policies=["app"], mount_point="cloud"
    )
    machine = configured.world["machines"][0]
    client = configured.client("")
    token = identity(configured.cloud, machine["name"])
    answer = client.auth.azure.login(role="anything", jwt=token, mount_point="cloud", **options)
    assert answer["auth"]["metadata"]["vm_name"] == machine["name"]
    assert client.is_authenticated()
    with pytest.raises(exceptions.InvalidRequest, match="subscription_id"):
        client.auth.azure.login(role="web", jwt=token, mount_point="cloud", **options)


def test_a_refused_login_is_the_exception_of_its_status(configured: Target) -> None:
    """With the server's own words in it."""
    azure = configured.client("").auth.azure
    with pytest.raises(exceptions.InvalidRequest) as refused:
        azure.login(role="web", jwt="nonsense", mount_point="cloud")
    assert refused.value.errors
    foreign = identity(
        configured.cloud, configured.world["machines"][0]["name"], resource="https://graph.microsoft.com/"
    )
    with pytest.raises(exceptions.Forbidden):
        azure.login(
            role="web",
            jwt=foreign,
            subscription_id=configured.world["subscriptions"][0],
            resource_group_name="prod",
            vm_name="web",
            mount_point="cloud",
        )


def test_errors_are_the_exceptions_of_their_statuses(target: Target) -> None:
    client = target.client()
    with pytest.raises(exceptions.Forbidden, match="permission denied"):
        target.client("wrong").sys.list_policies()
    with pytest.raises(exceptions.InvalidPath, match="no handler for route"):
        client.write_data("nowhere/x", data={"a": 1})
    with pytest.raises(exceptions.InvalidRequest, match="bound"):
        client.auth.azure.create_role(name="all", mount_point="cloud")
    with pytest.raises(exceptions.UnexpectedError, match="already in use"):
        client.sys.enable_auth_method("azure", path="cloud")
    assert client.read("auth/cloud/role/nobody") is None
    assert client.list("sys/leases/lookup") is None


@pytest.mark.parametrize("token, is_known", [("root", True), ("wrong", False), ("", False)])
def test_the_client_knows_whether_it_is_let_in(target: Target, token: str, is_known: bool) -> None:
    assert target.client(token).is_authenticated() is is_known


def test_policies_in_both_generations(target: Target) -> None:
    system = target.client().sys
    system.create_or_update_policy("old", POLICY)
    system.create_or_update_acl_policy("new", {"path": {"cloud/creds/*": {"capabilities": ["read"]}}})
    assert system.read_policy("old")["data"]["rules"] == system.read_policy("old")["rules"] == POLICY
    assert json.loads(system.read_acl_policy("new")["data"]["policy"])["path"]
    assert {"old", "new", "default", "root"} <= set(system.list_policies()["data"]["policies"])
    assert {"old", "new", "default", "root"} <= set(system.list_acl_policies()["data"]["keys"])
    system.delete_policy("old")
    system.delete_acl_policy("new")
    with pytest.raises(exceptions.InvalidPath):
        system.read_policy("old")


def test_capabilities(target: Target) -> None:
    system = target.client().sys
    assert system.get_capabilities(["sys/x"])["data"]["sys/x"] == ["root"]
    assert system.get_capabilities(["sys/x"], token="root")["capabilities"] == ["root"]


def test_authentication_methods_are_mounted_tuned_and_moved(target: Target) -> None:
    system = target.client().sys
    system.enable_auth_method("azure", path="team/west", description="West", config={"default_lease_ttl": "1h"})
    listed = system.list_auth_methods()
    assert listed["data"]["team/west/"] == listed["team/west/"]
    assert listed["team/west/"]["type"] == "azure"
    system.tune_auth_method("team/west", max_lease_ttl="2h", description="West 2")
    tuning = system.read_auth_method_tuning("team/west")["data"]
    assert (tuning["default_lease_ttl"], tuning["max_lease_ttl"], tuning["description"]) == (3600, 7200, "West 2")
    system.move_backend("auth/team/west", "auth/team/east")
    assert system.disable_auth_method("team/east").status_code == 204
    assert "team/east/" not in system.list_auth_methods()["data"]


def test_secrets_engines_are_mounted_and_used(target: Target) -> None:
    """Configured, given a role, asked for credentials; their lease is looked up, renewed and revoked."""
    client = target.client()
    world = target.world
    application, other = world["applications"][:2]
    client.sys.enable_secrets_engine("azure", path="team/azure")
    assert client.sys.list_mounted_secrets_engines()["data"]["team/azure/"]["type"] == "azure"
    client.sys.tune_mount_configuration("team/azure", default_lease_ttl="30m")
    assert client.sys.read_mount_configuration("team/azure")["data"]["default_lease_ttl"] == 1800
    azure = client.secrets.azure
    azure.configure(
        subscription_id=world["subscriptions"][0],
        tenant_id=world["tenant"],
        client_id=application["client_id"],
        client_secret=application["client_secret"],
        environment="AzurePublicCloud",
        mount_point="team/azure",
    )
    assert azure.read_config(mount_point="team/azure")["tenant_id"] == world["tenant"]
    client.write_data("team/azure/roles/app", data={"application_object_id": other["object_id"], "ttl": "1h"})
    assert azure.list_roles(mount_point="team/azure")["keys"] == ["app"]
    assert azure.generate_credentials("app", mount_point="team/azure")["client_secret"]
    lease = client.read("team/azure/creds/app")
    assert lease["lease_duration"] == 3600
    lease_id = lease["lease_id"]
    assert client.sys.read_lease(lease_id)["data"]["id"] == lease_id
    assert len(client.sys.list_leases("team/azure/creds/app")["data"]["keys"]) == 2
    assert client.sys.renew_lease(lease_id, increment=600)["lease_duration"] == 600
    assert client.sys.revoke_lease(lease_id).status_code == 204
    assert client.sys.revoke_prefix("team/azure/creds").status_code == 204
    assert client.sys.disable_secrets_engine("team/azure").status_code == 204
    assert "team/azure/" not in client.sys.list_mounted_secrets_engines()["data"]


def test_issued_credentials_can_do_what_their_role_grants(configured: Target) -> None:
    """As Terraform's provider validates them: by the list of a subscription's resource providers."""
    client, world = configured.client(), configured.world
    application = world["applications"][0]
    scope = f"/subscriptions/{world['subscriptions'][0]}"
    client.secrets.azure.configure(
        subscription_id=world["subscriptions"][0],
        tenant_id=world["tenant"],
        client_id=application["client_id"],
        client_secret=application["client_secret"],
        mount_point="cloud",
    )
    client.secrets.azure.create_or_update_role(
        "valid", azure_roles=[{"role_name": "Reader", "scope": scope}], mount_point="cloud"
    )
    lease = client.read("cloud/creds/valid")
    form = {**lease["data"], "grant_type": "client_credentials", "scope": f"{RESOURCE}.default"}
    signed_in = httpx.post(f"{configured.cloud}/login/{world['tenant']}/oauth2/v2.0/token", data=form, **PATIENT)
    bearer = {"Authorization": f"Bearer {signed_in.json()['access_token']}"}
    listing = f"{configured.cloud}/arm{scope}/providers?$expand=metadata&api-version=2021-04-01"
    assert httpx.get(listing, headers=bearer, **PATIENT).status_code == 200
    client.sys.revoke_lease(lease["lease_id"])
    assert httpx.get(listing, headers=bearer, **PATIENT).status_code == 403


def test_the_life_of_a_token(target: Target) -> None:
    """Made, looked up by itself and by its accessor, renewed without and with a wish, revoked."""
    tokens = target.client().auth.token
    auth = tokens.create(policies=["app"], ttl="1h", meta={"team": "west"}, display_name="robot")["auth"]
    assert tokens.lookup(auth["client_token"])["data"]["meta"] == {"team": "west"}
    assert tokens.lookup_accessor(auth["accessor"])["data"]["id"] == ""
    assert tokens.renew(auth["client_token"], increment="2h")["auth"]["lease_duration"] == 7200
    assert auth["accessor"] in tokens.list_accessors()["data"]["keys"]
    assert tokens.create_orphan(policies=["app"])["auth"]["orphan"] is True
    tokens.revoke_accessor(auth["accessor"])
    with pytest.raises(exceptions.Forbidden):
        tokens.lookup(auth["client_token"])


def test_an_audit_device_is_enabled_and_disabled(target: Target, tmp_path: Path) -> None:
    client, file = target.client(), tmp_path / "audit.log"
    options = {"path": str(file), "mode": "600", "elide_list_responses": "true"}
    client.sys.enable_audit_device("file", description="all", options=options, path="main")
    try:
        assert client.sys.list_enabled_audit_devices()["data"]["main/"]["options"] == options
        client.lookup_token()
        listed = client.auth.token.list_accessors()["data"]["keys"]
        hashed = client.sys.calculate_hash("main", "root")["data"]["hash"]
    finally:
        client.sys.disable_audit_device("main")
    assert "main/" not in client.sys.list_enabled_audit_devices()["data"]
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    entries = [line for line in lines if line.get("request", {}).get("path") == "auth/token/lookup-self"]
    assert [entry["type"] for entry in entries] == ["request", "response"]
    assert {entry["auth"]["client_token"] for entry in entries} == {hashed}
    assert {"keys": len(listed)} in [line.get("response", {}).get("data") for line in lines]


def test_a_hash_needs_an_audit_device(target: Target) -> None:
    """Disabling a device that there is not is no error. The client's own tests look for these words."""
    client = target.client()
    client.sys.disable_audit_device("absent")
    with pytest.raises(exceptions.InvalidRequest, match="unknown audit backend"):
        client.sys.calculate_hash("absent", "x")


def test_headers_are_put_into_audit_entries(target: Target, tmp_path: Path) -> None:
    client, file = target.client(), tmp_path / "audit.log"
    path = "sys/config/auditing/request-headers"
    client.sys.enable_audit_device("file", options={"path": str(file)}, path="headers")
    try:
        client.write_data(f"{path}/User-Agent", data={"hmac": False})
        client.write_data(f"{path}/X-Vault-Request", data={"hmac": True})
        headers = {
            "User-Agent": {"hmac": False},
            "X-Correlation-Id": {"hmac": False},
            "X-Vault-Request": {"hmac": True},
        }
        assert client.read(path)["data"]["headers"] == client.read(path)["headers"] == headers
        assert client.read(f"{path}/X-Vault-Request")["data"] == {"X-Vault-Request": {"hmac": True}}
        with pytest.raises(exceptions.InvalidRequest):
            client.write_data(f"{path}/X-Vault-Token", data={"hmac": True})
        client.lookup_token()
        hashed = client.sys.calculate_hash("headers", "true")["data"]["hash"]
    finally:
        for name in ("User-Agent", "X-Vault-Request"):
            client.delete(f"{path}/{name}")
        client.sys.disable_audit_device("headers")
    assert client.read(path)["data"]["headers"] == {"X-Correlation-Id": {"hmac": False}}, "recorded by default"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    (request, response) = [line for line in lines if line.get("request", {}).get("path") == "auth/token/lookup-self"]
    assert request["request"]["headers"] == response["request"]["headers"]
    assert request["request"]["headers"]["user-agent"][0].startswith("python-requests/")
    assert request["request"]["headers"]["x-vault-request"] == [hashed]


def test_an_answer_is_wrapped(target: Target) -> None:
    """With the wrapping token in the field or as the client's own; looked up, replaced, and used once."""
    client = target.client()
    token = client.sys.wrap({"a": "b"}, ttl="1m")["wrap_info"]["token"]
    assert client.write("sys/wrapping/lookup", token=token)["data"]["creation_path"] == "sys/wrapping/wrap"
    replaced = client.write("sys/wrapping/rewrap", token=token)["wrap_info"]["token"]
    assert client.sys.unwrap(replaced)["data"] == {"a": "b"}
    for used in (token, replaced):
        with pytest.raises(exceptions.InvalidRequest, match="wrapping token is not valid or does not exist"):
            client.sys.unwrap(used)
    created = client.auth.token.create(policies=["app"], ttl="1h", wrap_ttl="1m")["wrap_info"]
    auth = target.client(created["token"]).sys.unwrap()["auth"]
    assert auth["accessor"] == created["wrapped_accessor"]


@pytest.mark.parametrize("payload", [None, {"test": "test"}])
@pytest.mark.parametrize("ttl", [60, 120])
def test_what_is_wrapped_lasts_as_long_as_asked(target: Target, payload: dict[str, str] | None, ttl: int) -> None:
    system = target.client().sys
    info = system.wrap(payload=payload, ttl=ttl)["wrap_info"]
    assert (info["ttl"], info["creation_path"]) == (ttl, "sys/wrapping/wrap")
    assert system.unwrap(info["token"])["data"] == (payload or {})


def test_keys_are_turned_over(target: Target) -> None:
    client = target.client()
    assert client.key_status["term"] == client.sys.get_encryption_key_status()["term"]
    assert client.key_status["install_time"]
    term = client.sys.get_encryption_key_status()["data"]["term"]
    assert client.sys.rotate_encryption_key().status_code == 204
    assert client.sys.get_encryption_key_status()["data"]["term"] == term + 1


def test_requests_are_limited(target: Target) -> None:
    client = target.client()
    client.sys.create_or_update_quota("mounts", rate=1, path="auth/token", interval="1h")
    try:
        assert client.sys.list_quotas()["data"]["keys"] == ["mounts"]
        assert client.sys.read_quota("mounts")["data"]["rate"] == 1
        client.lookup_token()
        with pytest.raises(exceptions.RateLimitExceeded, match="rate limit quota exceeded"):
            client.lookup_token()
    finally:
        client.sys.delete_quota("mounts")


def test_answers_tell_what_a_quota_leaves(target: Target) -> None:
    client = target.client()
    client.write("sys/quotas/config", enable_rate_limit_response_headers=True)
    client.sys.create_or_update_quota("told", rate=2, path="auth/token", interval="1h")
    try:
        path = f"{target.url}/v1/auth/token/lookup-self"
        answers = [httpx.get(path, headers={"X-Vault-Token": "root"}, **PATIENT) for _ in range(3)]
    finally:
        client.sys.delete_quota("told")
        client.write("sys/quotas/config", enable_rate_limit_response_headers=False)
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert [answer.headers["X-RateLimit-Limit"] for answer in answers] == ["2", "2", "2"]
    assert [answer.headers["X-RateLimit-Remaining"] for answer in answers] == ["1", "0", "0"]
    resets = [int(answer.headers["X-RateLimit-Reset"]) for answer in answers]
    assert resets == pytest.approx([1800, 3600, 3600], abs=60)


def test_a_quota_reads_back_as_it_was_written(target: Target) -> None:
    """Member by member, as the client's own tests compare it. A second write replaces the first."""
    client = target.client()
    client.sys.enable_secrets_engine("azure", path="limited")
    wanted = {"name": "all", "type": "rate-limit", "path": "limited/*", "role": "", "rate": 100}
    try:
        for rate in (101, 100):
            client.sys.create_or_update_quota("all", rate, path="limited/*", interval="600", block_interval="600")
        assert client.sys.read_quota("all")["data"] == {**wanted, "interval": 600, "block_interval": 600}
        with pytest.raises(exceptions.InvalidRequest):
            client.sys.create_or_update_quota("nowhere", 101, path="/not-exist")
        assert client.sys.list_quotas()["data"]["keys"] == ["all"]
        client.sys.delete_quota("all")
        with pytest.raises(exceptions.InvalidPath):
            client.sys.read_quota("all")
    finally:
        client.sys.disable_secrets_engine("limited")


def test_leases_are_limited(target: Target) -> None:
    client = target.client()
    world = target.world
    path = "sys/quotas/lease-count/few"
    client.sys.enable_secrets_engine("azure", path="few")
    application, other = world["applications"][:2]
    client.secrets.azure.configure(
        subscription_id=world["subscriptions"][0],
        tenant_id=world["tenant"],
        client_id=application["client_id"],
        client_secret=application["client_secret"],
        mount_point="few",
    )
    client.write_data("few/roles/app", data={"application_object_id": other["object_id"], "ttl": "1h"})
    try:
        assert client.write_data(path, data={"path": "few/", "max_leases": 1}).status_code == 204
        assert client.read(path)["data"] == {
            "name": "few",
            "type": "lease-count",
            "path": "few/",
            "max_leases": 1,
            "role": "",
        }
        assert client.list("sys/quotas/lease-count")["data"]["keys"] == ["few"]
        lease = client.secrets.azure.generate_credentials("app", mount_point="few")
        assert lease["client_secret"]
        with pytest.raises(exceptions.RateLimitExceeded, match="lease count quota exceeded"):
            client.secrets.azure.generate_credentials("app", mount_point="few")
        with pytest.raises(exceptions.InvalidRequest, match="issues tokens, not leases"):
            client.write_data(path, data={"path": "auth/cloud", "max_leases": 1})
    finally:
        client.delete(path)
        client.sys.disable_secrets_engine("few")
    assert client.read(path) is None


def test_the_state_of_the_server(target: Target) -> None:
    client = target.client("")
    assert client.sys.read_health_status(method="GET")["initialized"] is True
    assert client.sys.read_health_status().status_code == 200
    assert client.sys.read_leader_status()["is_self"] is True
    assert client.sys.is_initialized()
    assert not client.sys.is_sealed()
