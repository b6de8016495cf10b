"""Logins of the simulated cloud's machines: what configures them, and the form that a machine sends."""

from __future__ import annotations

from typing import Any, Final

from .installation import Installation

RESOURCE: Final = "https://management.azure.com/"
CONFIG: Final = "auth/cloud/config"
ROLE: Final = "auth/cloud/role/dev"
LOGIN: Final = "auth/cloud/login"


def login_config(installation: Installation) -> dict[str, str]:
    """The fields of a configuration that works, with credentials that may read everything."""
    scene = installation.scene
    credentials = {name: scene["applications"][0][name] for name in ("client_id", "client_secret")}
    return {"tenant_id": scene["tenant"], "resource": RESOURCE, **credentials}


def configure_logins(installation: Installation, **role: object) -> Any:
    """Configure the authentication method and a role `dev` for the first machine of the cloud; the machine."""
    machine = installation.scene["machines"][0]
    installation.must("POST", CONFIG, login_config(installation))
    installation.must("POST", ROLE, {"bound_subscription_ids": machine["subscription"], **role})
    return machine


def identity(installation: Installation, machine: str, resource: str = RESOURCE) -> Any:
    """What the metadata service of a machine answers about its identity; `access_token` is the JWT."""
    query = f"api-version=2018-02-01&resource={resource}"
    return installation.cloud("GET", f"/machines/{machine}/metadata/identity/oauth2/token?{query}")


def login_form(installation: Installation, machine: Any, **changes: object) -> dict[str, Any]:
    """The body of a login of a machine."""
    return {
        "role": "dev",
        "jwt": identity(installation, machine["name"])["access_token"],
        "subscription_id": machine["subscription"],
        "resource_group_name": machine["resource_group"],
        "vm_name": machine["name"],
        **changes,
    }


def log_in(installation: Installation, machine: Any, **changes: object) -> Any:
    """The `auth` member of the answer to a login."""
    return installation.must("POST", LOGIN, login_form(installation, machine, **changes), token="").auth
