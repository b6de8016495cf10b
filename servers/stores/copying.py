"""Copying: everything that one store holds, into an empty one, while no server uses either."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from cloudid_core.effects import ABSENT, Commit
from cloudid_core.errors import HostFailure, StoreFailed
from cloudid_core.store import keys

from ..common.runtime import Runtime
from . import Store

PAGE: Final = 200
"""Entries that are read at once, and written by one commit."""

LAST: Final = keys.RING
"""Copied last, once all else has been compared: no server opens a store without it, so none opens half a copy."""


async def copy_store(runtime: Runtime, source: Store, target: Store, report: Callable[[str], None]) -> int:
    """Copy and compare; answers how many entries there are. `target` is open already. Raises `StoreFailed`.

    Entries get new versions: nothing that is stored refers to one.
    """
    await source.open(runtime)
    if await target.list("", "", 1):
        raise StoreFailed("the store to copy to is not empty: remove what is there, or choose another")
    ring = await source.read(LAST)
    if ring is None:
        raise StoreFailed("the store to copy from is not initialised")
    count, after = 0, ""
    while page := await _page(runtime, source, after):
        count, after = count + len(page), max(page)
        await target.commit(Commit(dict.fromkeys(page, ABSENT), page))
        report(f"copied: {count} entries")
    await _compare(runtime, source, target, report)
    report("")
    await target.commit(Commit({LAST: ABSENT}, {LAST: ring.value}))
    return count + 1


async def _compare(runtime: Runtime, source: Store, target: Store, report: Callable[[str], None]) -> None:
    count, after = 0, ""
    while True:
        page = await _page(runtime, source, after)
        if page != await _page(runtime, target, after):
            raise StoreFailed("the copy is not the same: something has written meanwhile; remove it and start again")
        if not page:
            return
        count, after = count + len(page), max(page)
        report(f"compared: {count} entries")


async def _page(runtime: Runtime, store: Store, after: str) -> dict[str, bytes]:
    """The next entries but the last one, read at the same time: stores make one request of that."""
    found: dict[str, bytes | HostFailure] = {}
    names = [key for key in await store.list("", after, PAGE + 1) if key != LAST][:PAGE]
    is_read = runtime.new_event()

    async def read(key: str) -> None:
        try:
            entry = await store.read(key)
            found[key] = entry.value if entry else StoreFailed("an entry has gone meanwhile")
        except HostFailure as failure:
            found[key] = failure
        if len(found) == len(names):
            is_read.set()

    for key in names:
        runtime.start(partial(read, key))
    if names:
        await is_read.wait()
    page: dict[str, bytes] = {}
    for key in names:
        value = found[key]
        if isinstance(value, HostFailure):
            raise value
        page[key] = value
    return page
