"""`cloudid login`: this machine logs in by its own identity."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import click
from click.core import ParameterSource

from cloudid_core.values.secret import Secret

from ..client import (
    TOKEN_VARIABLES,
    Address,
    Identity,
    Login,
    NoSuchCommand,
    Service,
    ServiceRefused,
    Unreachable,
    is_same_address,
    last_login,
    require_program,
    store_login,
)
from ..terminal import Failed, Output, waiting, with_output
from .connection import Executing, executing, service_of, tell, told, with_address, with_identity


@click.command("login", cls=Executing)
@partial(with_identity, needs_role=False)
@with_address
@click.option(
    "--store",
    "how",
    flag_value="store",
    default=True,
    help="Store the token in ~/.cloudid-token, with its address, mount and role. This is the default.",
)
@click.option("--print", "how", flag_value="print", help="Print the token instead of storing it.")
@executing
@with_output()
def login(
    identify: Callable[[], Identity],
    role: str | None,
    mount: str,
    address: Address,
    how: str,
    command: tuple[str, ...],
    output: Output,
) -> None:
    """Log in with this machine's identity.

    The command looks for an identity in the same order as Azure's SDKs, and uses the first that exists: a client secret
    in the environment, the token of an AKS pod, App Service or a function, an Arc server, an Azure VM.

    The token is stored with the address that issued it, and is sent only to this address. Without --role, the last
    login at this address is repeated with the same role and mount.
    """
    role, mount = (role, mount) if role else _last_role(address, mount)
    if command:
        require_program(command)
    with told(role=role, mount=mount):
        identity = identify()
        auth = Service(address, watch=waiting).write(f"{mount}/login", identity.login(role)).get("auth") or {}
    token = Secret(str(auth.get("client_token") or ""))
    if not token:
        raise Failed("the service returned no token")
    if command:  # takes the place of this process: it ends as it ends, and gets all signals
        try:
            os.execvpe(command[0], command, {**os.environ, **dict.fromkeys(TOKEN_VARIABLES, token.reveal())})
        except (OSError, ValueError) as error:
            _end(Service(address, token))
            raise NoSuchCommand(command, error) from None
    elif how == "print":
        click.echo(token.reveal())
    else:
        output.record(
            {
                "role": role,
                "identity": identity.kind,
                "policies": auth.get("policies"),
                "seconds": auth.get("lease_duration"),
                "accessor": auth.get("accessor"),
                "address": address.url,
                "file": str(store_login(Login(token, address.url, mount, role), os.environ)),
            }
        )
        for name in filter(os.environ.get, TOKEN_VARIABLES):
            click.echo(f"{name} is set, and takes precedence over the file", err=True)


def _last_role(address: Address, mount: str) -> tuple[str, str]:
    """Return role and mount of the last login at an address; a `--mount` has to be the same.

    Raises `click.MissingParameter`.
    """
    context, last = click.get_current_context(), last_login(os.environ)
    is_mount_free = context.get_parameter_source("mount") is ParameterSource.DEFAULT
    is_there = bool(last.role) and is_same_address(last.address, address.url)
    if is_there and (is_mount_free or mount == last.mount):
        return last.role, last.mount
    parameter = next(each for each in context.command.params if each.name == "role")
    raise click.MissingParameter(_roles(service_of(address), mount), ctx=context, param=parameter)


def _roles(service: Service, mount: str) -> str:
    """Say which roles a mount has, where an earlier token may list them; otherwise nothing."""
    if not service.token:
        return ""
    try:
        roles = service.read(f"{mount}/role", list="true")["data"]["keys"]
    except (ServiceRefused, Unreachable, KeyError, TypeError):
        return ""
    return f"Roles of {mount}: {', '.join(map(str, roles))}"


def _end(service: Service) -> None:
    """Revoke the token, which no one received. A failure is printed; the token then expires."""
    try:
        service.write("auth/token/revoke-self", {})
    except (ServiceRefused, Unreachable) as failure:
        tell(f"warning: the token is not revoked yet: {failure}")
