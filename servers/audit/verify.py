"""The verifier: are audit logs exactly what a server wrote, line by line, with nothing missing?

Each chain must begin with a signed line and continue without a gap. Its lines are protected up to its last checkpoint,
or up to the line that the signed beginning of a later chain names. The rest is its unsigned end. A server leaves an
unsigned end only if it was killed, and never a long one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Final

import msgspec
from attrs import Factory, define, field, frozen

from cloudid_core.audit.chain import CLOSED, EVERY_LINES, MOST_SECONDS, OPENED, Head, is_signed
from cloudid_core.values import rfc3339


class _Place(msgspec.Struct):
    id: str
    number: int
    previous: str


class _Line(msgspec.Struct):
    """What the verifier reads of a line."""

    chain: _Place
    time: str = ""
    type: str = ""
    state: str = ""
    key: str = ""
    process: str = ""
    every_lines: int = 0
    follows: Head | None = None
    saw: list[Head] | None = None
    unsure: int = 0
    ends: str = ""


class _Unchained(msgspec.Struct):
    """The members that an entry has even without a place in a chain."""

    type: str


read_line: Final = msgspec.json.Decoder(_Line).decode
_read_unchained: Final = msgspec.json.Decoder(_Unchained).decode
CHECKPOINT: Final = "checkpoint"
TYPES: Final = frozenset({"request", "response", CHECKPOINT})
TAIL: Final = 2**20
"""Bytes at the end of a file that are read when a chain begins there, to find the line that it follows."""

SEEN: Final = TAIL // 2
"""If the last line of a chain is within this distance of a beginning, it was certainly read completely."""

MOST_UNREAD: Final = 20
"""Maximum lines that are not entries and are reported one by one."""


@frozen
class Finding:
    """Something that an operator should know. `where` has the form `audit.log:17`."""

    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


@define
class Chain:
    """A chain, as far as it was read."""

    id: str
    where: str
    hashes: dict[int, str] = Factory(dict)
    last: int = 0
    signed: int = 0
    key: str = ""
    is_closed: bool = False
    is_over: bool = False
    """Whether its process continued with another chain."""
    process: str = ""
    is_bounded: bool = False
    """Whether its beginning promises a checkpoint after a number of lines.

    Earlier versions wrote all lines of a turn first.
    """
    earliest: str = ""
    latest: str = ""
    """The times of the lines since its last checkpoint."""
    file: int = 0
    end: int = 0
    """The file of its last line, and the position in bytes where that line ends."""
    read_at: int = 0
    """The number of lines, of all chains, that had been read before its last one."""
    denied: int = 0
    """The number of a line that did not exist, according to the signed beginning of a later chain."""
    is_surely_denied: bool = False
    """Whether the current version wrote that beginning.

    Earlier versions did not know how much of a failed write had arrived.
    """

    @property
    def unsigned(self) -> int:
        """Return the number of lines without a later checkpoint."""
        return self.last - self.signed


@frozen
class _Follow:
    """The newest line of a chain, as the signed beginning of a later chain names it."""

    where: str
    chain: str
    head: Head
    is_direct: bool
    """Whether it is the line directly before the beginning."""
    is_read: bool
    """Whether it was read before the beginning."""


@define
class Report:
    problems: list[Finding] = Factory(list)
    notes: list[Finding] = Factory(list)
    chains: dict[str, Chain] = Factory(dict)
    lines: int = 0


@define
class Verifier:
    """Reads files in the order in which they were written.

    `key` is the only public key whose checkpoints are accepted.
    """

    key: str = ""
    accepts_open_end: bool = False
    """Whether a chain without an end is accepted, because its process is still running."""
    checkpoints_since: float = 0.0
    """Chains whose checkpoints are all earlier may be missing, because their files were removed deliberately."""
    report: Report = Factory(Report)
    _follows: list[_Follow] = field(factory=list)
    _missing: set[str] = field(factory=set)
    _open: dict[str, Chain] = field(factory=dict)
    """The chains without an end."""
    _beginnings: list[tuple[int, str]] = field(factory=list)
    """For each signed beginning, the number of lines read before it, and the chain that it follows."""
    _file: int = 0
    _size: int = 0
    """The number of bytes of the file that were read."""
    _unread: int = 0

    def finish(self, checkpoints: Iterable[tuple[str, bytes]]) -> Report:
        """Judge the ends of the chains, also by checkpoints that were saved elsewhere."""
        attested = self._attested()
        for where, text in checkpoints:
            self._compare(where, text)
        for chain in self._open.values():
            self._judge_end(chain, attested.get(chain.id, 0))
        if (more := self._unread - MOST_UNREAD) > 0:
            self._note("-", f"{more} more lines are not entries: is this a different file?")
        if self._unread and not (self.report.chains or self.report.problems):
            self.report.notes.clear()
            self._problem("-", "no line is an entry of an audit log: name a different file")
        elif not self.report.chains:
            self._problem("-", "there are no entries")
        return self.report

    def begin_file(self) -> None:
        """Begin another file: the next lines belong to it."""
        self._file, self._size = self._file + 1, 0

    def read(self, where: str, text: bytes) -> None:
        self._size += len(text) + 1
        try:
            line = read_line(text)
        except (ValueError, RecursionError):
            self._note_unread(where, text)
            return
        self.report.lines += 1
        place = line.chain
        chain = self.report.chains.get(place.id)
        if chain is None:
            chain = self._begin(where, line)
        if chain.is_closed:
            self._problem(where, f"chain {place.id} continues after its end")
        if chain.is_over:
            self._problem(where, f"chain {place.id} continues after its process had started another chain")
        if place.number != chain.last + 1:
            self._problem(where, _jump(chain, place))
        elif place.previous != chain.hashes.get(chain.last, ""):
            self._problem(where, f"the line before number {place.number} of chain {place.id} was changed")
        chain.last = max(chain.last, place.number)
        chain.hashes[place.number] = sha256(text).hexdigest()
        chain.file, chain.end, chain.read_at = self._file, self._size, self.report.lines
        if line.type == CHECKPOINT:
            self._take_checkpoint(where, text, line, chain)
        elif not chain.earliest:
            chain.earliest = chain.latest = line.time
        else:
            chain.earliest, chain.latest = min(chain.earliest, line.time), max(chain.latest, line.time)

    def _note_unread(self, where: str, text: bytes) -> None:
        """A failed write leaves the beginning of a line, which is never an object.

        An entry without a place in a chain is an object.
        """
        try:
            is_entry = _read_unchained(text).type in TYPES
        except (ValueError, RecursionError):
            is_entry = False
        if is_entry:
            self._problem(where, "an entry that is in no chain: it was added, or damaged")
            return
        self._unread += 1
        if self._unread <= MOST_UNREAD:
            self._note(where, "not an entry: left by a failed write, or added by hand")

    def _begin(self, where: str, line: _Line) -> Chain:
        place = line.chain
        chain = self.report.chains[place.id] = self._open[place.id] = Chain(place.id, where)
        if place.number != 1:
            self._problem(where, f"chain {place.id} starts at number {place.number}: earlier lines are missing")
            chain.last, chain.hashes[place.number - 1] = place.number - 1, place.previous
        elif line.type != CHECKPOINT or line.state != OPENED:
            self._problem(where, f"chain {place.id} does not start with a signed line")
        return chain

    def _take_checkpoint(self, where: str, text: bytes, line: _Line, chain: Chain) -> None:
        if not self._is_signed(text, line):
            self._problem(where, "the checkpoint's signature is not valid")
            return
        if chain.key and chain.key != line.key:
            self._problem(where, f"chain {chain.id} changes its key")
        if line.chain.number == 1 and line.state == OPENED:
            self._take_beginning(where, line, chain)
        elif long := _too_long(chain, line.chain.number - chain.signed - 1):
            report = self._problem if chain.is_bounded else self._note
            report(where, f"{long} of chain {chain.id} before this checkpoint have no checkpoint among them")
        chain.key, chain.process = line.key, line.process
        chain.signed, chain.earliest, chain.latest = line.chain.number, "", ""
        if line.state == CLOSED:
            chain.is_closed = True
            self._open.pop(chain.id, None)

    def _take_beginning(self, where: str, line: _Line, chain: Chain) -> None:
        """A chain begins with a signed line, which may name the newest lines of earlier chains."""
        self._beginnings.append((self.report.lines, line.follows.id if line.follows else ""))
        chain.is_bounded = line.every_lines > 0
        heads = [*((line.follows,) if line.follows else ()), *(line.saw or ())]
        for head in heads:
            before = self.report.chains.get(head.id)
            is_read = before is not None and head.number <= before.last
            self._follows.append(_Follow(where, chain.id, head, head is line.follows, is_read))
        if (ended := self._open.get(line.ends)) is not None:
            ended.is_over = True
        named = {head.id: head.number for head in heads}
        if line.follows is not None:
            followed = self._open.get(line.follows.id)
            unsure = line.unsure if followed is not None else 0
            if followed is not None and followed.last > line.follows.number + unsure:
                followed.denied, followed.is_surely_denied = followed.last, chain.is_bounded
        if line.saw is not None:
            for other in self._open.values():
                is_seen = other.file == self._file and self._size - other.end < SEEN
                if is_seen and other is not chain and other.last > named.get(other.id, 0):
                    other.denied, other.is_surely_denied = other.last, True

    def _is_followed(self, chain: Chain) -> bool:
        """Return whether another chain begins after this one with nothing missing in between."""
        place = bisect_left(self._beginnings, (chain.read_at + 1, ""))
        if place == len(self._beginnings):
            return False
        _, follows = self._beginnings[place]
        return not follows or follows in self.report.chains

    def _judge_end(self, chain: Chain, attested: int) -> None:
        """Judge a chain without an end. Its process was killed or still runs, or the end was cut off or forged."""
        if attested >= chain.last:
            return
        end = (
            f"chain {chain.id} ({chain.process or 'unknown process'}) has no end after number "
            f"{chain.last}: lines were removed, or its process was killed or still runs; {chain.unsigned} "
            "lines have no checkpoint"
        )
        if long := _too_long(chain, chain.unsigned):
            self._problem(chain.where, f"{long} at the end of chain {chain.id} have no checkpoint: they were added")
        elif chain.denied > max(chain.signed, attested) and (chain.is_surely_denied or not self.accepts_open_end):
            self._problem(
                chain.where,
                f"number {chain.denied} of chain {chain.id} was added: it did not exist when a later chain started",
            )
        elif self.accepts_open_end or self._is_followed(chain):
            self._note(chain.where, end)
        else:
            self._problem(chain.where, end)

    def _is_signed(self, text: bytes, line: _Line) -> bool:
        """Return whether the accepted key signed the line.

        The signature covers the line without the signature itself.
        """
        return (not self.key or line.key == self.key) and is_signed(text, line.key)

    def _attested(self) -> dict[str, int]:
        """For each chain, the number of its last line according to the signed beginning of a later chain."""
        attested: dict[str, int] = {}
        for follow in self._follows:
            where, head = follow.where, follow.head
            chain = self.report.chains.get(head.id)
            if chain is None:
                if follow.is_direct:
                    self._note(where, f"chain {follow.chain} follows chain {head.id}, which is not in these files")
            elif chain.last < head.number:
                self._problem(
                    chain.where, f"chain {head.id} ends with number {chain.last}, but number {head.number} was written"
                )
            elif chain.hashes.get(head.number) != head.hash:
                self._problem(
                    where, f"number {head.number} of chain {head.id} is not the line that chain {follow.chain} saw"
                )
            elif not follow.is_read:
                self._problem(
                    where,
                    f"chain {follow.chain} follows number {head.number} of chain {head.id}, which comes later: lines "
                    "were reordered, or the files are not named in the order in which they were written",
                )
            else:
                attested[head.id] = max(head.number, attested.get(head.id, 0))
        return attested

    def _compare(self, where: str, text: bytes) -> None:
        try:
            line = read_line(text)
        except (ValueError, RecursionError):
            self._note(where, "no checkpoint")
            return
        keys = {self.key} if self.key else {chain.key for chain in self.report.chains.values()}
        begins = line.key not in keys and line.state == OPENED and line.chain.number == 1
        if line.type != CHECKPOINT or (begins and is_signed(text, line.key)):
            return  # the device that keeps checkpoints of others begins a file with one of its own, under its own key
        if not self._is_signed(text, line):
            self._problem(where, "the checkpoint's signature is not valid")
            return
        place = line.chain
        chain = self.report.chains.get(place.id)
        if chain is None:
            self._note_missing(where, line)
        elif chain.last < place.number:
            self._problem(
                where,
                f"chain {place.id} is truncated: it ends with number {chain.last}, but had at least "
                f"{place.number} lines",
            )
        elif chain.hashes.get(place.number) != sha256(text).hexdigest():
            self._problem(where, f"number {place.number} of chain {place.id} is not this checkpoint")

    def _note_missing(self, where: str, line: _Line) -> None:
        """Report that the chain of a checkpoint is missing, at its first checkpoint after the given time."""
        is_expected = _instant(line.time) >= self.checkpoints_since
        if (line.chain.id in self._missing) or not (is_expected or line.state == OPENED):
            return
        text = f"its chain {line.chain.id} is not in these files"
        if is_expected:
            self._missing.add(line.chain.id)
            self._problem(where, text)
        else:
            self._note(where, text)

    def _problem(self, where: str, text: str) -> None:
        self.report.problems.append(Finding(where, text))

    def _note(self, where: str, text: str) -> None:
        self.report.notes.append(Finding(where, text))


def _jump(chain: Chain, place: _Place) -> str:
    if place.number <= chain.last:
        return f"number {place.number} of chain {chain.id} comes after number {chain.last}: reordered or repeated"
    missing = place.number - chain.last - 1
    return f"{missing} lines of chain {chain.id} are missing before number {place.number}"


def _too_long(chain: Chain, lines: int) -> str:
    """Return how many lines or seconds a chain has without a checkpoint, if these are more than a server allows."""
    if lines > EVERY_LINES:
        return f"{lines} lines"
    if lines and (seconds := _instant(chain.latest) - _instant(chain.earliest)) > MOST_SECONDS:
        return f"{lines} lines from {seconds:.0f} s"
    return ""


def _instant(text: str) -> float:
    """Return seconds since the epoch, or 0 for a text that is not a time, which is far from all real times."""
    try:
        return rfc3339.parse(text)
    except ValueError:
        return 0.0


def verify(
    files: Sequence[tuple[str, Iterable[bytes]]],
    *,
    key: str = "",
    checkpoints: Sequence[tuple[str, Iterable[bytes]]] = (),
    checkpoints_since: float = 0.0,
    accepts_open_end: bool = False,
) -> Report:
    """Verify files, each with its name, in the order in which they were written.

    The chains of all checkpoints since an instant must be present. Without saved checkpoints, nothing shows whether
    whole chains, or lines after the last checkpoint, were removed.
    """
    verifier = Verifier(key=key.lower(), accepts_open_end=accepts_open_end, checkpoints_since=checkpoints_since)
    for name, lines in files:
        verifier.begin_file()
        for where, text in _lines([(name, lines)]):
            verifier.read(where, text)
    return verifier.finish(_lines(checkpoints))


def _lines(files: Sequence[tuple[str, Iterable[bytes]]]) -> Iterator[tuple[str, bytes]]:
    """Return each line with its place."""
    for name, lines in files:
        for number, line in enumerate(lines, 1):
            yield f"{name}:{number}", line.removesuffix(b"\n")
