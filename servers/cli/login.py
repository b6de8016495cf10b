"""`cloudid login`: this machine logs in by its own identity."""

from __future__ import annotations

import os
from collections.abc import Callable

import click

from cloudid_core.values.secret import Secret

from ..client import (
    TOKEN_VARIABLES,
    Address,
    Identity,
    NoSuchCommand,
    Service,
    ServiceRefused,
    Unreachable,
    require_program,
    store_token,
)
from ..terminal import Failed, Output, waiting, with_output
from .connection import Executing, executing, tell, told, with_address, with_identity


@click.command("login", cls=Executing)
@with_identity
@with_address
@click.option(
    "--store", "how", flag_value="store", default=True, help="Keep the token in ~/.cloudid-token. The default."
)
@click.option("--print", "how", flag_value="print", help="Print the token alone.")
@executing
@with_output()
def login(
    identify: Callable[[], Identity],
    role: str,
    mount: str,
    address: Address,
    how: str,
    command: tuple[str, ...],
    output: Output,
) -> None:
    """Log in as this machine.

    The identity is found as the vendor's libraries find it: an application's secret, a pod's token, App Service or a
    function, a server in Arc, a virtual machine. The first that this machine has counts.
    """
    if command:
        require_program(command)
    with told(role=role, mount=mount):
        identity = identify()
        auth = Service(address, watch=waiting).write(f"{mount}/login", identity.login(role)).get("auth") or {}
    token = Secret(str(auth.get("client_token") or ""))
    if not token:
        raise Failed("the service answered no token")
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
                "file": str(store_token(token, os.environ)),
            }
        )
        for name in filter(os.environ.get, TOKEN_VARIABLES):
            click.echo(f"{name} is set: it counts before the file", err=True)


def _end(service: Service) -> None:
    """Revoke the token, which nobody got. What fails is told: the token then ends by itself."""
    try:
        service.write("auth/token/revoke-self", {})
    except (ServiceRefused, Unreachable) as failure:
        tell(f"warning: the token is not revoked yet: {failure}")
