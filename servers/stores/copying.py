"""Copying: everything that one store holds, into an empty one, while no server uses either."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cloudid_core.effects import ABSENT, Commit
from cloudid_core.errors import StoreFailed
from cloudid_core.store import keys

from ..runtime import Runtime
from .store import Store

PAGE: Final = 100
"""Entries that are read at once, and written by one commit: no more than every store takes."""

LAST: Final = keys.RING
"""Copied last, once all else has been compared: no server opens a store without it, so none opens half a copy."""


async def copy_store(runtime: Runtime, source: Store, target: Store, report: Callable[[str], None]) -> int:
    """Copy and compare; answers how many entries there are. `target` is open already. Raises `StoreFailed`.

    Entries get new versions: nothing that is stored refers to one.
    """
    await source.open(runtime)
    if await target.list("", "", 1):
        raise StoreFailed("the target store is not empty: empty it, or choose a different one")
    ring = await source.read(LAST)
    if ring is None:
        raise StoreFailed("the source store is not initialised")
    count, after = 0, ""
    while page := await _page(source, after):
        count, after = count + len(page), max(page)
        await target.commit(Commit(dict.fromkeys(page, ABSENT), page))
        report(f"copied: {count} entries")
    await _compare(source, target, report)
    report("")
    await source.commit(Commit({LAST: ring.version}, {}))  # fails if the source is no longer ours alone
    await target.commit(Commit({LAST: ABSENT}, {LAST: ring.value}))
    return count + 1


async def _compare(source: Store, target: Store, report: Callable[[str], None]) -> None:
    count, after = 0, ""
    while True:
        page = await _page(source, after)
        if page != await _page(target, after):
            raise StoreFailed(
                "the copy differs, because a process has written to a store: remove the copy and start again"
            )
        if not page:
            return
        count, after = count + len(page), max(page)
        report(f"compared: {count} entries")


async def _page(store: Store, after: str) -> dict[str, bytes]:
    """The next entries but the last one."""
    names = [key for key in await store.list("", after, PAGE + 1) if key != LAST][:PAGE]
    found = await store.read_all(names)
    if len(found) != len(names):
        raise StoreFailed("an entry was deleted during the copy")
    return {key: found[key].value for key in names}
