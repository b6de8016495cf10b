"""The master key: 64 hexadecimal digits in the environment or in a file for its owner only."""

from __future__ import annotations

import os
import re
import secrets
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE
from typing import Final

from cloudid_core.values.secret import Secret

from .settings import MASTER_KEY_VARIABLE, ServerSettings, SettingsError

SIZE: Final = 32
OTHERS: Final = 0o077


def make() -> Secret:
    return Secret(secrets.token_hex(SIZE))


def find(server: ServerSettings) -> Secret:
    """The key of a store. Raises `SettingsError` when there is none or when others may read its file."""
    text = os.environ.get(MASTER_KEY_VARIABLE, "")
    if text:
        return _checked(text, f"the environment variable {MASTER_KEY_VARIABLE}")
    source = f"the key file {server.key_file}"
    try:
        with Path(server.key_file).open(encoding="ascii") as file:
            mode = S_IMODE(os.fstat(file.fileno()).st_mode)
            text = file.read(4096).strip()
    except FileNotFoundError:
        raise SettingsError(f"{source} is missing: restore it, or run init for a new store") from None
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"{source} cannot be read ({type(error).__name__})") from None
    if mode & OTHERS and not server.allow_shared_key_file:
        raise SettingsError(
            f"{source} has mode {mode:04o}, so others may read it: run chmod 600 {server.key_file}, "
            "or set allow_shared_key_file"
        )
    return _checked(text, source)


def find_or_make(server: ServerSettings) -> Secret:
    """The key of a store that is to be initialised: the one that is there, or a new one in a new key file.

    The file appears whole and on disk, or not at all. An existing file is never overwritten: its store would be lost.
    """
    path = Path(server.key_file)
    if not os.environ.get(MASTER_KEY_VARIABLE) and not path.exists():
        draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(make().reveal() + "\n")
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(draft, path)
        finally:
            draft.unlink(missing_ok=True)
        sync_folder(path.parent)
    return find(server)


def sync_folder(folder: Path) -> None:
    """Return when the names in a folder are on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _checked(text: str, source: str) -> Secret:
    if not re.fullmatch(f"[0-9a-fA-F]{{{2 * SIZE}}}", text):
        raise SettingsError(f"{source} does not hold {2 * SIZE} hexadecimal digits")
    return Secret(text)
