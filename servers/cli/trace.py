"""`cloudid trace`: what a token did, out of audit logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs
import click

from cloudid_core.tokens.encoding import BATCH_PREFIX, SERVICE_PREFIX

from ..audit import Trace
from ..client import Address, Service, ServiceRefused, Unreachable
from ..terminal import Output, Unusable, with_output
from .connection import service_of, tell, with_address
from .words import STDIN, read_secret

TOKEN_PREFIXES: Final = (SERVICE_PREFIX, BATCH_PREFIX)
COLUMNS = ("time", "part", "operation", "path", "outcome")


@click.command("trace")
@click.argument("token", metavar="TOKEN|ACCESSOR")
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
@click.option(
    "--device", "devices", multiple=True, metavar="NAME", help="The audit device that wrote the logs. Default: all."
)
@with_address
@with_output()
def trace(token: str, logs: Sequence[str], devices: Sequence[str], address: Address, output: Output) -> None:
    """Show what a token did, from audit logs.

    Give the token as -, and it is read from standard input, so that no list of processes shows it. Name the log files
    in any order. In the output, `part` says whether the token made the request, was issued by it, or was named in one
    of its fields.

    Audit logs contain keyed hashes of tokens, so the command requests the hash from the service. This needs update and
    sudo at sys/audit-hash/NAME; without --device it also needs read and sudo at sys/audit. You can also give a hash
    from a log instead of the token: then the service is not needed.
    """
    sought = read_secret(token, "token").reveal() if token == STDIN else token.strip()
    if not sought:
        raise click.UsageError("the token is empty")
    if token != STDIN and token.startswith(TOKEN_PREFIXES):
        tell(
            "warning: other users can see this token in the list of processes: use - and write the token to "
            "standard input"
        )
    hashes, failure = _hashes(service_of(address), sought, devices)
    found = Trace({sought, *hashes})
    for name in logs:
        try:
            with Path(name).open("rb") as lines:
                found.read(lines)
        except OSError as error:
            raise Unusable(f"{name} cannot be read: {error.strerror}") from None
    if failure and found.sees_hashes:
        tell(f"warning: hashed tokens in the logs were not searched: {failure}")
    if found.unread:
        click.echo(f"warning: {found.unread} of {found.lines} lines are not entries", err=True)
    output.rows([attrs.asdict(step) for step in found.steps], COLUMNS, "no request used the token")
    output.note(f"{len(found.steps)} requests in {found.lines} lines")


def _hashes(service: Service, text: str, devices: Sequence[str]) -> tuple[list[str], str]:
    """Return the hashes of a text in the logs of these devices or of all, and why some are unknown."""
    found: list[str] = []
    try:
        for device in devices or [name.strip("/") for name in service.read("sys/audit")["data"]]:
            found.append(str(service.write(f"sys/audit-hash/{device}", {"input": text})["data"]["hash"]))
    except (ServiceRefused, Unreachable, KeyError, TypeError) as error:
        return found, str(error) or type(error).__name__
    return found, "" if found else "the service has no audit device"
