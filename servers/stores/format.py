"""The format of what is stored, which SQLite and PostgreSQL keep beside it.

It is raised when this release writes what the one before cannot read: entries are sealed, so that an older release
would take what it cannot read for damage, or for another master key. A store of an older format is taken over when it
is opened, and cannot go back.
"""

from __future__ import annotations

from typing import Final

from cloudid_core.errors import StoreFailed
from cloudid_core.version import VERSION

FORMAT: Final = 2
"""1: up to the first release that names itself in the store. 2: roles, mounts and devices as of 0.1.0."""


def check(name: str, found: int, release: str) -> None:
    """Raises `StoreFailed` for a store of a later format, and says which release has taken it over."""
    if found > FORMAT:
        newer = f"cloudid {release}" if release else "a newer release"
        raise StoreFailed(
            f"{name} was opened by {newer} and has version {found} of the store's format; cloudid {VERSION} knows "
            f"{FORMAT}: go on with that release, or restore a backup from before the upgrade"
        )
