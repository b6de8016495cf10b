"""What each field of an engine's role does at the provider: read from the simulated cloud, never from the service."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cloudid_servers.provider_simulator.world.objects import Application, Password
from tests.engines import engine_config
from tests.installation import Installation, Reply

from .test_engine import CONFIG, DAY, ROLE, reader

TEN_YEARS = 3650 * DAY
HOUR = 3600
"""By how much the secret at the provider outlives the longest life of its lease."""


@pytest.fixture
def service() -> Installation:
    """A configured engine."""
    installation = Installation()
    installation.must("POST", CONFIG, engine_config(installation))
    return installation


def issued(service: Installation, **role: object) -> Reply:
    """Credentials of a role with these fields, which by default may read a subscription."""
    if role:
        service.must("POST", ROLE, {"azure_roles": reader(service), **role})
    return service.must("GET", "cloud/creds/web")


def application(service: Installation, credentials: Reply) -> Application:
    """The application of credentials, as the provider has it."""
    found = service.simulator.world.directory.application_of(credentials.data["client_id"])
    assert found is not None
    return found


def password(service: Installation, credentials: Reply) -> Password:
    secret = credentials.data["client_secret"]
    return next(one for one in application(service, credentials).passwords if one.secret == secret)


def principal_id(service: Installation, credentials: Reply) -> str:
    found = service.simulator.world.directory.principal_of(credentials.data["client_id"])
    assert found is not None
    return found.id


def revoke(service: Installation, credentials: Reply) -> None:
    service.must("PUT", "sys/leases/revoke", {"lease_id": credentials.body["lease_id"]})
    service.converge()


def kinds(service: Installation) -> list[str]:
    """The kinds of all objects that the service made and that are alive."""
    return sorted(entry.kind for entry in service.alive())


@pytest.mark.contract("engine role: azure_roles")
def test_azure_roles(service: Installation) -> None:
    """The principal gets each role at its scope, and loses all of them with its lease."""
    first, second = service.scene["subscriptions"]
    wanted = [
        {"role_name": "Reader", "scope": f"/subscriptions/{first}"},
        {"role_name": "Contributor", "scope": f"/subscriptions/{second}"},
    ]
    credentials = issued(service, azure_roles=msgspec.json.encode(wanted).decode())
    world = service.simulator.world
    assigned = {
        (world.role_definitions[assignment.definition].role_name, assignment.scope)
        for assignment in world.role_assignments.table.all()
        if assignment.principal_id == principal_id(service, credentials)
    }
    assert assigned == {(one["role_name"], one["scope"]) for one in wanted}
    assert kinds(service) == ["application", "assignment", "assignment", "password", "principal"]
    revoke(service, credentials)
    assert kinds(service) == []


@pytest.mark.contract("engine role: azure_groups")
def test_azure_groups(service: Installation) -> None:
    """The principal joins each group, by name or by id, and leaves it with its lease."""
    groups = {group["display_name"]: group["id"] for group in service.scene["groups"]}
    wanted = [{"group_name": "web-machines"}, {"object_id": groups["batch-machines"]}]
    credentials = issued(service, azure_groups=msgspec.json.encode(wanted).decode())
    member = principal_id(service, credentials)
    joined = {group.display_name for group in service.simulator.world.directory.groups.all() if member in group.members}
    assert joined == {"web-machines", "batch-machines"}
    revoke(service, credentials)
    assert not any(member in group.members for group in service.simulator.world.directory.groups.all())


@pytest.mark.contract("engine role: application_object_id")
def test_application_object_id(service: Installation) -> None:
    """Credentials are a password of that application, and nothing else is made. `azure_roles` is ignored then."""
    existing = service.scene["applications"][1]
    credentials = issued(service, application_object_id=existing["object_id"])
    assert credentials.data["client_id"] == existing["client_id"]
    assert kinds(service) == ["password"]
    assert service.accepts(**credentials.data)
    revoke(service, credentials)
    assert kinds(service) == []
    assert service.accepts(existing["client_id"], existing["client_secret"])


@pytest.mark.contract("engine role: persist_app")
def test_persist_app(service: Installation) -> None:
    """One application is made with the role, outlives all leases, and goes with the role."""
    service.must("POST", ROLE, {"azure_roles": reader(service), "persist_app": True})
    assert kinds(service) == ["application", "assignment", "principal"]
    first, second = issued(service), issued(service)
    assert application(service, first) == application(service, second)
    revoke(service, first)
    revoke(service, second)
    assert kinds(service) == ["application", "assignment", "principal"]
    service.must("DELETE", ROLE)
    service.converge()
    assert kinds(service) == []


@pytest.mark.contract("engine role: permanently_delete")
@pytest.mark.parametrize(("permanently", "left"), [(True, []), (False, ["application", "principal"])])
def test_permanently_delete(service: Installation, permanently: bool, left: list[str]) -> None:
    """What a lease leaves in the provider's bin."""
    revoke(service, issued(service, permanently_delete=permanently))
    assert sorted(entry.kind for entry in service.soft_deleted()) == left


@pytest.mark.contract("engine role: tags")
def test_tags(service: Installation) -> None:
    """The application has them, each once."""
    assert application(service, issued(service, tags="team-a, prod,team-a")).tags == ("prod", "team-a")


@pytest.mark.contract("engine role: sign_in_audience")
@pytest.mark.parametrize(
    ("written", "at_the_provider"),
    [
        ("", "AzureADMyOrg"),
        ("CloudADMyOrg", "AzureADMyOrg"),
        ("CloudADMultipleOrgs", "AzureADMultipleOrgs"),
        ("CloudADandPersonalVendorAccount", "AzureADandPersonalMicrosoftAccount"),
        ("PersonalVendorAccount", "PersonalMicrosoftAccount"),
        ("AzureADMultipleOrgs", "AzureADMultipleOrgs"),
    ],
)
def test_sign_in_audience(service: Installation, written: str, at_the_provider: str) -> None:
    """The application has the provider's name of it."""
    assert application(service, issued(service, sign_in_audience=written)).sign_in_audience == at_the_provider


def duration(reply: Reply) -> int:
    seconds: int = reply.body["lease_duration"]
    return seconds


def renewed(service: Installation, credentials: Reply, increment: int) -> int:
    lease = {"lease_id": credentials.body["lease_id"], "increment": increment}
    return duration(service.must("PUT", "sys/leases/renew", lease))


def life_of_secret(service: Installation, credentials: Reply) -> float:
    """How long the provider accepts the password, in seconds from now."""
    return password(service, credentials).ends_at - service.clock


@pytest.mark.contract("engine role: ttl")
def test_ttl(service: Installation) -> None:
    """The lease has it, and the credentials die with the lease; unset, it is the mount's default."""
    credentials = issued(service, ttl="10m")
    assert duration(credentials) == 600
    service.advance(601)
    service.converge()
    assert not service.accepts(**credentials.data)
    tuned = service.must("GET", "sys/mounts/cloud/tune").data
    assert duration(issued(service, ttl=0)) == tuned["default_lease_ttl"]


@pytest.mark.contract("engine role: max_ttl")
def test_max_ttl(service: Installation) -> None:
    """No renewal leads past it; the secret at the provider ends an hour later. Unset, it is the mount's maximum."""
    credentials = issued(service, ttl=600, max_ttl=1000)
    assert life_of_secret(service, credentials) == pytest.approx(1000 + HOUR, abs=120)
    service.advance(500)
    assert renewed(service, credentials, 600) == pytest.approx(500, abs=5)
    maximum = service.must("GET", "sys/mounts/cloud/tune").data["max_lease_ttl"]
    assert renewed(service, issued(service, max_ttl=0), 2 * maximum) == pytest.approx(maximum, abs=5)


@pytest.mark.contract("engine role: explicit_max_ttl", "limit: explicit_max_ttl")
def test_explicit_max_ttl(service: Installation) -> None:
    """It caps lease and secret; unset or 0, ten years do."""
    credentials = issued(service, ttl=600, explicit_max_ttl="20m")
    assert 600 <= life_of_secret(service, credentials) <= 1200
    service.advance(500)
    assert renewed(service, credentials, 3600) <= 700
    service.must("POST", "sys/mounts/cloud/tune", {"max_lease_ttl": 2 * TEN_YEARS})
    unlimited = issued(service, explicit_max_ttl=0, ttl=0)
    assert renewed(service, unlimited, 2 * TEN_YEARS) == pytest.approx(TEN_YEARS, abs=HOUR)
    assert life_of_secret(service, unlimited) <= TEN_YEARS


@pytest.mark.contract("engine config: root_password_ttl", "limit: root_password_ttl")
@pytest.mark.parametrize(("fields", "days"), [({}, 182), ({"root_password_ttl": "90d"}, 90)])
def test_root_password_ttl(service: Installation, fields: dict[str, str], days: int) -> None:
    """The secret that a rotation makes ends so many days later; half a year by default."""
    service.must("POST", CONFIG, fields)
    service.must("POST", "cloud/rotate-root")
    root = service.simulator.world.directory.application_of(engine_config(service)["client_id"])
    assert root is not None
    assert root.passwords[-1].ends_at - service.clock == pytest.approx(days * DAY, abs=HOUR)


@pytest.mark.contract("engine config: client_secret", "engine config: client_id", "engine config: tenant_id")
def test_credentials_of_the_configuration(service: Installation) -> None:
    """The provider is asked with them, and what is wrong with them reaches the client as an error."""
    issued(service, ttl=600)
    right = engine_config(service)
    wrong: dict[str, Any] = {
        "client_secret": "wrong",
        "client_id": "00000000-0000-4000-8000-000000000000",
        "tenant_id": "other.example",
    }
    for name, value in wrong.items():
        service.must("POST", f"{CONFIG}?force=true", {name: value, "force": True})
        assert service.ask("GET", "cloud/creds/web").status in (502, 503), name
        service.must("POST", CONFIG, {**right, "force": True})
    assert issued(service).status == 200


@pytest.mark.contract(
    "engine role: azure_groups",
    "engine role: persist_app",
    "engine role: permanently_delete",
    "engine role: sign_in_audience",
    "engine role: tags",
    "engine role: ttl",
    "engine role: max_ttl",
)
def test_a_role_with_role_assignments_alone(service: Installation) -> None:
    """Each request gets an application of its own, in no group; its remains stay in the provider's bin.

    Lifetimes are those of the mount.
    """
    first, second = issued(service, azure_roles=reader(service)), issued(service)
    tuned = service.must("GET", "sys/mounts/cloud/tune").data
    assert duration(first) == tuned["default_lease_ttl"]
    assert life_of_secret(service, first) == pytest.approx(tuned["max_lease_ttl"] + HOUR, abs=120)
    assert first.data["client_id"] != second.data["client_id"]
    assert application(service, first).sign_in_audience == "AzureADMyOrg"
    assert application(service, first).tags == ()
    member = principal_id(service, first)
    assert not any(member in group.members for group in service.simulator.world.directory.groups.all())
    revoke(service, first)
    assert sorted(entry.kind for entry in service.soft_deleted()) == ["application", "principal"]
