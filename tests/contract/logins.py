"""Logins of the simulated cloud's machines at an installation's authentication method."""

from __future__ import annotations

from typing import Any, Final

from tests.simulation.installation import Installation, Reply

RESOURCE: Final = "https://management.azure.com/"
CONFIG: Final = "auth/cloud/config"
ROLE: Final = "auth/cloud/role/web"
LOGIN: Final = "auth/cloud/login"


def config(service: Installation) -> dict[str, str]:
    """What a configuration needs, with credentials that may read everything."""
    world = service.cloud("GET", "/simulator/world")
    credentials = {name: world["applications"][0][name] for name in ("client_id", "client_secret")}
    return {"tenant_id": world["tenant"], "resource": RESOURCE, **credentials}


def configured(**role: object) -> Installation:
    """An installation whose role `web` admits machines of both subscriptions; `role` replaces fields of it."""
    service = Installation()
    service.must("POST", CONFIG, config(service))
    subscriptions = service.cloud("GET", "/simulator/world")["subscriptions"]
    service.must("POST", ROLE, {"bound_subscription_ids": subscriptions, **role})
    return service


def machine(service: Installation, kind: str) -> dict[str, Any]:
    """The first machine of a kind."""
    return next(one for one in service.cloud("GET", "/simulator/world")["machines"] if one["kind"] == kind)


def named(service: Installation, name: str) -> dict[str, Any]:
    """The machine with a name."""
    return next(one for one in service.cloud("GET", "/simulator/world")["machines"] if one["name"] == name)


def form(service: Installation, which: dict[str, Any], **changes: str) -> dict[str, str]:
    """The login form of a machine, without the names that are optional."""
    path = f"/machines/{which['name']}/metadata/identity/oauth2/token?api-version=2018-02-01&resource={RESOURCE}"
    return {
        "role": "web",
        "jwt": service.cloud("GET", path)["access_token"],
        "subscription_id": which["subscription"],
        "resource_group_name": which["resource_group"],
        **changes,
    }


def log_in(service: Installation, fields: dict[str, str], address: str = "127.0.0.1") -> Reply:
    return service.ask("POST", LOGIN, fields, token="", address=address)


def refused(service: Installation, fields: dict[str, str], address: str = "127.0.0.1") -> tuple[int, list[str]]:
    """Status and codes of a login that fails."""
    reply = log_in(service, fields, address)
    assert reply.status >= 400, reply.body
    return reply.status, reply.body["codes"]


def token_of(service: Installation, **role: object) -> dict[str, Any]:
    """The `auth` member of a login of the first virtual machine, under the role with these fields."""
    if role:
        service.must("POST", ROLE, role)
    reply = log_in(service, form(service, machine(service, "vm")))
    assert reply.status == 200, reply.body
    auth: dict[str, Any] = reply.body["auth"]
    return auth
