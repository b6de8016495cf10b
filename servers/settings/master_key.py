"""The master key: 64 hexadecimal digits in the environment, from a command, or in a file for its owner only.

The file may be a credential that systemd hands to this service alone (`LoadCredential`).
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
import subprocess
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE
from typing import Final

from cloudid_core.values.secret import Secret

from ..machine import programs, sync, why_unreadable
from .safety import OTHERS
from .settings import MASTER_KEY_VARIABLE, ServerSettings, SettingsError

SIZE: Final = 32
COMMAND_SECONDS: Final = 60.0
CREDENTIALS_VARIABLE: Final = "CREDENTIALS_DIRECTORY"
CREDENTIAL: Final = "cloudid.key"


def make() -> Secret:
    return Secret(secrets.token_hex(SIZE))


def find(server: ServerSettings) -> Secret:
    """The key of a store: from the environment, a command, a credential or the key file. Raises `SettingsError`."""
    if os.environ.get(MASTER_KEY_VARIABLE):
        return from_variable(MASTER_KEY_VARIABLE)
    if server.master_key_command:
        return from_command(server.master_key_command)
    if (credential := _credential()) is not None:
        return from_file(credential, is_shared=True)  # systemd decides on its mode, and its folder keeps others out
    return from_file(Path(server.key_file), is_shared=server.allow_shared_key_file)


def find_or_make(server: ServerSettings) -> Secret:
    """The key of a store that is to be initialised: the one that is there, or a new one in a new key file."""
    if (file := key_file(server)) is not None:
        make_file(file)
    return find(server)


def key_file(server: ServerSettings) -> Path | None:
    """The file of the settings that the key is in; `None` where environment, command or credential have it."""
    is_elsewhere = os.environ.get(MASTER_KEY_VARIABLE) or server.master_key_command or _credential()
    return None if is_elsewhere else Path(server.key_file)


def _credential() -> Path | None:
    """The key as systemd hands it to this service; `None` where it hands over none."""
    folder = os.environ.get(CREDENTIALS_VARIABLE, "")
    path = Path(folder, CREDENTIAL)
    return path if folder and path.exists() else None


def from_variable(name: str) -> Secret:
    """The key in an environment variable. Raises `SettingsError`."""
    return _checked(os.environ.get(name, ""), f"the environment variable {name}")


def from_command(command: str) -> Secret:
    """The key that a command prints. No shell reads the command, and what it prints is in no error.

    Raises `SettingsError`.
    """
    source = "the command for the master key"
    try:
        done = subprocess.run(
            shlex.split(command),
            stdout=subprocess.PIPE,
            timeout=COMMAND_SECONDS,
            check=False,
            env=programs.environment(),
        )
        text = done.stdout.decode("ascii").strip()
    except subprocess.TimeoutExpired:
        raise SettingsError(f"{source} took longer than {COMMAND_SECONDS:g} s") from None
    except (IndexError, OSError, ValueError) as error:
        raise SettingsError(f"{source} cannot be run: {why_unreadable(error)}") from None
    if done.returncode:
        raise SettingsError(f"{source} failed with exit code {done.returncode}")
    return _checked(text, f"the output of {source}")


def from_file(path: Path, *, is_shared: bool = False) -> Secret:
    """The key in a file. Raises `SettingsError`, also when others may read the file and it is not `is_shared`."""
    source = f"the key file {path}"
    try:
        with path.open(encoding="ascii") as file:
            mode = S_IMODE(os.fstat(file.fileno()).st_mode)
            text = file.read(4096).strip()
    except FileNotFoundError:
        raise SettingsError(f"{source} is missing: restore it, or run init for a new store") from None
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"{source} cannot be read: {why_unreadable(error)}") from None
    if mode & OTHERS and not is_shared:
        raise SettingsError(
            f"{source} has mode {mode:04o}, so other users can read it: run chmod 600 {path}, or set "
            "allow_shared_key_file"
        )
    return _checked(text, source)


def make_file(path: Path) -> None:
    """Write a new key to a file, if there is no such file.

    The file appears whole and on disk, or not at all. An existing file is never overwritten: its store would be lost.

    Raises `SettingsError`.
    """
    if path.exists():
        return
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(make().reveal() + "\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(draft, path)
        sync(path.parent)
    except OSError as error:
        raise SettingsError(f"the key file {path} cannot be written: {error.strerror}") from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _checked(text: str, source: str) -> Secret:
    if not re.fullmatch(f"[0-9a-fA-F]{{{2 * SIZE}}}", text):
        raise SettingsError(f"{source} does not hold {2 * SIZE} hexadecimal digits")
    return Secret(text)
