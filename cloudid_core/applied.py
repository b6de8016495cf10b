"""Track which folder of files created an object, so that pruning a folder deletes nothing else.

`cloudid apply` sends the folder's id with each write. The commit that creates an object also records the folder as its
creator. If a write without that folder recreates the object, its commit removes the record. Clients never send lists of
paths: every recorded object was created by an authorised write, and is deleted by an authorised deletion.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final

from attrs import evolve, frozen
from msgspec.structs import replace

from .context import Due
from .effects import ABSENT, ListKeys, Program
from .errors import Code, EntryDamaged, Refused
from .messages import DELETE, READ, WRITE, Answer
from .mounts import SYSTEM, MountTable, mount_table
from .routing import Call, Route, RouteTable, without_alias
from .store import Changes, Found, Records, keys, retry_on_conflict
from .values import fold

HEADER: Final = "x-service-applied-folder"
"""The header that names the folder of a write or deletion."""
PATH: Final = "applied"
"""The path below `sys` where folders are claimed and read. Requests with the header need `update` and `sudo` there."""
MOST_FOLDERS: Final = 256
MOST_PATHS: Final = 10_000
"""Maximum number of objects of a folder."""
LONGEST_PATH: Final = 512
"""Maximum length of a path, in characters."""
PAGE: Final = 32
"""Maximum number of paths that one commit changes: each takes several entries, and etcd limits a transaction."""

_ID: Final = re.compile("[0-9a-f]{32}")
_MOUNTS: Final = {f"{SYSTEM.path}/auth/": "auth/", f"{SYSTEM.path}/mounts/": ""}
"""The paths below which mounts are created, and where these mounts are."""


@frozen(kw_only=True)
class Folder:
    """A claimed folder. The path and the host identify it, so that a copy of the folder is detected."""

    path: str
    host: str
    count: int = 0
    """How many objects the folder has created. Every commit that records or removes an object changes it."""


@frozen(kw_only=True)
class Made:
    """The creator of an object."""

    folder: str
    """The folder's id."""
    path: str
    """The path as the write spelled it."""
    mount_id: str
    """The mount of the object. A different mount at the same path has different objects."""


def is_folder_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def object_path(path: str) -> str:
    """Return the canonical path of an object, however a request spells it."""
    return fold(without_alias(path))


def mount_id_of(table: MountTable, path: str) -> str:
    """Return the id of the mount to which the object at a path belongs, or which it is. Empty if there is none."""
    for prefix, above in _MOUNTS.items():
        if path.startswith(prefix):
            mount = table.by_path.get(above + path.removeprefix(prefix))
            return mount.id if mount else ""
    at = table.route(path)
    return at[0].id if at else ""


async def made_by(records: Records, folder_id: str) -> list[str]:
    """Return the sorted paths of the objects that a folder has created and still owns."""
    prefix = keys.all_made_by(folder_id)
    named = [keys.made(path) for path in await records.names(prefix)]
    found = await records.find_undamaged(named, Made)
    table = (await mount_table(records)).record
    return sorted(each.record.path for each in found if _is_current(each.record, folder_id, table))


def _is_current(made: Made, folder_id: str, table: MountTable) -> bool:
    return made.folder == folder_id and made.mount_id == mount_id_of(table, made.path)


@retry_on_conflict
async def claim(records: Records, folder_id: str, path: str, host: str, *, adopts: bool) -> None:
    """Claim a folder's id.

    Refuse with `FOLDER_CLAIMED` if a folder elsewhere has the same id and `adopts` is not set.
    """
    key = keys.folder(folder_id)
    found, expects = await records.find_for_writing(key, Folder)
    if found is None and len(await records.names(keys.FOLDERS)) >= MOST_FOLDERS:
        raise Refused(Code.FOLDERS_TOO_MANY)
    if found is None:
        count = len(await records.names(keys.all_made_by(folder_id)))  # not 0 where the folder's entry was damaged
    elif (found.record.path, found.record.host) == (path, host):
        return
    elif not adopts:
        raise Refused(Code.FOLDER_CLAIMED)
    else:
        count = found.record.count
    await records.commit(Changes(expects, {key: Folder(path=path, host=host, count=count)}))


async def forget(records: Records, folder_id: str) -> None:
    """Remove all records of a folder. Its objects stay."""
    while not await _forget_some(records, folder_id):
        pass


@retry_on_conflict
async def _forget_some(records: Records, folder_id: str) -> bool:
    """Remove some records. Return whether none is left."""
    prefix = keys.all_made_by(folder_id)
    folder, expects = await records.find_for_writing(keys.folder(folder_id), Folder)
    index = await ListKeys(prefix, "", PAGE)
    if not index:
        await records.commit(Changes(expects, {}, (keys.folder(folder_id),)))
        return True
    made = await records.find_undamaged([keys.made(key.removeprefix(prefix)) for key in index], Made)
    own = tuple(each.key for each in made if each.record.folder == folder_id)
    versions = {each.key: each.version for each in made if each.record.folder == folder_id}
    left = {keys.folder(folder_id): _counted(folder.record, -len(index))} if folder else {}
    await records.commit(Changes({**expects, **versions}, left, (*index, *own)))
    return False


@retry_on_conflict
async def adopt_paths(records: Records, folder_id: str, paths: tuple[str, ...]) -> None:
    """Take over a few paths from a record of an earlier version, except those that belong to another folder."""
    folder = await _folder(records, folder_id)
    mounts = await mount_table(records)
    expects, puts = {**folder.expected, **mounts.expected}, dict[str, object]()
    added = 0
    for path in paths:
        key, mount_id = keys.made(object_path(path)), mount_id_of(mounts.record, path)
        if mount_id and key not in puts and not await records.has(key):
            expects[key] = ABSENT
            puts[key] = Made(folder=folder_id, path=path, mount_id=mount_id)
            puts[keys.made_by(folder_id, object_path(path))] = Due()
            added += 1
    if folder.record.count + added > MOST_PATHS:
        raise Refused(Code.FOLDER_FULL)
    await records.commit(Changes(expects, {**puts, folder.key: _counted(folder.record, added)}))


def _counted(folder: Folder, added: int) -> Folder:
    return Folder(path=folder.path, host=folder.host, count=max(0, folder.count + added))


async def _folder(records: Records, folder_id: str) -> Found[Folder]:
    found = await records.find_fresh(keys.folder(folder_id), Folder)
    if found is None:
        raise Refused(Code.FOLDER_UNKNOWN)
    return found


@frozen
class Tracked:
    """A write or deletion of an object whose creator is recorded."""

    call: Call
    route: Route
    reading: Route | None
    """The call that reads the object, if reading shows whether it exists."""
    path: str
    folder_id: str = ""
    """The folder of the request. Empty: none."""

    @property
    def records(self) -> Records:
        return self.call.context.records

    @property
    def key(self) -> str:
        return keys.made(object_path(self.path))

    async def answer(self, _: Call) -> Answer:
        """Run the route's program.

        Refuse with `NOT_MADE_BY_FOLDER` if the folder would delete an object of another creator.
        """
        if self.folder_id:
            await _folder(self.records, self.folder_id)
        return await (self._written() if self.route.operation is WRITE else self._deleted())

    async def _written(self) -> Answer:
        try:
            return await self._run(self._of_write)
        except Refused:
            if self.folder_id and not await self._is_there():
                found, _ = await self._found()
                await self._forget(found)  # what an earlier commit of the program recorded
            raise

    async def _deleted(self) -> Answer:
        before, _ = await self._found()
        if not self.folder_id:
            answer = await self.route.program(self.call)
        else:
            table = (await mount_table(self.records)).record
            if before is None or not _is_current(before.record, self.folder_id, table):
                raise Refused(Code.NOT_MADE_BY_FOLDER)
            answer = await self._run(partial(self._of_deletion, before))
        await self._forget(before)
        return answer

    def _run(self, added: Callable[[Changes], Program[Changes]]) -> Program[Answer]:
        context = evolve(self.call.context, records=self.records.with_added(added))
        return self.route.program(replace(self.call, context=context))

    async def _of_write(self, changes: Changes) -> Changes:
        """Return the additions to a write's commit. They are computed again whenever the program repeats its commit."""
        found, expects = await self._found()
        if (found is None and not self.folder_id) or await self._is_there():
            return Changes()
        made = Made(folder=self.folder_id, path=without_alias(self.path), mount_id=self._mount_id(changes))
        if found is not None and found.record == made:
            return Changes()
        dropped = await self._dropping(found)
        if not (self.folder_id and made.mount_id):
            return dropped
        folder = await _folder(self.records, self.folder_id)
        is_again = found is not None and found.record.folder == self.folder_id
        if folder.record.count >= MOST_PATHS or len(self.path) > LONGEST_PATH:
            raise Refused(Code.FOLDER_FULL)
        index = keys.made_by(self.folder_id, object_path(self.path))
        puts = {self.key: made, index: Due(), folder.key: _counted(folder.record, not is_again)}
        return dropped | Changes({**folder.expected, **expects}, puts)

    async def _of_deletion(self, before: Found[Made], _: Changes) -> Changes:
        """Return what a folder's deletion expects: that no one has recreated the object."""
        found, expects = await self._found()
        if found is None or found.version != before.version:
            raise Refused(Code.NOT_MADE_BY_FOLDER)
        return Changes(expects)

    def _mount_id(self, changes: Changes) -> str:
        """Return the mount of the new object. A mount itself is in the table that the commit writes."""
        if not self.path.startswith(tuple(_MOUNTS)):
            return self.call.mount.id
        table = changes.puts.get(keys.MOUNTS)
        return mount_id_of(table, self.path) if isinstance(table, MountTable) else ""

    async def _is_there(self) -> bool:
        try:
            if self.route.exists is not None:
                return await self.route.exists(self.call)
            if self.reading is not None:
                exchange = replace(self.call.exchange, operation=READ)
                await self.reading.program(replace(self.call, exchange=exchange))
                return True
        except Refused:
            pass
        except EntryDamaged:
            return True
        return False

    def _found(self) -> Program[tuple[Found[Made] | None, dict[str, int]]]:
        return self.records.find_for_writing(self.key, Made)

    async def _dropping(self, found: Found[Made] | None) -> Changes:
        """Return the change that removes a record, or no change."""
        if found is None:
            return Changes()
        key = keys.folder(found.record.folder)
        folder, expects = await self.records.find_for_writing(key, Folder)
        puts = {key: _counted(folder.record, -1)} if folder else {}
        deletes = (self.key, keys.made_by(found.record.folder, object_path(self.path)))
        return Changes({**expects, **found.expected}, puts, deletes)

    @retry_on_conflict
    async def _forget(self, before: Found[Made] | None) -> None:
        """Remove the record of a deleted object, unless a new record was written since."""
        found, _ = await self._found() if before else (None, {})
        if before is not None and found is not None and found.version == before.version:
            await self.records.commit(await self._dropping(found))


def tracked(call: Call, route: Route, table: RouteTable, path: str) -> Tracked | None:
    """Return the tracked call if it creates or deletes an object.

    Return `None` for all other calls, whatever their headers.
    """
    if route.path not in table.kept or (call.mount.id == SYSTEM.id and route.path.startswith(f"{PATH}/")):
        return None
    if route.operation not in (WRITE, DELETE):
        return None
    folder_id = call.headers.get(HEADER, "")
    if folder_id and not is_folder_id(folder_id):
        raise Refused(Code.MALFORMED_REQUEST, "X-Service-Applied-Folder must be 32 lowercase hexadecimal digits")
    reading = next((row for row in table.routes if row.path == route.path and row.operation is READ), None)
    return Tracked(call, route, reading, path, folder_id)
