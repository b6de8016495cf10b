"""The files of a folder: the path of a file below the folder is the path that its fields are written to.

`auth/cloud/role/web.toml` has the fields of a write to `auth/cloud/role/web`; `sys/policies/acl/web.hcl` is the text of
a policy. Which paths can be kept so follows from the tables of routes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import field, frozen

from cloudid_core.errors import CloudidError, Refused, reason_of
from cloudid_core.messages import Operation
from cloudid_core.mounts import AUTH, SYSTEM
from cloudid_core.policies import parse as parse_policy

from ..machine import why_unreadable
from ..paths import route_at
from .confined import read_below

TOML: Final = ".toml"
HCL: Final = ".hcl"
POLICY: Final = "policy"
"""The field that the text of a policy goes into."""
POLICIES: Final = f"{SYSTEM.path}/policies/acl"
AUDIT: Final = f"{SYSTEM.path}/audit"
MOUNTS: Final = (f"{SYSTEM.path}/auth", f"{SYSTEM.path}/mounts")
CONFIG: Final = "config"
QUOTAS: Final = f"{SYSTEM.path}/quotas/{CONFIG}"
"""The one configuration that is always there."""
NOT_KEPT: Final = (f"{SYSTEM.path}/policy/", f"{SYSTEM.path}/mounts/{AUTH}/", f"{SYSTEM.path}/applied/")
"""Old names of others, and the records of folders."""
MOST: Final = 10_000
"""Files of a folder."""
LONGEST: Final = 1 << 20
"""Bytes of a file."""
ENV: Final = "env"


class FolderRefused(CloudidError):
    """A folder cannot be used. The text repeats names of files and fields, never values."""


@frozen
class Declared:
    """What a file says: the fields of a write to a path."""

    path: str
    fields: Mapping[str, Any] = field(repr=False)

    @property
    def parent(self) -> str:
        """Where things of its kind are listed: the name of a mount may have several segments."""
        listed = (each for each in (*MOUNTS, AUDIT, POLICIES) if self.path.startswith(f"{each}/"))
        return next(listed, self.path.rpartition("/")[0])

    @property
    def name(self) -> str:
        return self.path.removeprefix(f"{self.parent}/")

    @property
    def is_mount(self) -> bool:
        return self.parent in MOUNTS

    @property
    def rank(self) -> tuple[int, str]:
        """Sorts what others rest on in front of them: mounts, configurations, what is below `sys`, roles."""
        if self.is_mount:
            return 0, self.path
        if self.name == CONFIG:
            return 1, self.path
        return (2 if self.path.startswith(f"{SYSTEM.path}/") else 3), self.path


def is_kept(path: str) -> bool:
    """Whether a path holds something that a write makes and a removal ends, or the one configuration of something."""
    if path.startswith(NOT_KEPT) or route_at(path, Operation.WRITE) is None:
        return False
    return route_at(path, Operation.DELETE) is not None or path == QUOTAS


def read_folder(folder: Path) -> tuple[Declared, ...]:
    """What a folder says, in the order in which it can be written. Other files and hidden ones are left alone.

    Raises `FolderRefused`.
    """
    if not folder.is_dir():
        raise FolderRefused(f"{folder} is not a folder")
    files = [
        path
        for path in folder.rglob("*")
        if path.suffix in (TOML, HCL) and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    if len(files) > MOST:
        raise FolderRefused(f"{folder} has more than {MOST} files")
    found: dict[str, Declared] = {}
    for file in files:
        declared = _read(file, folder)
        if declared.path.lower() in found:
            raise FolderRefused(
                f"{file.relative_to(folder)} exists twice: upper and lower case are not distinguished in paths"
            )
        found[declared.path.lower()] = declared
    return tuple(sorted(found.values(), key=lambda declared: declared.rank))


def no_longer_in(folder: Iterable[Declared], made: Iterable[str], *, with_mounts: bool) -> list[str]:
    """What was made out of a folder and is not in it any more, in the order in which it can be removed.

    What is below a mount goes with it; without `with_mounts`, mounts stay.
    """
    there = {declared.path.lower() for declared in folder}
    gone = [Declared(path, {}) for path in made if path.lower() not in there]
    mounts = [each for each in gone if each.is_mount and with_mounts]
    ended = tuple(below(each.path) for each in mounts)
    others = [each for each in gone if not each.is_mount and not each.path.startswith(ended)]
    return [each.path for each in sorted((*mounts, *others), key=lambda each: each.rank, reverse=True)]


def below(path: str) -> str:
    """What paths below a mount begin with. Nothing is below anything else."""
    return f"{path.removeprefix(f'{SYSTEM.path}/').removeprefix('mounts/')}/"


def _read(file: Path, folder: Path) -> Declared:
    shown = file.relative_to(folder)
    path = shown.with_suffix("").as_posix()
    if not is_kept(path) or (file.suffix == HCL and not path.startswith(f"{POLICIES}/")):
        raise FolderRefused(f"{shown}: {path} is not a path where configuration is stored")
    try:
        content = read_below(folder, shown.as_posix(), LONGEST + 1)
        text = content.decode("utf-8-sig")
        fields = {POLICY: text} if file.suffix == HCL else tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FolderRefused(f"{shown} is not valid TOML: {str(error).rpartition('(')[2].rstrip(')')}") from None
    except (OSError, UnicodeError, RecursionError) as error:
        raise FolderRefused(f"{shown} cannot be read: {why_unreadable(error)}") from None
    if len(content) > LONGEST:
        raise FolderRefused(f"{shown} is longer than {LONGEST} bytes")
    if file.suffix == HCL and not text.strip():
        raise FolderRefused(f"{shown} is empty: for a policy that grants nothing, write a comment")
    if path.startswith(f"{POLICIES}/") and isinstance(policy := fields.get(POLICY), str):
        _check_policy(shown, policy)
    return Declared(path, fields)


def _check_policy(shown: Path, text: str) -> None:
    """Refuse a policy that the service would refuse, before anything is written. Raises `FolderRefused`."""
    try:
        parse_policy("", text)
    except Refused as refusal:
        raise FolderRefused(f"{shown}: {reason_of(refusal)}") from None
