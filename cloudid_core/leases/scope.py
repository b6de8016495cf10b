"""The leases below a path: those of the mounts that are there now, whatever path is in the ids of the leases.

A lease keeps its id when its mount is moved or disabled. So the mount's id decides which leases a path means, and only
the part of a lease's id that follows the path of its mount is compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from attrs import frozen

from ..effects import ListKeys, ReadEntry
from ..mounts import AUTH, Mount, MountTable
from ..store import keys
from ..tokens import Token

LAST: Final = "\U0010ffff"
"""Sorts after everything that a lease id is made of."""
LOCAL_SEGMENTS: Final = 3
"""How many segments of a lease's id follow the path of its mount: `creds`, the role, and an id."""


@frozen
class Scope:
    """Everything of one mount below a path within it. An empty path means all of it."""

    mount: Mount
    path: str = ""

    @property
    def mount_id(self) -> str:
        return self.mount.id

    @property
    def index(self) -> str:
        """The prefix of the index entries of the mount's leases."""
        return keys.mount_leases(self.mount.id)

    def select(self, index_keys: Sequence[str]) -> list[str]:
        """The ids of the leases in this scope, of a page of the index."""
        lease_ids = [key.removeprefix(self.index) for key in index_keys]
        return [lease_id for lease_id in lease_ids if self._contains(local_path(lease_id))]

    def has_token(self, token: Token) -> bool:
        """Whether a token was issued here that has a lease, as all have that end by themselves."""
        if self.mount.kind != AUTH or token.mount_id != self.mount.id or token.expires_at is None:
            return False
        below = f"{self.mount.path}/"
        moved = not token.path.startswith(below)
        return self._contains(token.path.rpartition("/")[2] if moved else token.path.removeprefix(below))

    def _contains(self, path: str) -> bool:
        return not self.path or f"{path}/".startswith(f"{self.path}/")


def local_path(lease_id: str) -> str:
    """The part of a lease's id that follows the path that its mount had."""
    return "/".join(lease_id.split("/")[-LOCAL_SEGMENTS:])


async def count_leases(scope: Scope, enough: int) -> int:
    """How many leases a scope has, counted until there are `enough`."""
    count, after = 0, ""
    while count < enough and (page := await ListKeys(scope.index, after)):
        count, after = count + len(scope.select(page)), page[-1]
    return min(count, enough)


async def next_level(scope: Scope, path: str, after: str = "", limit: int = 0) -> set[str]:
    """The next segments of the paths of a scope's leases below `path`; with a `limit`, so many of those behind `after`.

    There are more if the mount was moved, or `after` is among them. The levels below are not listed to find them.
    """
    above = f"{path}/" if path else ""
    if scope.mount.path.startswith(above):
        segment = scope.mount.path.removeprefix(above).partition("/")[0]
        return {f"{segment}/"} if await ListKeys(scope.index, "", 1) else set()
    is_of_ids = after.isascii() and after.isprintable()  # a store may refuse what is in no id
    return await _level_within(scope, after if is_of_ids else "", limit)


async def _level_within(scope: Scope, behind: str, limit: int) -> set[str]:
    wanted = f"{scope.path}/" if scope.path else ""
    levels: dict[str, set[str]] = defaultdict(set)
    """Below each path that the mount had: the index has them one after the other."""
    after = ""
    while page := await ListKeys(scope.index, after):
        for key in page:
            head, local = _split(key)
            if not head.startswith(scope.index):  # no lease has this id
                after = key
                continue
            after = f"{head}{local.partition('/')[0]}/{LAST}"
            if not local.startswith(wanted):
                after = min(after, f"{head}{wanted}") if local < wanted else after
                break
            if local < f"{wanted}{behind}":
                after = f"{head}{wanted}{behind}"
                break
            segment, slash, _ = local.removeprefix(wanted).partition("/")
            level = levels[head]
            level.add(segment + slash)
            after = f"{head}{wanted}{segment}/{LAST}" if slash else key
            if 0 < limit < len(level):
                after = f"{head}{wanted}{LAST}"
                break
            if slash:
                break
    return set[str]().union(*levels.values())


async def find_moved(scope: Scope) -> str | None:
    """The id of the lease that a scope's path names, whatever path its mount had when the lease was issued."""
    after = ""
    while page := await ListKeys(scope.index, after, 1):
        head, local = _split(page[0])
        if not head.startswith(scope.index):
            after = page[0]
            continue
        if await ReadEntry(f"{head}{scope.path}"):
            return f"{head}{scope.path}".removeprefix(scope.index)
        after = f"{head}{local.partition('/')[0]}/{LAST}"
    return None


def _split(key: str) -> tuple[str, str]:
    """An entry of the index: all up to a former path of the mount, and the part of the lease's id that follows it."""
    local = local_path(key)
    return key.removesuffix(local), local


def scopes_of(table: MountTable, path: str) -> tuple[Scope, ...]:
    """What a path means: a part of one mount, or all mounts below it. Retired mounts count where no other is."""
    found = table.route(path)
    if found is not None:
        return (Scope(*found),)
    live = tuple(Scope(mount) for mount in table.live if mount.path.startswith(f"{path}/"))
    return live or tuple(
        Scope(mount, path.removeprefix(f"{mount.path}/") if path.startswith(f"{mount.path}/") else "")
        for mount in table.retired.values()
        if f"{mount.path}/".startswith(f"{path}/") or path.startswith(f"{mount.path}/")
    )
