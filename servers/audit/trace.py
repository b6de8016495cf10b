"""Find out from audit logs what a token did."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

import msgspec
from attrs import Factory, define, field

from cloudid_core.audit.hashing import PREFIX

CALLER: Final = "caller"
ISSUED: Final = "issued"
NAMED: Final = "named"
DONE: Final = "done"
UNANSWERED: Final = "no response recorded"
HASHING: Final = "sys/audit-hash/"
"""Requests there name what is looked for in logs: they do nothing to it."""


class _Members(msgspec.Struct):
    """An object in an entry."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class _Token(_Members):
    client_token: str = ""
    accessor: str = ""


class _Request(_Members):
    id: str = ""
    operation: str = ""
    path: str = ""
    client_token: str = ""
    client_token_accessor: str = ""
    remote_address: str = ""
    data: dict[str, Any] = {}


class _Response(_Members):
    auth: _Token | None = None


class _Entry(_Members):
    """The members of a line that are read."""

    time: str = ""
    type: str = ""
    auth: _Token | None = None
    request: _Request | None = None
    response: _Response | None = None
    error: str = ""
    error_codes: list[str] = []


_decode: Final = msgspec.json.Decoder(_Entry).decode


@define
class Step:
    """A request that involved a token."""

    time: str
    part: str
    """`caller`: the token made the request. `issued`: the response had it. `named`: a field named it."""
    operation: str
    path: str
    outcome: str
    remote_address: str
    request_id: str


@define
class Trace:
    """Reads logs in any order.

    `sought` contains the token, its accessor and their keyed hashes, in the forms that logs may contain.
    """

    sought: Collection[str] = field(repr=False)
    lines: int = 0
    unread: int = 0
    """The number of lines that are not entries."""
    sees_hashes: bool = False
    """Whether an entry identifies a caller by a keyed hash."""
    _steps: dict[str, Step] = Factory(dict)

    def read(self, lines: Iterable[bytes]) -> None:
        """Read a file. Entries that several devices or files contain count once."""
        for raw in lines:
            self.lines += 1
            try:
                entry = _decode(raw)
            except (ValueError, RecursionError):
                self.unread += 1
                continue
            if entry.request is not None:
                self._take(entry, entry.request)

    @property
    def steps(self) -> list[Step]:
        """Return the steps by time. All entries write times in the same form."""
        return sorted(self._steps.values(), key=lambda step: (step.time, step.request_id))

    def _take(self, entry: _Entry, request: _Request) -> None:
        caller = entry.auth or _Token()
        shown = {caller.client_token, caller.accessor, request.client_token, request.client_token_accessor}
        self.sees_hashes = self.sees_hashes or any(text.startswith(PREFIX) for text in shown)
        part = self._part(shown, request, entry.response)
        known = self._steps.get(request.id)
        is_answer = entry.type == "response"
        if not part or (known is not None and not is_answer):
            return
        self._steps[request.id] = Step(
            time=known.time if known else entry.time,
            part=part,
            operation=request.operation,
            path=request.path,
            outcome=(", ".join(entry.error_codes) or entry.error or DONE) if is_answer else UNANSWERED,
            remote_address=request.remote_address,
            request_id=request.id,
        )

    def _part(self, shown: set[str], request: _Request, response: _Response | None) -> str:
        if not shown.isdisjoint(self.sought):
            return CALLER
        given = response.auth if response is not None else None
        if given is not None and not {given.client_token, given.accessor}.isdisjoint(self.sought):
            return ISSUED
        if request.path.startswith(HASHING):
            return ""
        if any(isinstance(value, str) and value in self.sought for value in request.data.values()):
            return NAMED
        return ""
