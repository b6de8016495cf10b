"""`cloudid creds`: lends credentials of the cloud."""

from __future__ import annotations

import os
import shlex
from typing import Final

import click

from ..client import TOKEN_VARIABLES, Address, Service, ServiceRefused, Unreachable, require_program, run_command
from ..terminal import Failed, Output, with_output, without_slashes
from .connection import Executing, executing, service_with_token, tell, told, with_address

VARIABLES: Final = {
    "client_id": "AZURE_CLIENT_ID",
    "client_secret": "AZURE_CLIENT_SECRET",
    "tenant_id": "AZURE_TENANT_ID",
}
"""Where the vendor's libraries look for credentials."""


@click.command("creds", cls=Executing)
@click.argument("role")
@click.option("--mount", default="cloud", callback=without_slashes, metavar="PATH", help="Default: cloud.")
@click.option(
    "--tenant",
    default="",
    envvar="AZURE_TENANT_ID",
    metavar="ID",
    help="Default: AZURE_TENANT_ID, or that of the mount where the token may read cloud/config.",
)
@with_address
@click.option("--env", "exports", is_flag=True, help=f"Print lines for a shell: {', '.join(VARIABLES.values())}.")
@executing
@with_output()
def creds(
    role: str,
    mount: str,
    tenant: str,
    address: Address,
    exports: bool,
    command: tuple[str, ...],
    output: Output,
) -> int | None:
    """Lend credentials of the cloud.

    With --exec they are lent to one command, and their lease ends with it, however the command ends; the exit code is
    that of the command. Otherwise the lease ends by itself; its id is on standard error.
    """
    if sum((exports, output.is_json_requested, bool(command))) > 1:
        raise click.UsageError("--env, --json and --exec exclude each other")
    if command:
        require_program(command)
    with told(role=role, mount=mount):
        service = service_with_token(address)
        found = {"tenant_id": tenant or _tenant_of(service, mount)}
        lent = service.read(f"{mount}/creds/{role}")
        lease, seconds = str(lent.get("lease_id") or ""), lent.get("lease_duration")
        tell(f"lease {lease}: {seconds} seconds")
        if not found["tenant_id"]:
            tell("the tenant is not known: give --tenant, or set AZURE_TENANT_ID")
        data = dict(lent.get("data") or {})
        known = data | found
        variables = {variable: str(known[name]) for name, variable in VARIABLES.items() if known.get(name)}
        if (command or exports) and (unprintable := [name for name in variables if not variables[name].isprintable()]):
            raise Failed(f"the service sent control characters for {', '.join(unprintable)}: revoke {lease}")
        if command:
            # The command gets what it was started for, and not the caller's own token.
            kept = {name: value for name, value in os.environ.items() if name not in TOKEN_VARIABLES}
            environment = {**kept, **variables}
            return run_command(command, environment, lambda: _end(service, lease))
    if exports:
        click.echo("\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items()))
    else:
        output.record({**data, **found, "lease_id": lease, "lease_duration": seconds})
    return None


def _tenant_of(service: Service, mount: str) -> str:
    """The tenant that the mount lends in; empty if the token may not know it."""
    try:
        return str(service.read(f"{mount}/config")["data"]["tenant_id"])
    except (ServiceRefused, Unreachable, KeyError, TypeError):
        return ""


def _end(service: Service, lease: str) -> None:
    """End the lease now. What fails is told: the lease then ends by itself."""
    try:
        service.write("sys/leases/revoke", {"lease_id": lease})
    except (ServiceRefused, Unreachable) as failure:
        tell(f"warning: the lease {lease} is not ended yet: {failure}")
    else:
        tell(f"lease {lease} is ended")
