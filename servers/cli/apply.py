"""`cloudid apply`: makes a service what a folder says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click

from ..client import Address, ServiceRefused
from ..folders import changes, read_folder
from ..terminal import Exit, Format, Output, printable, with_output
from .connection import service_with_token, told, with_address

COLUMNS: Final = ("path", "field", "is", "becomes")
WIDTH: Final = 60
"""Characters of a value in a table."""


@click.command("apply")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Show the difference alone. Exit code 3: there is one.")
@click.option("--replace-root-secret", is_flag=True, help="Also put secrets over those that the service made itself.")
@with_address
@with_output()
def apply(folder: Path, dry_run: bool, replace_root_secret: bool, address: Address, output: Output) -> int:
    """Make a service what a folder says.

    The path of a file below FOLDER is the path that its fields are written to, in TOML: auth/cloud/role/web.toml; a
    policy may be sys/policies/acl/web.hcl. What differs is shown first. Fields that a file does not have stay as they
    are, and what has no file is left alone. A secret is { env = "NAME" } or { file = "PATH" }: it is written when it is
    another one than was applied last, and stays away where the service has made one itself.
    """
    declared = read_folder(folder)
    with told():
        service = service_with_token(address)
        missing = changes(service, declared, os.environ)
        rows = [row for change in missing for row in change.rows()]
        output.rows(rows if output.format is Format.JSON else [_shortened(row) for row in rows], COLUMNS)
        if dry_run:
            return Exit.DIFFERENT if missing else Exit.DONE
        for change in missing:
            try:
                warnings = change.write(service, replaces_root_secret=replace_root_secret)
            except ServiceRefused:
                click.echo(printable(f"{change.declared.path} is refused:"), err=True)
                raise
            for warning in warnings:
                click.echo(printable(f"warning: {change.declared.path}: {warning}"), err=True)
    output.note(f"written: {len(missing)}; as they should be: {len(declared) - len(missing)}")
    left = [] if replace_root_secret else [change.declared.path for change in missing if change.withholds]
    for path in left:
        click.echo(f"{path}: the secret that the service made is left: --replace-root-secret insists", err=True)
    return Exit.DIFFERENT if left else Exit.DONE


def _shortened(row: dict[str, object]) -> dict[str, object]:
    return {name: text if len(text := str(value)) <= WIDTH else f"{text[:WIDTH]}…" for name, value in row.items()}
