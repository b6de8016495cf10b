"""What a token did, read out of audit logs."""

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
    """An object of an entry."""

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
    """What is read of a line."""

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
    """One request that a token had a part in."""

    time: str
    part: str
    """`caller`: the token made it; `issued`: its answer gave the token; `named`: a field was about the token."""
    operation: str
    path: str
    outcome: str
    remote_address: str
    request_id: str


@define
class Trace:
    """Reads logs in any order. `sought`: the token, its accessor and their keyed hashes, as logs may show them."""

    sought: Collection[str] = field(repr=False)
    lines: int = 0
    unread: int = 0
    """Lines that are no entries."""
    sees_hashes: bool = False
    """Whether a caller is shown by a keyed hash somewhere."""
    _steps: dict[str, Step] = Factory(dict)

    def read(self, lines: Iterable[bytes]) -> None:
        """Read one file. Entries that several devices or files have count once."""
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
        """In the order of time, which all entries have in one form."""
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
