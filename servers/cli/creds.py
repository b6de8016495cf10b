"""`cloudid creds`: issues credentials for Azure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

import click

from ..client import (
    AZURE,
    TERRAFORM,
    TOKEN_VARIABLES,
    Address,
    Service,
    ServiceRefused,
    Unreachable,
    dotenv,
    require_program,
    run_command,
    variables_of,
)
from ..terminal import Failed, Output, with_output, without_slashes
from ..typed import typed
from .connection import Executing, executing, service_with_token, tell, told, with_address

FORMS: Final[Mapping[str, tuple[Mapping[str, str], ...]]] = {
    "azure": (AZURE,),
    "terraform": (TERRAFORM,),
    "github": (AZURE, TERRAFORM),
    "dotenv": (AZURE, TERRAFORM),
}
"""The forms of --env, and the variables of each."""
SHELLS: Final = ("azure", "terraform")
GITHUB: Final = "github"
SUBSCRIPTIONS: Final = ("AZURE_SUBSCRIPTION_ID", "ARM_SUBSCRIPTION_ID")


@click.command("creds", cls=Executing)
@click.argument("role")
@click.option(
    "--mount",
    default="cloud",
    callback=without_slashes,
    metavar="PATH",
    help="The path of the secrets engine. Default: cloud.",
)
@click.option(
    "--tenant",
    default="",
    envvar="AZURE_TENANT_ID",
    metavar="ID",
    help="The tenant id, if the service does not return it. Default: AZURE_TENANT_ID.",
)
@with_address
@click.option(
    "--env",
    "form",
    type=click.Choice([*FORMS]),
    is_flag=False,
    flag_value="azure",
    help="Print environment variables. azure (AZURE_*) and terraform (ARM_*) print export lines for a shell; dotenv and"
    " github print NAME=value lines for both; github also masks the secret in the job's log. Default without a value:"
    " azure.",
)
@executing
@with_output()
def creds(
    role: str,
    mount: str,
    tenant: str,
    address: Address,
    form: str | None,
    command: tuple[str, ...],
    output: Output,
) -> int | None:
    """Request credentials for Azure.

    The credentials are valid until their lease expires. The id of the lease is printed on standard error.

    With --exec, a command gets the credentials in AZURE_* and ARM_* variables, but not your own token. The lease is
    revoked as soon as the command exits, and its exit code is returned.
    """
    if sum((form is not None, output.is_json_requested, bool(command))) > 1:
        raise click.UsageError("--env, --json and --exec cannot be combined")
    if command:
        require_program(command)
    with told(role=role, mount=mount):
        service = service_with_token(address)
        answer = service.read(f"{mount}/creds/{role}")
        lease, seconds = str(answer.get("lease_id") or ""), answer.get("lease_duration")
        tell(f"lease {lease}: {seconds} seconds")
        data = dict(answer.get("data") or {})
        data["tenant_id"] = data.get("tenant_id") or tenant
        if not data["tenant_id"]:
            tell("the service did not return the tenant: use --tenant, or set AZURE_TENANT_ID")
        issued = {name: str(data[name]) for name in AZURE if data.get(name)}
        unprintable = [name for name, value in issued.items() if not value.isprintable()]
        if (command or form) and unprintable:
            raise Failed(f"the service sent control characters for {', '.join(unprintable)}: revoke {lease}")
        if command:
            return run_command(command, _environment(issued), lambda: _end(service, lease))
    if form:
        _print(form, issued)
    else:
        output.record({**data, "lease_id": lease, "lease_duration": seconds})
    return None


def _environment(issued: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a command: with the credentials, and without the caller's own token.

    A subscription that the caller has chosen stays: it is where to work, not who is working.
    """
    kept = {name: value for name, value in os.environ.items() if name not in TOKEN_VARIABLES}
    chosen = {name: kept[name] for name in SUBSCRIPTIONS if kept.get(name)}
    return {**kept, **variables_of(issued), **chosen}


def _print(form: str, issued: Mapping[str, str]) -> None:
    """Print the variables. GitHub reads commands from both streams of a step, so the mask does not mix with them."""
    variables = {names[name]: value for names in FORMS[form] for name, value in issued.items()}
    if form == GITHUB:
        click.echo(f"::add-mask::{issued.get('client_secret', '')}", err=True)
    if form in SHELLS:
        click.echo("\n".join(f"export {name}={typed(value)}" for name, value in variables.items()))
    else:
        click.echo(dotenv(variables), nl=False)


def _end(service: Service, lease: str) -> None:
    """Revoke the lease now. A failure is printed; the lease then expires."""
    try:
        service.write("sys/leases/revoke", {"lease_id": lease})
    except (ServiceRefused, Unreachable) as failure:
        tell(f"warning: the lease {lease} is not revoked yet: {failure}")
    else:
        tell(f"lease {lease} is revoked")
