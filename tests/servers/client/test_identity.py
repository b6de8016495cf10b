"""Every kind of identity logs in at a server; what gives none is told, and nothing of a secret."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from cloudid_core.values.secret import Secret
from cloudid_servers.client import KINDS, Address, Identity, NoIdentity, Service, Surroundings, find_identity, identity
from cloudid_servers.client.arc import LARGEST_KEY, ChallengeRefused, key_of
from cloudid_servers.client.identity import place_of

from ..client_site import RESOURCE, Site, client_site


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with client_site() as site:
        yield site


def found(variables: Mapping[str, str], resource: str = RESOURCE, **wanted: str) -> Identity:
    return find_identity(Surroundings(variables, pause=lambda seconds: None), resource, **wanted)


def tried(variables: Mapping[str, str], resource: str = RESOURCE, **wanted: str) -> dict[str, str]:
    with pytest.raises(NoIdentity) as refused:
        found(variables, resource, **wanted)
    return dict(refused.value.tried)


def log_in(site: Site, identity: Identity, role: str) -> dict[str, str]:
    """The metadata of the token that a login gives."""
    address = Address.of({"VAULT_ADDR": site.url})
    metadata: dict[str, str] = Service(address).write("auth/cloud/login", identity.login(role))["auth"]["metadata"]
    return metadata


@pytest.mark.parametrize(
    "machine, place",
    [
        ("web", {"resource_group_name": "prod", "vm_name": "web"}),
        ("vm-user", {"resource_group_name": "machines", "vm_name": "vm-user"}),
        ("fleet-uniform", {"resource_group_name": "fleets", "vmss_name": "fleet-uniform"}),
    ],
)
def test_a_virtual_machine_logs_in(site: Site, machine: str, place: dict[str, str]) -> None:
    identity = found(site.of_vm(machine))
    assert identity.kind == "vm"
    assert identity.place == {"subscription_id": site.world["subscriptions"][0], **place}
    assert log_in(site, identity, "all")["resource_group_name"] == place["resource_group_name"]


def test_an_instance_of_a_flexible_set_logs_in_by_its_own_name(site: Site) -> None:
    identity = found(site.of_vm("fleet-flexible"))
    assert identity.place["vm_name"].startswith("fleet-flexible_")
    assert log_in(site, identity, "all")


def test_an_app_service_logs_in_as_its_resource(site: Site) -> None:
    identity = found(site.of_app_service())
    assert identity.kind == "app-service"
    assert identity.place["resource_id"].endswith("/providers/Microsoft.Web/sites/shop")
    assert log_in(site, identity, "all")


def test_a_pod_exchanges_its_token(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(site.cluster.token(time.time()))
    identity = found(site.of_pod(str(file)))
    assert (identity.kind, identity.place) == ("aks", {})
    assert log_in(site, identity, "anybody")


def test_an_application_logs_in_by_its_secret(site: Site) -> None:
    identity = found(site.of_application())
    assert (identity.kind, identity.place) == ("client-secret", {})
    assert log_in(site, identity, "anybody")


def arc(site: Site, folder: Path, key_file: str, name: str) -> Surroundings:
    """A server in Arc, whose agent names this file."""
    machine = {"name": name, "kind": "resource", "resource_type": "Microsoft.HybridCompute/machines"}
    made = site.simulate("POST", "machines", {**machine, "arc_key_file": key_file})
    site.world["machines"].append(made)
    (folder / f"{name}.key").write_text(made["platform_secret"])
    return Surroundings(site.of_arc(name), folder)


def test_a_server_in_arc_answers_the_challenge(site: Site, tmp_path: Path) -> None:
    here = arc(site, tmp_path, str(tmp_path / "edge.key"), "edge")
    identity = find_identity(here)
    assert identity.kind == "arc"
    assert identity.place["resource_id"].endswith("/Microsoft.HybridCompute/machines/edge")
    assert log_in(site, identity, "all")


def test_a_challenge_for_a_file_elsewhere_is_not_answered(site: Site, tmp_path: Path) -> None:
    """Who answers in the agent's place gets no file of its choice: not even a request follows."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    here = arc(site, elsewhere, str(elsewhere / "hostile.key"), "hostile")
    calls = site.simulate("GET", "world")["metadata_calls"].get("hostile", 0)
    with pytest.raises(NoIdentity) as refused:
        find_identity(Surroundings(here.variables, tmp_path))
    assert "it was not read" in str(refused.value)
    assert site.machine("hostile")["platform_secret"] not in str(refused.value)
    assert site.simulate("GET", "world")["metadata_calls"]["hostile"] == calls + 1


@pytest.mark.parametrize(
    "challenge, words",
    [
        ("", "does not name a file"),
        ("Basic", "does not name a file"),
        ("Bearer realm={folder}/a.key", "does not name a file"),
        ("Basic realm=", "does not name a file"),
        ("Basic realm={folder}/a.key\r\nx: y", "does not name a file"),
        ("Basic realm=/etc/shadow", "it was not read"),
        ("Basic realm=a.key", "it was not read"),
        ("Basic realm={folder}/a.txt", "it was not read"),
        ("Basic realm={folder}/../outside.key", "it was not read"),
        ("Basic realm={folder}/below/a.key", "it was not read"),
        ("Basic realm={folder}//a.key", "it was not read"),
        ("Basic realm={folder}/link.key", "cannot be read"),
        ("Basic realm={folder}/none.key", "cannot be read"),
        ("Basic realm={folder}/folder.key", "cannot be read"),
        ("Basic realm={folder}/pipe.key", "it was not read"),
        ("Basic realm={folder}/large.key", "it was not sent"),
        ("Basic realm={folder}/binary.key", "it was not sent"),
    ],
)
def test_only_keys_of_the_agent_are_read(tmp_path: Path, challenge: str, words: str) -> None:
    folder = tmp_path / "tokens"
    (folder / "below").mkdir(parents=True)
    (folder / "folder.key").mkdir()
    os.mkfifo(folder / "pipe.key")
    for path in (folder / "a.key", folder / "a.txt", folder / "below" / "a.key", tmp_path / "outside.key"):
        path.write_text("canary")
    (folder / "link.key").symlink_to(tmp_path / "outside.key")
    (folder / "large.key").write_text("c" * (LARGEST_KEY + 1))
    (folder / "binary.key").write_bytes(b"\xff")
    with pytest.raises(ChallengeRefused) as refused:
        key_of(challenge.format(folder=folder), folder)
    assert words in str(refused.value)
    assert "canary" not in str(refused.value)


def test_a_key_of_the_agent_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.key").write_text("k" * LARGEST_KEY)
    assert key_of(f"Basic realm={tmp_path}/a.key", tmp_path) == Secret("k" * LARGEST_KEY)


def test_the_order_is_the_vendors(site: Site, tmp_path: Path) -> None:
    """Each environment also has all that counts less."""
    file = tmp_path / "token"
    file.write_text(site.cluster.token(time.time()))
    less: dict[str, str] = {}
    steps = {
        "vm": site.of_vm(),
        "app-service": site.of_app_service(),
        "aks": site.of_pod(str(file)),
        "client-secret": site.of_application(),
    }
    for kind, variables in steps.items():
        less |= variables
        if kind == "app-service":  # an application's id would choose another identity of the machine
            assert found(less).kind == kind
        else:
            assert found(less | {"AZURE_CLIENT_ID": less.get("AZURE_CLIENT_ID", "")}).kind == kind
    assert found(less | {"AZURE_CLIENT_ID": ""}, kind="vm").kind == "vm"
    assert [one.name for one in KINDS] == ["client-secret", "aks", "app-service", "arc", "vm"]


def test_one_of_several_identities_is_chosen(site: Site) -> None:
    many = next(one for one in site.world["identities"] if one["name"] == "many-b")
    assert tried(site.of_vm("vm-many"))["vm"].startswith("it answered 400: Multiple user assigned identities")
    for chosen in (
        found(site.of_vm("vm-many"), client_id=many["client_id"]),
        found({**site.of_vm("vm-many"), "AZURE_CLIENT_ID": many["client_id"]}),
    ):
        assert log_in(site, chosen, "all")["app_id"] == many["client_id"]


def test_a_machine_without_identity_says_what_was_tried(site: Site) -> None:
    assert tried(site.of_vm("vm-bare")) == {
        "client-secret": "AZURE_TENANT_ID is not set",
        "aks": "AZURE_TENANT_ID is not set",
        "app-service": "IDENTITY_ENDPOINT is not set",
        "arc": "IDENTITY_ENDPOINT is not set",
        "vm": "it answered 400: Identity not found",
    }


def test_an_identity_that_gives_no_token_is_not_replaced_by_another(site: Site) -> None:
    """Else a machine would log in as somebody else than its operator meant."""
    variables = {**site.of_vm(), **site.of_application(), "AZURE_CLIENT_SECRET": "canary-of-a-secret"}
    (outcome,) = tried(variables).values()
    assert outcome.startswith("it answered 401: AADSTS7000215")
    assert "canary-of-a-secret" not in outcome


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"AZURE_FEDERATED_TOKEN_FILE": "/nowhere"}, "the federated token file cannot be read"),
        ({"AZURE_AUTHORITY_HOST": "http://login.example"}, "must begin with https://"),
    ],
)
def test_a_pod_that_cannot_prove_itself_says_why(
    site: Site, tmp_path: Path, changes: dict[str, str], words: str
) -> None:
    (tmp_path / "token").write_text("canary")
    (outcome,) = (tried({**site.of_pod(str(tmp_path / "token")), **changes}, kind="aks")).values()
    assert words in outcome


def test_nobody_answers() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # but nothing listens
        outcomes = tried({"AZURE_POD_IDENTITY_AUTHORITY_HOST": f"http://127.0.0.1:{taken.getsockname()[1]}"})
    assert outcomes["vm"] == "Connection refused"


def test_only_the_usual_metadata_service_is_probed_before_it_is_asked(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere no machine answers at its address, and a request would wait long for that to be known."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # but nothing listens
        monkeypatch.setattr(identity, "METADATA_ADDRESS", f"http://127.0.0.1:{taken.getsockname()[1]}")
        assert tried({})["vm"] == "no response from 127.0.0.1: this is not an Azure VM"
        assert found(site.of_vm()).kind == "vm"


@pytest.mark.parametrize("status", [404, 410, 429, 500, 503])
def test_a_platform_that_asks_for_patience_is_asked_again(site: Site, status: int) -> None:
    """While a machine boots, its metadata service also answers 404 and 410."""
    busy = [{"match": {"family": "metadata"}, "times": 3, "action": {"status": status}}]
    site.simulate("POST", "faults", busy)
    assert found(site.of_vm()).kind == "vm"


def test_the_place_is_asked_for_where_the_token_does_not_name_it(site: Site) -> None:
    """So that a refusal says that the token names no machine, and not that the login does not."""
    identity = found(site.of_vm("fleet-uniform"), "api://of-somebody")
    assert identity.place == {
        "subscription_id": site.world["subscriptions"][0],
        "resource_group_name": "fleets",
        "vm_name": "fleet-uniform_0",
        "vmss_name": "fleet-uniform",
    }


@pytest.mark.parametrize("text", ["", "nonsense", "a.b.c", "a.e30.c", "a.W10.c", "a.eyJ4bXNfbWlyaWQiOjF9.c", "ä.ö.ü"])
def test_a_text_that_names_no_machine_has_no_place(text: str) -> None:
    assert place_of(Secret(text)) == {}


def test_nothing_secret_is_in_a_repr(site: Site) -> None:
    variables = site.of_application()
    identity = found(variables)
    shown = repr((identity, Surroundings(variables)))
    assert variables["AZURE_CLIENT_SECRET"] not in shown
    assert identity.jwt.reveal() not in shown


@pytest.mark.parametrize("address", ["http://[", "http://x:y/"])
def test_an_endpoint_that_is_no_address_is_told(address: str) -> None:
    at_app_service = {"IDENTITY_ENDPOINT": address, "IDENTITY_HEADER": "x"}
    assert tried(at_app_service)["app-service"] == "the URL is malformed"


def test_a_login_service_that_is_no_address_gets_no_secret() -> None:
    application = {"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_CLIENT_SECRET": "s"}
    assert "must begin with https://" in tried({**application, "AZURE_AUTHORITY_HOST": "http://["})["client-secret"]
