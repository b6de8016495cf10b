"""Named records: objects of a mount whose names requests choose, with their common routes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from attrs import frozen

from ..effects import Program
from ..errors import Code, Refused
from ..forms import Json, Schema
from ..messages import DELETE, LIST, NOTHING, READ, WRITE, Answer
from ..store import Changes, keys, retry_on_conflict
from .answers import Answers
from .routes import Call, Route, capture_name

T = TypeVar("T")


@frozen(kw_only=True)
class NamedRecords(Generic[T]):
    """The records of one type, for example the roles of a mount. A damaged record can be overwritten."""

    path: str
    form: type[T]
    changed: Callable[[Call, T], Program[tuple[T, tuple[str, ...]]]]
    """Return a record with the given fields, after checking its rules, and warnings for the writer."""
    shown: Callable[[str, T], dict[str, Json]]
    """Return the members of a record by its name."""
    members: Schema

    def routes(self, write: str, delete: str = "Deletes a role.") -> tuple[Route, ...]:
        """Return the routes. The texts describe a write and a deletion."""
        one = f"{self.path}/:name"
        return (
            Route(one, WRITE, retry_on_conflict(self.write), write, form=self.form, exists=self.exists),
            Route(one, READ, self.read, "Reads a role.", answers=Answers(data=self.members)),
            Route(one, DELETE, self.delete, delete),
            Route(self.path, LIST, self.names, "Lists the names of all roles."),
        )

    async def write(self, call: Call) -> Answer:
        key = _key(call)
        found, expects = await call.context.records.find_for_writing(key, self.form)
        record, warnings = await self.changed(call, found.record if found else self.form())
        await call.context.records.commit(Changes(expects, {key: record}))
        return Answer(warnings=warnings)

    async def read(self, call: Call) -> Answer:
        found = await call.context.records.find(_key(call), self.form)
        if found is None:
            raise Refused(Code.NOT_FOUND)
        return Answer(data=self.shown(capture_name(call), found.record))

    async def delete(self, call: Call) -> Answer:
        await call.context.records.update(_key(call), self.form, lambda _: None)
        return NOTHING

    async def names(self, call: Call) -> Answer:
        return Answer(data={"keys": await call.context.records.names(keys.roles(call.mount.id))})

    async def exists(self, call: Call) -> bool:
        return await call.context.records.has(_key(call))


def _key(call: Call) -> str:
    return keys.role(call.mount.id, capture_name(call))
