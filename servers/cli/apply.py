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
@click.option("--dry-run", is_flag=True, help="Show the difference alone. Exit code 3: there is one.")
@click.option("--prune", is_flag=True, help="Remove what the folder made and has no more, but for mounts.")
@click.option("--prune-mounts", is_flag=True, help="As --prune, and mounts with all that is below them.")
@click.option("--id", "folder_id", default="", metavar="ID", help="The id of a folder that cannot be written.")
@click.option("--adopt", is_flag=True, help="Take over what this folder made at another place or by an old version.")
@click.option("--replace-root-secret", is_flag=True, help="Also put secrets over those that the service made itself.")
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
    """Make a service what a folder says.

    The path of a file below FOLDER is the path that its fields are written to, in TOML: auth/cloud/role/web.toml; a
    policy may be sys/policies/acl/web.hcl. What differs is shown first. Fields that a file does not have stay as they
    are, and what has no file is left alone. A secret is { env = "NAME" } or { file = "PATH" }: it is written when it is
    another one than was applied last, and stays away where the service has made one itself.

    The first apply writes the id of the folder to the file .cloudid-folder: keep it with the folder.
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
                tell(f"{refusal.about} is refused:")
            raise
    tell(f"written: {len(found.changes)}; removed: {len(found.removed)}; unchanged: {found.unchanged}")
    if found.left:
        click.echo(f"made by this folder, and no longer in it: {', '.join(found.left)}; --prune removes them", err=True)
    withheld = () if replace_root_secret else found.withheld
    for path in withheld:
        click.echo(f"{path}: the secret that the service made is left: --replace-root-secret insists", err=True)
    return Exit.DIFFERENT if withheld else Exit.DONE


@click.command("export")
@click.argument("folder", type=click.Path(path_type=Path))
@with_address
@with_output()
def export(folder: Path, address: Address, output: Output) -> None:
    """Write a running service into a folder for apply.

    FOLDER is new or empty. Secrets are not exported: their places name environment variables. The service may also be
    one that speaks the same interface: of its mounts those that can be mounted here. What is not in the files is told.
    """
    with told():
        found = read_service(service_with_token(address))
    write_files(folder, found)
    if found.files:
        tell(f"written: {len(found.files)} files")
    output.rows(found.told, ("path", "field", "why"), "nothing is left out")
    if not found.files:
        raise Failed("nothing was exported: log in with a token that may read what is to be in the files")


def _shortened(row: dict[str, Any]) -> dict[str, str]:
    texts = {
        name: each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for name, each in row.items()
    }
    return {name: text if len(text) <= WIDTH else f"{text[:WIDTH]}…" for name, text in texts.items()}
