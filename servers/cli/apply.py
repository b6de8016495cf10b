"""`cloudid apply` makes a service what a folder says, and `cloudid export` a folder of what a service is."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any, Final

import click

from ..client import Address, ServiceRefused
from ..folders import OperatorsSecrets, Source, carry_out, plan, write_files
from ..folders import export as read_service
from ..terminal import Exit, Failed, Format, Output, with_output
from .connection import service_with_token, tell, told, with_address

COLUMNS: Final = ("path", "field", "is", "becomes")
WIDTH: Final = 60
"""Characters of a value in a table."""


@click.command("apply")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Only show the differences. The exit code is 3 if there are any.")
@click.option(
    "--prune", is_flag=True, help="Delete objects that this folder created and no longer contains. Keeps mounts."
)
@click.option("--prune-mounts", is_flag=True, help="Like --prune, and also disable mounts with everything below them.")
@click.option("--id", "folder_id", default="", metavar="ID", help="The folder's id, if the folder is not writable.")
@click.option("--adopt", is_flag=True, help="Take over objects that a copy of this folder or an older version created.")
@click.option("--replace-root-secret", is_flag=True, help="Also replace client secrets that the service has rotated.")
@with_address
@with_output()
def apply(
    folder: Path,
    dry_run: bool,
    prune: bool,
    prune_mounts: bool,
    folder_id: str,
    adopt: bool,
    replace_root_secret: bool,
    address: Address,
    output: Output,
) -> int:
    """Apply a folder of TOML files to a service.

    The path of each file is the path that its fields are written to. For example, FOLDER/auth/cloud/role/web.toml holds
    the fields of the role web. A policy can also be a file like sys/policies/acl/web.hcl. The command first shows the
    differences, then writes them. Fields that a file does not name, and objects without a file, are not changed.

    Write a secret as { env = "NAME" } or { file = "PATH" }. It is written only if it differs from the secret that was
    applied last, and not if the service has rotated it since.

    The first run writes the folder's id to the file .cloudid-folder. Keep that file with the folder.
    """
    with told():
        service = service_with_token(address)
        source = Source(folder=folder, host=socket.gethostname(), id=folder_id, adopts=adopt)
        secrets = OperatorsSecrets(folder, os.environ)
        found = plan(service, source, secrets, prunes=prune, prunes_mounts=prune_mounts)
        rows = list(found.rows())
        shown = rows if output.format is Format.JSON else [_shortened(row) for row in rows]
        output.rows(shown, COLUMNS, "nothing differs")
        if dry_run:
            return Exit.DIFFERENT if rows else Exit.DONE
        try:
            carry_out(service, found, lambda text: tell(f"warning: {text}"), replaces_root_secret=replace_root_secret)
        except ServiceRefused as refusal:
            if refusal.about:
                tell(f"{refusal.about} was refused:")
            raise
    tell(f"written: {len(found.changes)}; removed: {len(found.removed)}; unchanged: {found.unchanged}")
    if found.left:
        click.echo(
            f"created by this folder, and no longer in it: {', '.join(found.left)}; --prune deletes them", err=True
        )
    withheld = () if replace_root_secret else found.withheld
    for path in withheld:
        click.echo(
            f"{path}: the secret was kept, because the service has rotated it: --replace-root-secret replaces it",
            err=True,
        )
    return Exit.DIFFERENT if withheld else Exit.DONE


@click.command("export")
@click.argument("folder", type=click.Path(path_type=Path))
@with_address
@with_output()
def export(folder: Path, address: Address, output: Output) -> None:
    """Export the configuration of a service to a folder.

    FOLDER must be new or empty. To apply it later, use `cloudid apply`. Secrets are not exported; the files name
    environment variables for them instead. The service can also be Vault or OpenBao: then only the mounts that cloudid
    supports are exported. The output lists everything that the files do not contain.
    """
    with told():
        found = read_service(service_with_token(address))
    write_files(folder, found)
    if found.files:
        tell(f"written: {len(found.files)} files")
    output.rows(found.told, ("path", "field", "why"), "the export is complete")
    if not found.files:
        raise Failed("nothing was exported: log in with a token that may read the configuration")


def _shortened(row: dict[str, Any]) -> dict[str, str]:
    texts = {
        name: each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for name, each in row.items()
    }
    return {name: text if len(text) <= WIDTH else f"{text[:WIDTH]}…" for name, text in texts.items()}
