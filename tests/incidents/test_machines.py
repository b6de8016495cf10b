"""What a machine was believed about itself, and what was remembered of one and told of another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import jwt
import msgspec
import pytest
from attrs import evolve

from cloudid_core import HttpRequest
from cloudid_core.testing import Answer
from cloudid_servers.provider_simulator import Simulator
from cloudid_servers.provider_simulator.identity.tokens import MAX_GROUPS
from cloudid_servers.provider_simulator.world.provisioning import remove_machine
from tests.installation import ADDRESS, Installation
from tests.logins import LOGIN, RESOURCE, configure_logins, log_in, login_form
from tests.tokens import look_up_self

LIE: Final = "web"
"""The name of another machine, which is in another place."""


def machine_of(world: Installation, kind: str) -> Any:
    return next(one for one in world.scene["machines"] if one["kind"] == kind)


def named(world: Installation, machine: Any, **names: str) -> dict[str, Any]:
    """The form of a login under these names alone."""
    return {**login_form(world, machine, vm_name=""), **names}


COUNTS: Final = {
    "vm": ("vm_name", ("resource_id",)),
    "vmss_uniform": ("vmss_name", ("vm_name", "resource_id")),
    "vmss_flexible": ("vmss_name", ("vm_name", "resource_id")),
    "resource": ("resource_id", ()),
}
"""For each kind of machine the field that names it, and those that count for nothing beside that."""


@pytest.mark.parametrize("kind", COUNTS)
def test_the_name_of_another_machine_is_refused_and_never_told_on(kind: str) -> None:
    """Vault CVE-2025-3879: the token of one machine was good for the place of any other that the caller named.

    Several names at once: the one that counts decides, and of all others nothing gets into the token.
    """
    world = Installation()
    machine = machine_of(world, kind)
    configure_logins(world)
    world.must("POST", "auth/cloud/role/dev", {"bound_locations": machine["location"]})
    counts, ignored = COUNTS[kind]
    true = machine["resource_id"] if counts == "resource_id" else machine["resource_id"].rpartition("/")[2]
    lie = machine["resource_id"].replace(machine["resource_id"].rpartition("/")[2], LIE)
    wrong = {"vm_name": LIE, "vmss_name": LIE, "resource_id": lie}
    honest = world.must("POST", LOGIN, named(world, machine, **{counts: true}), token="").auth["metadata"]
    for other in ignored:
        beside = {counts: wrong[counts], other: true if other != "resource_id" else machine["resource_id"]}
        assert world.refused("POST", LOGIN, named(world, machine, **beside), token="")[0] == 403
        auth = world.must("POST", LOGIN, named(world, machine, **{counts: true, other: wrong[other]}), token="").auth
        assert auth["metadata"] == look_up_self(world, auth["client_token"])["meta"] == honest
    everything = named(world, machine, **{**wrong, counts: wrong[counts]})
    assert world.refused("POST", LOGIN, everything, token="")[0] == 403
    assert LIE not in honest.values()


def test_a_machine_does_not_get_the_place_of_the_one_that_it_names() -> None:
    """Vault CVE-2025-3879 again: a role of one location, and a machine of another that names one of the first."""
    world = Installation()
    here, there = (next(one for one in world.scene["machines"] if one["name"] == name) for name in ("vm-system", "web"))
    assert here["location"] != there["location"]
    configure_logins(world)
    world.must("POST", "auth/cloud/role/dev", {"bound_locations": there["location"]})
    assert log_in(world, there)["metadata"]["vm_name"] == "web"
    for names in ({"vm_name": "web"}, {"vmss_name": "web"}, {"resource_id": there["resource_id"], "vm_name": ""}):
        for place in ({}, {"resource_group_name": there["resource_group"]}):
            body = login_form(world, here, **names, **place)
            assert world.refused("POST", LOGIN, body, token="")[0] == 403


class TwoTenants(Installation):
    """A service with a mount for each of two tenants, which are alike in all but their ids and what a test changes."""

    def __init__(self) -> None:
        super().__init__()
        names = [f"team-{number}" for number in range(MAX_GROUPS + 1)]
        self.machine = self.cloud("POST", "/simulator/machines", {"name": "crowd", "groups": names})
        self.other = self.simulator.copy(lambda: self.clock)
        self.other.world.tenant_id = "0badc0de-0000-4000-8000-00000000000b"
        self.tenants = {"auth/cloud": self.simulator, "auth/other": self.other}
        self.must("POST", "sys/auth/other", {"type": "cloud"})
        group = self.simulator.world.directory.group("team-7").id
        for path, tenant in self.tenants.items():
            application = self.scene["applications"][0]
            credentials = {name: application[name] for name in ("client_id", "client_secret")}
            given = {"tenant_id": tenant.world.tenant_id, "resource": RESOURCE, **credentials}
            self.must("POST", f"{path}/config", given)
            self.must(
                "POST", f"{path}/role/dev", {"bound_locations": self.machine["location"], "bound_group_ids": group}
            )
        self.forms = {path: self.form_in(tenant) for path, tenant in self.tenants.items()}

    def call_cloud(self, request: HttpRequest) -> Answer:
        """The answer of the tenant that the address names, or that the caller's token is of."""
        token = dict(request.headers).get("authorization", "").removeprefix("Bearer ")
        asked = jwt.decode(token, options={"verify_signature": False})["tid"] if token else request.url
        return (self.other if self.other.world.tenant_id in asked else self.simulator).handle(request)

    def form_in(self, tenant: Simulator) -> dict[str, Any]:
        """The login of the machine as it is in a tenant."""
        url = f"{ADDRESS}/machines/crowd/metadata/identity/oauth2/token?api-version=2018-02-01&resource={RESOURCE}"
        answer = tenant.handle(HttpRequest("GET", url, {"metadata": "true"}, b"")).response
        return {**login_form(self, self.machine), "jwt": msgspec.json.decode(answer.body)["access_token"]}

    def log_in(self, path: str, form: dict[str, Any]) -> str:
        """The code of a refusal, or nothing."""
        reply = self.ask("POST", f"{path}/login", form, token="")
        return "" if reply.status == 200 else reply.code


def move(tenant: Simulator) -> None:
    """The machine is in another place."""
    world = tenant.world
    moved = evolve(world.machines["crowd"], location="northeurope")
    world.machines["crowd"] = world.resources[moved.resource_id.lower()] = moved


def remove(tenant: Simulator) -> None:
    remove_machine(tenant.world, "crowd")


def dismiss(tenant: Simulator) -> None:
    """Its principal is no longer in the group that the role binds."""
    world = tenant.world
    assert world.machines["crowd"].system
    world.directory.leave(world.directory.group("team-7"), world.machines["crowd"].system.principal_id)


CHANGES: Final[Mapping[Callable[[Simulator], None], str]] = {
    move: "bound_location_mismatch",
    remove: "machine_not_found",
    dismiss: "bound_group_mismatch",
}


@pytest.mark.parametrize("first", ["auth/cloud", "auth/other"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_one_tenant_says_of_a_machine_is_not_said_of_its_twin_in_another(
    change: Callable[[Simulator], None], first: str
) -> None:
    """Vault CVE-2025-11621: what was remembered of one account was used for another with the same name in it.

    Two mounts, two tenants: resource id, object id, signing key, client id and secret are all the same.
    """
    world = TwoTenants()
    change(world.other)
    paths = sorted(world.tenants, key=lambda path: path != first)
    expected = {"auth/cloud": "", "auth/other": CHANGES[change]}
    for _ in range(3):
        for path in paths:
            assert world.log_in(path, world.forms[path]) == expected[path]
        for path, form in zip(paths, (world.forms[path] for path in reversed(paths)), strict=True):
            assert world.log_in(path, form) == "jwt_issuer_mismatch", "a token of the other tenant"


def test_twins_in_two_tenants_are_both_admitted_until_one_changes() -> None:
    """Otherwise the refusals above would prove nothing."""
    world = TwoTenants()
    claimed = [jwt.decode(form["jwt"], options={"verify_signature": False}) for form in world.forms.values()]
    assert len({(claims["oid"], claims["xms_mirid"], claims["appid"]) for claims in claimed}) == 1
    for path, form in world.forms.items():
        assert world.log_in(path, form) == ""
    calls = len(world.calls())
    for path, form in world.forms.items():
        assert world.log_in(path, form) == ""
    assert len(world.calls()) == calls, "from memory"
