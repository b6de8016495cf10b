"""Where the secrets come from that the files of a folder name: `{ env = "NAME" }` or `{ file = "PATH" }`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from attrs import field, frozen

from cloudid_core.values.secret import Secret

from ..machine import why_unreadable
from .confined import read_anywhere, read_below
from .files import FolderRefused

LONGEST: Final = 4096
"""Bytes of a secret."""


class Secrets(Protocol):
    """Finds secrets. Texts of refusals name fields, variables and files, never values."""

    def find(self, where: str, source: Any) -> Secret:
        """The secret that a source names. `where`: the field, for errors. Raises `FolderRefused`."""
        ...


@frozen
class OperatorsSecrets:
    """The secrets of the operator who runs `cloudid apply`: own variables and files. Relative paths start at the
    folder."""

    folder: Path
    variables: Mapping[str, str] = field(repr=False)

    def find(self, where: str, source: Any) -> Secret:
        match source:
            case {"env": str(name)} if len(source) == 1:
                if not self.variables.get(name):
                    raise FolderRefused(f"{where}: set the environment variable {name}")
                return Secret(self.variables[name])
            case {"file": str(name)} if len(source) == 1:
                return _read(where, name, lambda: read_anywhere(self.folder / name, LONGEST))
        raise _not_a_source(where)


@frozen
class ServersSecrets:
    """The secrets that a server gives to the writers of its folder: files below one folder of the settings.

    A variable could be the master key or the password of the database, so a folder of a server cannot name one.
    """

    directory: str

    def find(self, where: str, source: Any) -> Secret:
        match source:
            case {"env": str()} if len(source) == 1:
                raise FolderRefused(
                    f"{where}: a server does not read environment variables for its folder: put the "
                    "secret in a file in the folder that the setting apply_secrets names"
                )
            case {"file": str(name)} if len(source) == 1:
                if not self.directory:
                    raise FolderRefused(f"{where}: set apply_secrets to the folder of {name}")
                return _read(where, name, lambda: read_below(Path(self.directory), name, LONGEST))
        raise _not_a_source(where)


def _read(where: str, name: str, read: Callable[[], bytes]) -> Secret:
    try:
        secret = read().decode().strip()
    except (OSError, ValueError) as error:
        raise FolderRefused(f"{where}: {name} cannot be read: {why_unreadable(error)}") from None
    if not secret:
        raise FolderRefused(f"{where}: {name} is empty")
    return Secret(secret)


def _not_a_source(where: str) -> FolderRefused:
    return FolderRefused(f'{where} is a secret: write {{ env = "NAME" }} or {{ file = "PATH" }}')
