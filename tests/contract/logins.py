"""Logins as the contract has them: each form with the names that it needs, and each refusal with its codes."""

from __future__ import annotations

from typing import Any, Final

from tests.installation import HOME, Installation, Refusal, Reply
from tests.logins import CONFIG, LOGIN, identity, login_config

ROLE: Final = "auth/cloud/role/web"


def configured(**role: object) -> Installation:
    """An installation whose role `web` admits machines of both subscriptions; `role` replaces fields of it."""
    service = Installation()
    service.must("POST", CONFIG, login_config(service))
    service.must("POST", ROLE, {"bound_subscription_ids": service.scene["subscriptions"], **role})
    return service


def machine(service: Installation, kind: str) -> dict[str, Any]:
    """The first machine of a kind."""
    return next(one for one in service.scene["machines"] if one["kind"] == kind)


def named(service: Installation, name: str) -> dict[str, Any]:
    """The machine with a name."""
    return next(one for one in service.scene["machines"] if one["name"] == name)


def form(service: Installation, which: dict[str, Any], **changes: str) -> dict[str, str]:
    """The login form of a machine, without the names that are optional."""
    return {
        "role": "web",
        "jwt": identity(service, which["name"])["access_token"],
        "subscription_id": which["subscription"],
        "resource_group_name": which["resource_group"],
        **changes,
    }


def log_in(service: Installation, fields: dict[str, str], address: str = HOME) -> Reply:
    return service.ask("POST", LOGIN, fields, token="", address=address)


def refused(service: Installation, fields: dict[str, str], address: str = HOME) -> Refusal:
    """Status and codes of a login that fails."""
    return service.refused("POST", LOGIN, fields, token="", address=address)


def token_of(service: Installation, **role: object) -> dict[str, Any]:
    """The `auth` member of a login of the first virtual machine, under the role with these fields."""
    if role:
        service.must("POST", ROLE, role)
    reply = log_in(service, form(service, machine(service, "vm")))
    assert reply.status == 200, reply.body
    auth: dict[str, Any] = reply.auth
    return auth
