"""Secrets of a folder: its files say where each comes from, `{ env = "NAME" }` or `{ file = "PATH" }`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cloudid_core.values.secret import Secret

from .files import FolderRefused

ENV: Final = "env"
FILE: Final = "file"
LONGEST: Final = 4096
"""Characters."""


def secret_of(where: str, source: Any, folder: Path, variables: Mapping[str, str]) -> Secret:
    """The secret that a source names; a relative path starts at the folder. Raises `FolderRefused`.

    `where`: the field, for what is said of it.
    """
    match source:
        case {"env": str(name)} if len(source) == 1:
            secret = variables.get(name, "")
            if not secret:
                raise FolderRefused(f"{where}: set the environment variable {name}")
        case {"file": str(name)} if len(source) == 1:
            try:
                with (folder / name).open(encoding="utf-8") as file:
                    secret = file.read(LONGEST).strip()
            except (OSError, UnicodeError) as error:
                raise FolderRefused(f"{where}: {name} cannot be read ({type(error).__name__})") from None
            if not secret:
                raise FolderRefused(f"{where}: {name} is empty")
        case _:
            raise FolderRefused(f'{where} is a secret: say {{ env = "NAME" }} or {{ file = "PATH" }}')
    return Secret(secret)
