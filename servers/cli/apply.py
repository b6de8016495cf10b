"""`cloudid apply`: makes a service what a folder says."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from ..client import Address, ServiceRefused
from ..folders import below, changes, no_longer_in, read_folder, remember, remembered, remove
from ..terminal import Exit, Format, Output, printable, with_output
from .connection import service_with_token, told, with_address

COLUMNS: Final = ("path", "field", "is", "becomes")
WIDTH: Final = 60
"""Characters of a value in a table."""


@click.command("apply")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Show the difference alone. Exit code 3: there is one.")
@click.option("--prune", is_flag=True, help="Remove what the folder made and has no more, but for mounts.")
@click.option("--prune-mounts", is_flag=True, help="As --prune, and mounts with all that is below them.")
@click.option("--name", default="", metavar="NAME", help="What the service knows the folder by. Default: its own name.")
@click.option("--replace-root-secret", is_flag=True, help="Also put secrets over those that the service made itself.")
@with_address
@with_output()
def apply(
    folder: Path,
    dry_run: bool,
    prune: bool,
    prune_mounts: bool,
    name: str,
    replace_root_secret: bool,
    address: Address,
    output: Output,
) -> int:
    """Make a service what a folder says.

    The path of a file below FOLDER is the path that its fields are written to, in TOML: auth/cloud/role/web.toml; a
    policy may be sys/policies/acl/web.hcl. What differs is shown first. Fields that a file does not have stay as they
    are, and what has no file is left alone. A secret is { env = "NAME" } or { file = "PATH" }: it is written when it is
    another one than was applied last, and stays away where the service has made one itself.
    """
    declared = read_folder(folder)
    name = name or folder.resolve().name
    with told():
        service = service_with_token(address)
        made = remembered(service, name)
        missing = changes(service, declared, os.environ)
        gone = no_longer_in(declared, made, with_mounts=prune_mounts)
        removed = gone if prune or prune_mounts else []
        rows = [row for change in missing for row in change.rows()]
        rows += [{"path": path, "field": "", "is": "(made by this folder)", "becomes": "(removed)"} for path in removed]
        output.rows(rows if output.format is Format.JSON else [_shortened(row) for row in rows], COLUMNS)
        if dry_run:
            return Exit.DIFFERENT if rows else Exit.DONE
        now_made = set(made)
        try:
            for change in missing:
                with _named(change.declared.path):
                    warnings = change.write(service, replaces_root_secret=replace_root_secret)
                now_made |= {change.declared.path} if change.makes else set()
                for warning in warnings:
                    click.echo(printable(f"warning: {change.declared.path}: {warning}"), err=True)
            for path in removed:
                with _named(path):
                    remove(service, path)
                now_made -= {each for each in made if each == path or each.startswith(below(path))}
        finally:
            if now_made != made:
                remember(service, name, now_made)
    output.note(f"written: {len(missing)}; removed: {len(removed)}; unchanged: {len(declared) - len(missing)}")
    if len(gone) > len(removed):
        click.echo(f"made by this folder, and no longer in it: {', '.join(gone)}; --prune removes them", err=True)
    left = [] if replace_root_secret else [change.declared.path for change in missing if change.withholds]
    for path in left:
        click.echo(f"{path}: the secret that the service made is left: --replace-root-secret insists", err=True)
    return Exit.DIFFERENT if left else Exit.DONE


@contextmanager
def _named(path: str) -> Iterator[None]:
    """A refusal in the block is told with the path that it is about."""
    try:
        yield
    except ServiceRefused:
        click.echo(printable(f"{path} is refused:"), err=True)
        raise


def _shortened(row: dict[str, Any]) -> dict[str, str]:
    texts = {
        name: each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for name, each in row.items()
    }
    return {name: text if len(text) <= WIDTH else f"{text[:WIDTH]}…" for name, text in texts.items()}
