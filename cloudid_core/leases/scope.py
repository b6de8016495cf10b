"""The leases below a path. Current mounts decide which they are, whatever path is in the ids of the leases.

A lease keeps its id when its mount is moved or disabled. So the mount is found by its id, and only the part of a
lease's id after the mount's path is compared.
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
"""Sorts after all characters of lease ids."""
LOCAL_SEGMENTS: Final = 3
"""Number of segments in a lease's id after the mount's path: `creds`, the role, and an id."""


@frozen
class Scope:
    """All leases of one mount below a path within it. An empty path means all of them."""

    mount: Mount
    path: str = ""

    @property
    def mount_id(self) -> str:
        return self.mount.id

    @property
    def index(self) -> str:
        """Return the prefix of the index entries of the mount's leases."""
        return keys.mount_leases(self.mount.id)

    def select(self, index_keys: Sequence[str]) -> list[str]:
        """Return the lease ids in this scope, from a page of the index."""
        lease_ids = [key.removeprefix(self.index) for key in index_keys]
        return [lease_id for lease_id in lease_ids if self._contains(local_path(lease_id))]

    def has_token(self, token: Token) -> bool:
        """Return whether a token with a lease was issued here. All tokens that expire have one."""
        if self.mount.kind != AUTH or token.mount_id != self.mount.id or token.expires_at is None:
            return False
        below = f"{self.mount.path}/"
        moved = not token.path.startswith(below)
        return self._contains(token.path.rpartition("/")[2] if moved else token.path.removeprefix(below))

    def _contains(self, path: str) -> bool:
        return not self.path or f"{path}/".startswith(f"{self.path}/")


def local_path(lease_id: str) -> str:
    """Return the part of a lease's id after the path that its mount had at the time."""
    return "/".join(lease_id.split("/")[-LOCAL_SEGMENTS:])


async def count_leases(scope: Scope, enough: int) -> int:
    """Count the leases of a scope, until there are `enough`."""
    count, after = 0, ""
    while count < enough and (page := await ListKeys(scope.index, after)):
        count, after = count + len(scope.select(page)), page[-1]
    return min(count, enough)


async def next_level(scope: Scope, path: str, after: str = "", limit: int = 0) -> set[str]:
    """Return the next segments of the paths of a scope's leases below `path`, at most `limit` of them after `after`.

    There are more if the mount was moved, or if `after` is among them. Deeper levels are not listed.
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
    """The levels below each path that the mount had, which are consecutive in the index."""
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
    """Return the id of the lease with a scope's path, whatever path its mount had when the lease was issued."""
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
    """Split an index entry into the former path of the mount and the rest of the lease's id."""
    local = local_path(key)
    return key.removesuffix(local), local


def scopes_of(table: MountTable, path: str) -> tuple[Scope, ...]:
    """Return what a path means: a part of one mount, or all mounts below it.

    Retired mounts are included where there is no live one.
    """
    found = table.route(path)
    if found is not None:
        return (Scope(*found),)
    live = tuple(Scope(mount) for mount in table.live if mount.path.startswith(f"{path}/"))
    return live or tuple(
        Scope(mount, path.removeprefix(f"{mount.path}/") if path.startswith(f"{mount.path}/") else "")
        for mount in table.retired.values()
        if f"{mount.path}/".startswith(f"{path}/") or path.startswith(f"{mount.path}/")
    )
