"""A folder is applied: the difference is planned first, then written. The service remembers what the folder made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from cloudid_core.rotation import MADE_HERE

from ..client import Service, ServiceRefused
from .change import Change, asked, changes, remember, remembered
from .files import below, no_longer_in, read_folder

CERTAIN: Final = 500
"""A refusal with a lower status has changed nothing; behind another the change may have been made."""


@frozen
class Plan:
    """What applying a folder changes."""

    name: str
    """What the service knows the folder by."""

    changes: tuple[Change, ...]
    unchanged: int
    made: frozenset[str]
    """What the folder has made until now."""

    removed: tuple[str, ...]
    left: tuple[str, ...]
    """The folder made it and does not have it any more, and it stays."""

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
            yield {"path": path, "field": "", "is": "(made by this folder)", "becomes": "(removed)"}


def plan(
    service: Service,
    folder: Path,
    variables: Mapping[str, str],
    *,
    name: str = "",
    prunes: bool = False,
    prunes_mounts: bool = False,
) -> Plan:
    """What is to be done for the service to be what a folder says. Raises `FolderRefused`."""
    declared, name = read_folder(folder), name or folder.resolve().name
    missing = changes(service, declared, variables)
    made = remembered(service, name)
    gone = tuple(no_longer_in(declared, made, with_mounts=prunes_mounts))
    removed, left = (gone, ()) if prunes or prunes_mounts else ((), gone)
    return Plan(name, tuple(missing), len(declared) - len(missing), made, removed, left)


def carry_out(
    service: Service, plan: Plan, warn: Callable[[str], object], *, replaces_root_secret: bool = False
) -> None:
    """Do it. `warn` gets the warnings of the service. A `ServiceRefused` says in `about` which path it is about.

    What is about to be made is remembered before: whoever is killed leaves nothing that a later `--prune` misses.
    """
    making = {change.declared.path for change in plan.changes if change.makes}
    if not making <= plan.made:
        remember(service, plan.name, plan.made | making)
    for number, change in enumerate(plan.changes):
        path = change.declared.path
        try:
            warnings = change.write(service, replaces_root_secret=replaces_root_secret)
        except ServiceRefused as refusal:
            refusal.about = path
            if refusal.status < CERTAIN and making:
                unmade = {each.declared.path for each in plan.changes[number:]}
                remember(service, plan.name, plan.made | (making - unmade))
            raise
        for warning in warnings:
            warn(f"{path}: {warning}")
    for path in plan.removed:
        try:
            asked(service, "DELETE", path)
        except ServiceRefused as refusal:
            refusal.about = path
            raise
    if plan.removed:
        ended = {each for each in plan.made for path in plan.removed if each == path or each.startswith(below(path))}
        remember(service, plan.name, (plan.made | making) - ended)
