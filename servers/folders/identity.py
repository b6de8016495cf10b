"""The id of a folder: random, in a file that the first apply makes, so that no two folders are taken for one."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from cloudid_core.applied import is_folder_id

from ..machine import sync, why_unreadable
from .confined import read_below
from .files import FolderRefused

FILE: Final = ".cloudid-folder"
LONGEST: Final = 128


def read_id(folder: Path) -> str:
    """The id of a folder; empty if it has none yet. Raises `FolderRefused`."""
    try:
        text = read_below(folder, FILE, LONGEST).decode("ascii").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeError) as error:
        raise FolderRefused(f"{FILE} cannot be read: {why_unreadable(error)}") from None
    if not is_folder_id(text):
        raise FolderRefused(f"{FILE} must hold 32 lowercase hexadecimal digits: correct or remove it")
    return text


def read_or_make_id(folder: Path) -> str:
    """The id of a folder. Its file appears whole, or not at all. Raises `FolderRefused`."""
    if known := read_id(folder):
        return known
    draft = folder / f"{FILE}.{secrets.token_hex(4)}.new"
    try:
        draft.write_text(f"{secrets.token_hex(16)}\n", encoding="ascii")
        with suppress(FileExistsError):
            os.link(draft, folder / FILE)
        sync(folder)
    except OSError as error:
        raise FolderRefused(
            f"{folder / FILE} cannot be written: {why_unreadable(error)}. Give the folder an id: --id, or the setting "
            "apply_folder_id of a server"
        ) from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    return read_id(folder)
