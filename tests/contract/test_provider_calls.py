"""Which provider a mount calls, with whose credentials, and how often it tries."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from urllib.parse import urlsplit

import pytest

from cloudid_core import HttpRequest, Secret
from cloudid_core.clouds import CLOUDS, Cloud
from cloudid_core.testing.world import Answer
from cloudid_servers.provider_simulator import Simulator
from tests.engines import engine_config
from tests.installation import Installation
from tests.logins import CONFIG, login_config

from .logins import ROLE, form, log_in, machine, refused
from .test_engine import reader

ENVIRONMENTS = sorted(CLOUDS)
NO_ID = "00000000-0000-4000-8000-000000000000"
OTHER = "CloudChinaCloud"
"""An environment that is not the default one."""


class FourClouds(Installation):
    """An installation with a simulated cloud for each environment, all with the same tenant and machines."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        addresses = {name: f"http://{name.lower()}" for name in CLOUDS}
        clouds = {name: at(url) for name, url in addresses.items()}
        variables = {name: Secret(value) for name, value in (environment or {}).items()}
        super().__init__(clouds=clouds, environment=variables)
        self.simulators = {url: Simulator(0, url, lambda: self.clock) for url in addresses.values()}
        self.called: list[str] = []
        """The environments whose endpoints were called, in lower case."""

    def call_cloud(self, request: HttpRequest) -> Answer:
        host = urlsplit(request.url).netloc
        self.called.append(host)
        return self.simulators[f"http://{host}"].handle(request)

    def move_to(self, name: str) -> None:
        """Let the machines of the tests be those of an environment."""
        self.simulator = self.simulators[f"http://{name.lower()}"]
        self.called.clear()


def at(url: str) -> Cloud:
    return Cloud(
        login=f"{url}/login",
        resource_manager=f"{url}/arm",
        resource_audience="https://management.core.windows.net/",
        directory=f"{url}/graph",
    )


class Metered(Installation):
    """An installation that notes when its provider is called."""

    def __init__(self) -> None:
        super().__init__()
        self.called_at: list[float] = []

    def call_cloud(self, request: HttpRequest) -> Answer:
        if "/arm/" in request.url:
            self.called_at.append(self.clock)
        return super().call_cloud(request)

    @property
    def pauses(self) -> list[float]:
        return [later - earlier for earlier, later in pairwise(self.called_at)]


@pytest.mark.contract("auth config: environment")
@pytest.mark.parametrize("environment", [None, "", *ENVIRONMENTS])
def test_logins_call_the_environment_of_their_mount(environment: str | None) -> None:
    """Its endpoints, and no others; the public cloud's unless it is set."""
    name = environment or "CloudPublicCloud"
    service = FourClouds()
    service.move_to(name)
    service.must("POST", CONFIG, {**login_config(service), **written(environment)})
    service.must("POST", ROLE, {"bound_locations": machine(service, "vm")["location"]})
    assert log_in(service, form(service, machine(service, "vm"))).status == 200
    assert set(service.called) == {name.lower()}


@pytest.mark.contract("engine config: environment")
@pytest.mark.parametrize("environment", [None, "", *ENVIRONMENTS])
def test_credentials_come_from_the_environment_of_their_mount(environment: str | None) -> None:
    """Its endpoints, and no others; the public cloud's unless it is set."""
    name = environment or "CloudPublicCloud"
    service = FourClouds()
    service.move_to(name)
    service.must("POST", "cloud/config", {**engine_config(service), **written(environment)})
    service.must("POST", "cloud/roles/web", {"azure_roles": reader(service)})
    service.must("GET", "cloud/creds/web")
    assert set(service.called) == {name.lower()}


def written(environment: str | None) -> dict[str, str]:
    """The field of a configuration; none for `None`."""
    return {} if environment is None else {"environment": environment}


@pytest.mark.contract(
    "auth config: tenant_id",
    "auth config: resource",
    "auth config: client_id",
    "auth config: client_secret",
    "auth config: environment variables",
)
@pytest.mark.parametrize("field", ["tenant_id", "resource", "client_id", "client_secret"])
def test_a_login_uses_each_environment_variable(field: str) -> None:
    """The variable overrides the stored field, with which the login fails; a read shows the stored one."""
    right = login_config(Installation())
    stored = {**right, field: wrong(right[field])}
    variable = "CLOUD_AD_RESOURCE" if field == "resource" else f"CLOUD_{field.upper()}"
    for environment, works in (({}, False), ({variable: right[field]}, True)):
        service = FourClouds(environment)
        service.must("POST", CONFIG, stored)
        service.must("POST", ROLE, {"bound_locations": machine(service, "vm")["location"]})
        assert (log_in(service, form(service, machine(service, "vm"))).status == 200) is works
        assert service.must("GET", CONFIG).data[field] == stored[field]


@pytest.mark.contract("engine config: environment variables override")
@pytest.mark.parametrize("field", ["tenant_id", "client_id", "client_secret"])
def test_credentials_use_each_environment_variable(field: str) -> None:
    """The variable overrides the stored field, with which nothing can be issued."""
    right = engine_config(Installation())
    for environment, works in (({}, False), ({f"CLOUD_{field.upper()}": right[field]}, True)):
        service = FourClouds(environment)
        service.must("POST", "cloud/config", {**right, field: wrong(right[field])})
        assert (service.ask("POST", "cloud/roles/web", {"azure_roles": reader(service)}).status == 204) is works
        assert (service.ask("GET", "cloud/creds/web").status == 200) is works


@pytest.mark.contract("auth config: environment variables", "engine config: environment variables override")
def test_the_environment_of_the_cloud_may_come_from_a_variable() -> None:
    """It overrides the stored one in both components."""
    service = FourClouds({"CLOUD_ENVIRONMENT": OTHER})
    service.move_to(OTHER)
    service.must("POST", CONFIG, {**login_config(service), "environment": "CloudGermanCloud"})
    service.must("POST", ROLE, {"bound_locations": machine(service, "vm")["location"]})
    assert log_in(service, form(service, machine(service, "vm"))).status == 200
    service.must("POST", "cloud/config", {**engine_config(service), "environment": "CloudGermanCloud"})
    service.must("POST", "cloud/roles/web", {"azure_roles": reader(service)})
    service.must("GET", "cloud/creds/web")
    assert set(service.called) == {OTHER.lower()}


def wrong(value: str) -> str:
    """A value of the same form with which nothing works."""
    return NO_ID if len(value) == len(NO_ID) else f"{value}x"


@pytest.mark.contract("engine config: subscription_id")
def test_the_subscription_may_come_from_the_environment() -> None:
    """A write without it is refused unless the variable supplies it."""
    fields = engine_config(Installation())
    subscription = fields.pop("subscription_id")
    assert FourClouds().ask("POST", "cloud/config", fields).status == 400
    assert FourClouds({"CLOUD_SUBSCRIPTION_ID": subscription}).ask("POST", "cloud/config", fields).status == 204


@pytest.mark.contract("engine config: subscription_id", "engine config: environment variables override")
def test_the_subscription_of_the_environment_overrides_the_stored_one() -> None:
    """Permissions are looked up in it while no role names a scope; a read shows the stored one."""
    fields = engine_config(Installation())
    other = Installation().scene["subscriptions"][1]
    for environment, looked_up in (({}, fields["subscription_id"]), ({"CLOUD_SUBSCRIPTION_ID": other}, other)):
        service = FourClouds(environment)
        service.must("POST", "cloud/config", fields)
        assert service.must("GET", "cloud/config").data["subscription_id"] == fields["subscription_id"]
        assert service.must("GET", "cloud/permissions").data["scopes"] == [f"/subscriptions/{looked_up}"]


@pytest.fixture
def metered() -> Metered:
    """A service that has logged in once, so that only the machine is asked for at the next login."""
    service = Metered()
    service.must("POST", CONFIG, login_config(service))
    service.must("POST", ROLE, {"bound_locations": machine(service, "vm")["location"]})
    assert log_in(service, form(service, machine(service, "vm"))).status == 200
    service.advance(120)
    service.called_at.clear()
    return service


@pytest.mark.contract("auth config: max_retries", "error: provider operations are retried")
@pytest.mark.parametrize("retries", [0, 1, 4])
def test_as_many_retries_as_configured(metered: Metered, retries: int) -> None:
    """After the first try; then it is an error."""
    metered.must("POST", CONFIG, {"max_retries": retries, "retry_delay": 1})
    metered.fail("arm", status=503)
    assert refused(metered, form(metered, machine(metered, "vm"))) == (503, "provider_failed")
    assert len(metered.called_at) == 1 + retries


@pytest.mark.contract("auth config: retry_delay", "auth config: max_retry_delay")
def test_the_pauses_between_retries(metered: Metered) -> None:
    """The first is `retry_delay`, each is twice the one before, and none is longer than `max_retry_delay`."""
    metered.must("POST", CONFIG, {"max_retries": 5, "retry_delay": "2s", "max_retry_delay": "6s"})
    metered.fail("arm", status=503)
    refused(metered, form(metered, machine(metered, "vm")))
    first, second, *others = metered.pauses
    assert [first, second] == [pytest.approx(2, rel=0.2), pytest.approx(4, rel=0.2)]
    assert others == [6, 6, 6]


@pytest.mark.contract("limit: retry_delay", "limit: max_retry_delay", "limit: max_retries")
def test_the_pauses_by_default(metered: Metered) -> None:
    """Three retries, after 4, 8 and 16 seconds; the longest pause is a minute."""
    metered.fail("arm", status=503)
    refused(metered, form(metered, machine(metered, "vm")))
    assert metered.pauses == [pytest.approx(expected, rel=0.2) for expected in (4, 8, 16)]
    metered.must("POST", CONFIG, {"retry_delay": 600, "max_retries": 1})
    metered.restart(request_deadline=90.0)
    metered.called_at.clear()
    refused(metered, form(metered, machine(metered, "vm")))
    assert metered.pauses == [60]
