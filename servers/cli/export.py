"""`cloudid export`: writes a running service down as a folder of files."""

from __future__ import annotations

from pathlib import Path

import click

from ..client import Address
from ..folders import export as read_service
from ..folders import write_files
from ..terminal import Output, with_output
from .connection import service_with_token, told, with_address


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
    output.note(f"written: {len(found.files)} files")
    output.rows(found.told, ("path", "field", "why"))
