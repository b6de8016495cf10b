"""The master key: 64 hexadecimal digits in the environment or in a file for its owner only."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from typing import Final

from cloudid_core.values.secret import Secret

from .settings import MASTER_KEY_VARIABLE, ServerSettings, SettingsError

SIZE: Final = 32


def make() -> Secret:
    return Secret(secrets.token_hex(SIZE))


def find(server: ServerSettings) -> Secret:
    """The key that is there. Raises `SettingsError` when there is none."""
    text = os.environ.get(MASTER_KEY_VARIABLE, "")
    source = f"the environment variable {MASTER_KEY_VARIABLE}"
    if not text:
        source = f"the key file {server.key_file}"
        try:
            text = Path(server.key_file).read_text("ascii").strip()
        except (OSError, UnicodeError) as error:
            raise SettingsError(f"{source} cannot be read ({type(error).__name__}): run init first") from None
    if not re.fullmatch(f"[0-9a-fA-F]{{{2 * SIZE}}}", text):
        raise SettingsError(f"{source} does not hold {2 * SIZE} hexadecimal digits")
    return Secret(text)


def find_or_make(server: ServerSettings) -> Secret:
    """The key that is there, or a new one in a new key file. Never overwrites one: its store would be lost."""
    if not os.environ.get(MASTER_KEY_VARIABLE):
        try:
            file = os.open(server.key_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            pass
        else:
            with os.fdopen(file, "w") as key_file:
                key_file.write(make().reveal() + "\n")
                key_file.flush()
                os.fsync(file)
    return find(server)
