"""The verifier: whether audit logs are what a server wrote, line by line, and nothing is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Final

import msgspec
from attrs import Factory, define, field, frozen

from cloudid_core.audit.chain import CLOSED, OPENED, Head, is_signed


class _Place(msgspec.Struct):
    id: str
    number: int
    previous: str


class _Line(msgspec.Struct):
    """What the verifier reads of a line."""

    chain: _Place
    type: str = ""
    state: str = ""
    key: str = ""
    process: str = ""
    follows: Head | None = None


read_line: Final = msgspec.json.Decoder(_Line).decode
CHECKPOINT: Final = "checkpoint"
MOST_UNREAD: Final = 20
"""Lines that are no entries and are noted one by one."""


@frozen
class Finding:
    """Something that an operator should know. `where` is like `audit.log:17`."""

    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


@define
class Chain:
    """One chain as far as it was read."""

    id: str
    where: str
    hashes: dict[int, str] = Factory(dict)
    last: int = 0
    signed: int = 0
    key: str = ""
    is_closed: bool = False
    process: str = ""


@define
class Report:
    problems: list[Finding] = Factory(list)
    notes: list[Finding] = Factory(list)
    chains: dict[str, Chain] = Factory(dict)
    lines: int = 0


@define
class Verifier:
    """Reads files in the order in which they were written. `key`: the only public key whose checkpoints count."""

    key: str = ""
    accepts_open_end: bool = False
    """A chain without an end is no problem: its process still runs, or was killed."""
    report: Report = Factory(Report)
    _follows: list[tuple[str, str, Head]] = field(factory=list)
    _unread: int = 0

    def finish(self, checkpoints: Iterable[tuple[str, bytes]]) -> Report:
        """Judge the ends of the chains, also by checkpoints that were kept elsewhere."""
        attested = self._attested()
        for where, text in checkpoints:
            self._compare(where, text)
        for chain in self.report.chains.values():
            if not chain.is_closed and attested.get(chain.id, 0) < chain.last:
                told = (
                    f"chain {chain.id} ({chain.process or 'unknown process'}) has no end after number {chain.last}: it "
                    f"was cut off, or its process was killed or still runs; {chain.last - chain.signed} lines have no "
                    "checkpoint"
                )
                (self._note if self.accepts_open_end else self._problem)(chain.where, told)
        if (more := self._unread - MOST_UNREAD) > 0:
            self._note("-", f"{more} more lines are no entries: is it another file?")
        if not self.report.chains:
            self._problem("-", "there is no entry")
        return self.report

    def read(self, where: str, text: bytes) -> None:
        try:
            line = read_line(text)
        except (ValueError, RecursionError):
            self._unread += 1
            if self._unread <= MOST_UNREAD:
                self._note(where, "no entry: what a failed write left, or added by hand")
            return
        self.report.lines += 1
        place = line.chain
        chain = self.report.chains.get(place.id)
        if chain is None:
            chain = self.report.chains[place.id] = Chain(place.id, where)
            if place.number != 1:
                self._problem(where, f"chain {place.id} begins with number {place.number}: what was before is missing")
                chain.last, chain.hashes[place.number - 1] = place.number - 1, place.previous
        if chain.is_closed:
            self._problem(where, f"chain {place.id} goes on behind its end")
        if place.number != chain.last + 1:
            self._problem(where, _jump(chain, place))
        elif place.previous != chain.hashes.get(chain.last, ""):
            self._problem(where, f"the line before number {place.number} of chain {place.id} was changed")
        chain.last = max(chain.last, place.number)
        chain.hashes[place.number] = sha256(text).hexdigest()
        if line.type == CHECKPOINT:
            self._take_checkpoint(where, text, line, chain)

    def _take_checkpoint(self, where: str, text: bytes, line: _Line, chain: Chain) -> None:
        if not self._is_signed(text, line):
            self._problem(where, "the checkpoint's signature does not hold")
            return
        if chain.key and chain.key != line.key:
            self._problem(where, f"chain {chain.id} changes its key")
        if line.chain.number == 1 and line.follows is not None:
            self._follows.append((where, line.chain.id, line.follows))
        chain.key, chain.process = line.key, line.process
        chain.signed, chain.is_closed = line.chain.number, line.state == CLOSED

    def _is_signed(self, text: bytes, line: _Line) -> bool:
        """The signature is made over the line without it, and by the key that counts."""
        return (not self.key or line.key == self.key) and is_signed(text, line.key)

    def _attested(self) -> dict[str, int]:
        """By chain the number of the line that a later chain's signed beginning says to have been its last."""
        attested: dict[str, int] = {}
        for where, follower, head in self._follows:
            chain = self.report.chains.get(head.id)
            if chain is None:
                self._note(where, f"chain {follower} follows chain {head.id}, which is in none of these files")
            elif chain.hashes.get(head.number) == head.hash:
                attested[head.id] = max(head.number, attested.get(head.id, 0))
            elif chain.last < head.number:
                self._problem(
                    chain.where, f"chain {head.id} ends with number {chain.last}, but number {head.number} was written"
                )
            else:
                self._problem(
                    where, f"number {head.number} of chain {head.id} is not the line that chain {follower} saw"
                )
        return attested

    def _compare(self, where: str, text: bytes) -> None:
        try:
            line = read_line(text)
        except (ValueError, RecursionError):
            self._note(where, "no checkpoint")
            return
        begins = bool(self.key) and line.key != self.key and line.state == OPENED and line.chain.number == 1
        if line.type != CHECKPOINT or (begins and is_signed(text, line.key)):
            return  # the device that keeps checkpoints of others begins a file with one of its own, under its own key
        if not self._is_signed(text, line):
            self._problem(where, "the checkpoint's signature does not hold")
            return
        place = line.chain
        chain = self.report.chains.get(place.id)
        if chain is None:
            self._note(where, f"its chain {place.id} is in none of these files")
        elif chain.last < place.number:
            self._problem(
                where,
                f"chain {place.id} was cut off: it ends with number {chain.last}, and had at least {place.number}",
            )
        elif chain.hashes.get(place.number) != sha256(text).hexdigest():
            self._problem(where, f"number {place.number} of chain {place.id} is not this checkpoint")

    def _problem(self, where: str, text: str) -> None:
        self.report.problems.append(Finding(where, text))

    def _note(self, where: str, text: str) -> None:
        self.report.notes.append(Finding(where, text))


def _jump(chain: Chain, place: _Place) -> str:
    if place.number <= chain.last:
        return f"number {place.number} of chain {chain.id} comes after number {chain.last}: reordered or repeated"
    missing = place.number - chain.last - 1
    return f"{missing} lines of chain {chain.id} are missing before number {place.number}"


def verify(
    files: Sequence[tuple[str, Iterable[bytes]]],
    *,
    key: str = "",
    checkpoints: Sequence[tuple[str, Iterable[bytes]]] = (),
    accepts_open_end: bool = False,
) -> Report:
    """Verify files, each with its name, in the order in which they were written."""
    verifier = Verifier(key=key.lower(), accepts_open_end=accepts_open_end)
    for where, text in _lines(files):
        verifier.read(where, text)
    return verifier.finish(_lines(checkpoints))


def _lines(files: Sequence[tuple[str, Iterable[bytes]]]) -> Iterator[tuple[str, bytes]]:
    """Each with its place."""
    for name, lines in files:
        for number, line in enumerate(lines, 1):
            yield f"{name}:{number}", line.removesuffix(b"\n")
