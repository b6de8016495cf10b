"""Where the token of a client is: in the environment, or in a file for its owner only.

The file of a login also names the address that issued the token. It is sent to no other: where a variable or an option
names another service, that service would get a token that works elsewhere.
"""

from __future__ import annotations

import json
import os
import pwd
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE
from typing import Final

from attrs import field, frozen

from cloudid_core.errors import CloudidError
from cloudid_core.values.secret import Secret

from ..machine import why_unreadable
from ..typed import typed
from .service import is_address, is_same_address
from .variables import TOKENS

OURS: Final = ".cloudid-token"
THEIRS: Final = ".vault-token"
"""Where existing clients keep theirs."""
OTHERS: Final = 0o077
LONGEST: Final = 1 << 15


class TokenFileRefused(CloudidError):
    """The file or the variable of a token cannot be used. The text holds nothing of its content."""


class TokenOfAnotherAddress(TokenFileRefused):
    """The token of the last login was issued by another address than the one that a request goes to."""


@frozen
class Login:
    """What a login leaves: its token, and how to repeat it. Without a token: nothing is left."""

    token: Secret = field(factory=Secret)
    address: str = ""
    """Empty in a file that has a token only, as versions before this one wrote."""
    mount: str = ""
    role: str = ""


def find_token(variables: Mapping[str, str], url: str, warn: Callable[[str], None]) -> Secret:
    """Return the token for an address, from the environment, `~/.cloudid-token` or `~/.vault-token`; empty if none.

    Raises `TokenFileRefused`, also if others may read our file: they may have the token. Raises
    `TokenOfAnotherAddress` if the last login was at another address. The other places do not say where theirs is from.
    """
    for name in TOKENS:
        if token := variables.get(name, "").strip():
            return _checked(token, name)
    login = last_login(variables)
    if not login.token:
        return _checked(_read(home(variables) / THEIRS, is_ours=False), THEIRS)
    path = home(variables) / OURS
    if not login.address:
        warn(f"{path} does not contain the address that issued its token: run cloudid login, which stores it")
    elif not is_same_address(login.address, url):
        raise TokenOfAnotherAddress(
            f"the token in {path} was issued by {login.address} and is not sent to {url}: log in there "
            f"with {typed('cloudid', 'login', '--address', url)}, or omit the address"
        )
    return login.token


def last_login(variables: Mapping[str, str]) -> Login:
    """Return what the last login left in `~/.cloudid-token`. Raises `TokenFileRefused`."""
    path = home(variables) / OURS
    text = _read(path, is_ours=True)
    if not text.startswith("{"):
        return Login(_checked(text, str(path)))
    try:
        members = json.loads(text)
        token, address, mount, role = (members[name] for name in ("token", "address", "mount", "role"))
    except (ValueError, KeyError, RecursionError):
        token = address = mount = role = None
    if not all(isinstance(each, str) for each in (token, address, mount, role)) or not is_address(address):
        raise TokenFileRefused(f"{path} is damaged: remove it, and log in again")
    return Login(_checked(token, str(path)), address, mount, role)


def store_login(login: Login, variables: Mapping[str, str]) -> Path:
    """Put a login into `~/.cloudid-token`. Raises `TokenFileRefused`."""
    path = home(variables) / OURS
    members = {"address": login.address, "mount": login.mount, "role": login.role, "token": login.token.reveal()}
    write_private(path, json.dumps(members, indent=2) + "\n")
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


def _read(path: Path, *, is_ours: bool) -> str:
    """Return the text of a file; empty if there is none."""
    try:
        with path.open(encoding="ascii") as file:
            mode = S_IMODE(os.fstat(file.fileno()).st_mode)
            text = file.read(LONGEST).strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeError) as error:
        raise TokenFileRefused(f"{path} cannot be read: {why_unreadable(error)}") from None
    if is_ours and mode & OTHERS:
        raise TokenFileRefused(
            f"{path} has mode {mode:04o}: others may have its token. Revoke it, remove the file, and log in again"
        )
    return text


def _checked(text: str, source: str) -> Secret:
    if not (text.isascii() and text.isprintable()):
        raise TokenFileRefused(
            f"{source} does not hold a token: it has a line break, or a character that tokens cannot have"
        )
    return Secret(text)
