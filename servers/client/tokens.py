"""Where the token of a client is: in the environment, or in a file for its owner only."""

from __future__ import annotations

import os
import pwd
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE
from typing import Final

from cloudid_core.errors import CloudidError
from cloudid_core.values.secret import Secret

from ..machine import why_unreadable
from .variables import TOKENS

OURS: Final = ".cloudid-token"
THEIRS: Final = ".vault-token"
"""Where existing clients keep theirs."""
OTHERS: Final = 0o077
LONGEST: Final = 1 << 14


class TokenFileRefused(CloudidError):
    """The file or the variable of a token cannot be used. The text holds nothing of its content."""


def find_token(variables: Mapping[str, str]) -> Secret:
    """The token of the environment, of `~/.cloudid-token` or of `~/.vault-token`; empty if there is none.

    Raises `TokenFileRefused`, also if others may read our file: they may have the token.
    """
    for name in TOKENS:
        if token := variables.get(name, "").strip():
            return _checked(token, name)
    return _read(home(variables) / OURS, is_ours=True) or _read(home(variables) / THEIRS, is_ours=False)


def store_token(token: Secret, variables: Mapping[str, str]) -> Path:
    """Put a token into `~/.cloudid-token`. Raises `TokenFileRefused`."""
    path = home(variables) / OURS
    write_private(path, token.reveal() + "\n")
    return path


def write_private(path: Path, text: str) -> None:
    """Put a text into a file, which appears whole and with mode 0600. Raises `TokenFileRefused`."""
    draft = path.parent / f"{path.name}.{secrets.token_hex(4)}.new"
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        draft.replace(path)
    except OSError as error:
        raise TokenFileRefused(f"{path} cannot be written: {error.strerror}") from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def home(variables: Mapping[str, str]) -> Path:
    """Where `HOME` is empty or not set, the list of users has it: an empty one would stand for `/`."""
    if named := variables.get("HOME"):
        return Path(named)
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return Path("~")


def _read(path: Path, *, is_ours: bool) -> Secret:
    try:
        with path.open(encoding="ascii") as file:
            mode = S_IMODE(os.fstat(file.fileno()).st_mode)
            text = file.read(LONGEST).strip()
    except FileNotFoundError:
        return Secret()
    except (OSError, UnicodeError) as error:
        raise TokenFileRefused(f"{path} cannot be read: {why_unreadable(error)}") from None
    if is_ours and mode & OTHERS:
        raise TokenFileRefused(
            f"{path} has mode {mode:04o}: others may have its token. Revoke it, remove the file, and log in again"
        )
    return _checked(text, str(path))


def _checked(text: str, source: str) -> Secret:
    if not (text.isascii() and text.isprintable()):
        raise TokenFileRefused(f"{source} holds something else than a token: a line break, or a letter that none has")
    return Secret(text)
