"""The option `--settings`, and the file that is used without it."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Final

import click

from ..settings import SettingsError

FILE: Final = click.Path(path_type=Path)
VARIABLE: Final = "CLOUDID_SETTINGS"
HERE: Final = Path("cloudid.toml")
OPTION: Final = partial(click.option, "--settings", type=FILE, metavar="FILE")
WRITABLE_BY_ALL: Final = 0o002


def found_settings(given: Path | None) -> Path | None:
    """Return the settings file: the given one, that of `CLOUDID_SETTINGS`, or `cloudid.toml` here; `None` if none.

    Settings name programs that are run, so a file in a folder that others may write, such as `/tmp`, is not taken
    without being named. Raises `SettingsError`.
    """
    if given is not None:
        return given
    if named := os.environ.get(VARIABLE):
        return Path(named)
    try:
        state = HERE.stat()
    except OSError:
        return None
    if state.st_uid not in (0, os.geteuid()) or state.st_mode & WRITABLE_BY_ALL:
        raise SettingsError(f"other users can write to {HERE.absolute()}: to use it, name it with --settings")
    return HERE


def _required(ctx: click.Context, option: click.Parameter, given: Path | None) -> Path | None:
    settings = found_settings(given)
    if settings is None and not ctx.resilient_parsing:
        raise click.UsageError(
            f"--settings FILE is required, because {VARIABLE} is not set and there is no {HERE} here", ctx
        )
    return settings


SETTINGS: Final = OPTION(help="The settings file (TOML).")
REQUIRED_SETTINGS: Final = OPTION(
    callback=_required, help=f"The settings file (TOML). Default: {VARIABLE}, then ./{HERE}."
)
