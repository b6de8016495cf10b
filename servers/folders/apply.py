"""Apply a folder: plan the difference first, then write it. The service records what the folder makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs
from attrs import frozen

from cloudid_core.applied import PATH, is_folder_id
from cloudid_core.mounts import SYSTEM
from cloudid_core.rotation import MADE_HERE

from ..client import Service, ServiceRefused
from .change import Change, asked, changes
from .files import FolderRefused, no_longer_in, read_folder
from .identity import read_id, read_or_make_id
from .secrets import Secrets

APPLIED: Final = f"{SYSTEM.path}/{PATH}"


@frozen(kw_only=True)
class Source:
    """A folder, and where it is."""

    folder: Path
    host: str
    id: str = ""
    """Given by a setting or an option; empty: the file in the folder has it."""
    adopts: bool = False
    """Whether it takes over the records of a folder at another place, and of an earlier version."""

    @property
    def path(self) -> str:
        return str(self.folder.resolve())

    @property
    def former(self) -> str:
        """The name that earlier versions knew it by."""
        return self.folder.resolve().name.lower()


@frozen
class Plan:
    """What applying a folder changes."""

    source: Source
    changes: tuple[Change, ...]
    unchanged: int
    removed: tuple[str, ...]
    left: tuple[str, ...]
    """The folder made these objects, no longer has their files, and they stay."""

    @property
    def withheld(self) -> tuple[str, ...]:
        """Where the service has made a secret itself, in whose place the folder has another."""
        return tuple(
            change.declared.path
            for change in self.changes
            if any(each.secret is not None and each.found == MADE_HERE for each in change.differences)
        )

    def rows(self) -> Iterator[dict[str, Any]]:
        """What changes, for a table or a program."""
        for change in self.changes:
            yield from change.rows()
        for path in self.removed:
            yield {"path": path, "field": "", "is": "(created by this folder)", "becomes": "(removed)"}


def plan(
    service: Service, source: Source, secrets: Secrets, *, prunes: bool = False, prunes_mounts: bool = False
) -> Plan:
    """What is to be done for the service to be what a folder says. Raises `FolderRefused`."""
    declared = read_folder(source.folder)
    missing = changes(service, declared, secrets)
    gone = tuple(no_longer_in(declared, _made(service, source), with_mounts=prunes_mounts))
    removed, left = (gone, ()) if prunes or prunes_mounts else ((), gone)
    return Plan(source, tuple(missing), len(declared) - len(missing), removed, left)


def carry_out(
    service: Service, plan: Plan, warn: Callable[[str], object], *, replaces_root_secret: bool = False
) -> None:
    """Make the changes. `warn` gets the warnings of the service. `ServiceRefused.about` is the path that it is about.

    Each write carries the id of the folder, and so does each deletion: the service deletes for a folder only what that
    folder has made, with the rights of the token.
    """
    if not (plan.changes or plan.removed or plan.source.adopts):
        return
    folder_id = plan.source.id or read_or_make_id(plan.source.folder)
    body: dict[str, Any] = {"path": plan.source.path, "host": plan.source.host}
    if plan.source.adopts:
        body |= {"adopt": True, "former": plan.source.former}
    service.write(f"{APPLIED}/{folder_id}", body)
    service = attrs.evolve(service, folder_id=folder_id)
    for change in plan.changes:
        with _about(change.declared.path):
            warnings = change.write(service, replaces_root_secret=replaces_root_secret)
        for warning in warnings:
            warn(f"{change.declared.path}: {warning}")
    for path in plan.removed:
        with _about(path):
            asked(service, "DELETE", path)


@contextmanager
def _about(path: str) -> Iterator[None]:
    try:
        yield
    except ServiceRefused as refusal:
        refusal.about = path
        raise


def _made(service: Service, source: Source) -> frozenset[str]:
    """The paths of what a folder has made. Raises `FolderRefused` if a folder at another place has its id."""
    folder_id = source.id or read_id(source.folder)
    if folder_id and not is_folder_id(folder_id):
        raise FolderRefused("the id of a folder must be 32 lowercase hexadecimal digits")
    made: set[str] = set()
    if folder_id and (found := asked(service, "GET", f"{APPLIED}/{folder_id}")):
        data = found["data"]
        if (data["path"], data["host"]) != (source.path, source.host) and not source.adopts:
            raise FolderRefused(
                f"a folder in a different place has the id of {source.folder}: {data['path']} on "
                f"{data['host']}. If you moved the folder, take over its objects with --adopt. If it is a "
                "copy, remove its file .cloudid-folder"
            )
        made.update(data["paths"])
    if source.adopts and (former := asked(service, "GET", f"{APPLIED}/{source.former}")):
        made.update(former["data"]["paths"])
    return frozenset(made)
