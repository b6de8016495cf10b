"""Chains: numbered lines, each with the hash of the previous line, with signed checkpoints among them.

A line is a JSON object that ends with its place in the chain, `"chain":{"id":…,"number":…,"previous":…}}`, and a
newline. `previous` is the SHA-256 of the previous line without its newline. The first line of a chain has number 1 and
no `previous`. A checkpoint's `signature` is its last member and covers the rest of the line. An attacker who changes,
removes or reorders a line has to sign all later checkpoints again. The first checkpoint has the installation's
`origin`: a device only appends to a file that begins with such a line.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ..values import rfc3339
from .device import Device

EVERY_LINES: Final = 1000
EVERY_SECONDS: Final = 10.0
"""Maximum number of lines between two checkpoints."""

MOST_SECONDS: Final = 60.0
"""Maximum seconds between two checkpoints. A verifier reports longer gaps; see `Chain.lines`."""

OPENED: Final = "opened"
RUNNING: Final = "running"
CLOSED: Final = "closed"
"""The states of a chain in its checkpoints."""

SIGNATURE: Final = b',"signature":"'
_encode: Final = msgspec.json.Encoder().encode


class _Place(msgspec.Struct):
    id: str


class _First(msgspec.Struct):
    """The parts of a file's first line that are needed."""

    chain: _Place
    key: str
    origin: str = ""

    def __repr__(self) -> str:
        return f"<_First of {self.chain.id}>"


_decode_first: Final = msgspec.json.Decoder(_First).decode


def is_signed(line: bytes, key: str) -> bool:
    """Return whether a line, without its newline, ends in a signature by this public key over the rest of the line."""
    unsigned, found, rest = line.rpartition(SIGNATURE)
    try:
        public_key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
        public_key.verify(bytes.fromhex(rest.removesuffix(b'"}').decode()), unsigned + b"}")
    except (InvalidSignature, ValueError):
        return False
    return bool(found)


def is_ours(device: Device, first_line: bytes) -> bool:
    """Return whether the first line of a file was signed by a device of this installation."""
    try:
        first = _decode_first(first_line)
    except (ValueError, RecursionError):
        return False
    origin = device.origin_of(first.chain.id, first.key)
    is_known = first.key == device.public_key or (origin and hmac.compare_digest(origin, first.origin))
    return bool(is_known) and is_signed(first_line, first.key)


class Head(msgspec.Struct, frozen=True):
    """The newest line of a chain at some point in time."""

    id: str
    number: int
    hash: str


def _is_due(lines: int, now: float, signed_at: float) -> bool:
    """Return whether this many lines since the last checkpoint require one."""
    return lines >= EVERY_LINES or (lines > 0 and abs(now - signed_at) >= EVERY_SECONDS)


class Chain:
    """The chain of one device in one process. `keep` updates it after lines were written."""

    def __init__(
        self,
        device: Device,
        chain_id: str,
        process: str,
        follows: Head | None = None,
        *,
        saw: Sequence[Head] | None = None,
        unsure: int = 0,
        ends: str = "",
    ) -> None:
        self.id = chain_id
        self.number = 0
        self._previous = b""
        self.place = b',"chain":{"id":"%s","number":%%d,"previous":"%%s"}' % chain_id.encode()
        """The end of a line, into which the line's number and the hash of the previous line are inserted."""
        self._device = device
        self._process = process
        self.follows = follows
        """The last existing line when the chain started, of whichever chain."""
        self.saw = saw
        """The newest lines of the other open chains at that time. `None`: the file was not read."""
        self.unsure = unsure
        """How many more lines of the previous chain were sent, and may or may not have arrived."""
        self.ends = ends
        """The chain that the same process wrote before, to which no line is added any more."""
        self.signed_number = 0
        self.signed_at: float = 0.0
        self.is_closed = False

    @property
    def is_open(self) -> bool:
        """Return whether its first line is written and its last line is not."""
        return self.number > 0 and not self.is_closed

    def is_unsigned(self, now: float) -> bool:
        """Return whether a checkpoint is required."""
        return _is_due(self.number - self.signed_number, now, self.signed_at)

    def lines(self, texts: Sequence[bytes], now: float) -> Lines:
        """Return entries as the next lines, with the chain's first checkpoint and all other required checkpoints.

        If earlier lines have waited too long for a checkpoint, for example because the clock jumped or the machine
        slept, it precedes the new lines. So a verifier can report a longer gap: no server writes one.
        """
        made = Lines(self)
        if not self.number:
            made.sign(OPENED, now)
        elif self.is_unsigned(now):
            made.sign(RUNNING, now)
        first = EVERY_LINES - (made.number - made.signed_number)
        for start, end in pairwise((0, *range(first, len(texts), EVERY_LINES), len(texts))):
            made.add(texts[start:end], now)
            if _is_due(made.number - made.signed_number, now, made.signed_at):
                made.sign(RUNNING, now)
        return made

    def checkpoint(self, now: float, state: str = RUNNING) -> Lines:
        """Return only a checkpoint. The state `closed` means that no line follows."""
        made = Lines(self)
        made.sign(state, now)
        return made

    def keep(self, lines: Lines) -> None:
        """Continue after these lines, which were written. Raise `ValueError` for lines of another chain."""
        if lines.chain is not self:
            raise ValueError("the lines belong to another chain")
        self.number, self._previous = lines.number, lines.previous
        self.signed_number, self.signed_at = lines.signed_number, lines.signed_at
        self.is_closed = lines.is_last

    @property
    def head(self) -> Head | None:
        """Return its newest line, or the line that it follows if it has none yet."""
        return Head(self.id, self.number, self._previous.decode()) if self.number else self.follows

    def facts(self, state: str, now: float) -> dict[str, object]:
        """Return the members of a checkpoint besides its place."""
        facts: dict[str, object] = {
            "type": "checkpoint",
            "time": rfc3339.show_now(now),
            "state": state,
            "device": self._device.name,
            "process": self._process,
            "key": self._device.public_key,
        }
        if state == OPENED:
            if origin := self._device.origin_of(self.id, self._device.public_key):
                facts["origin"] = origin
            facts["every_lines"] = EVERY_LINES
            if self.follows is not None:
                facts["follows"] = self.follows
            if self.saw is not None:
                facts["saw"] = self.saw
            if self.unsure:
                facts["unsure"] = self.unsure
            if self.ends:
                facts["ends"] = self.ends
        return facts

    def signature(self, line: bytes) -> bytes:
        return SIGNATURE + self._device.signer.sign(line).hex().encode() + b'"'

    @property
    def hash(self) -> bytes:
        """The hash of its newest line, in hexadecimal digits."""
        return self._previous


class Lines:
    """Lines with which a chain continues once they are written."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self._lines: list[bytes] = []
        self.number, self.previous = chain.number, chain.hash
        self.checkpoints: list[bytes] = []
        self.signed_number, self.signed_at = chain.signed_number, chain.signed_at
        self.is_last = False

    def add(self, texts: Sequence[bytes], now: float) -> None:
        """Append entries: JSON objects, not empty."""
        form = b'{"time":"%s",%%s%s}' % (rfc3339.show_now(now).encode(), self.chain.place)
        for text in texts:
            self._append(form % (text[1:-1], self.number + 1, self.previous))

    def sign(self, state: str, now: float) -> None:
        """Append a checkpoint."""
        text = _encode(self.chain.facts(state, now))
        unsigned = text[:-1] + self.chain.place % (self.number + 1, self.previous)
        line = unsigned + self.chain.signature(unsigned + b"}") + b"}"
        self._append(line)
        self.checkpoints.append(line + b"\n")
        self.signed_number, self.signed_at, self.is_last = self.number, now, state == CLOSED

    def head_within(self, size: int) -> Head | None:
        """Return the newest line of the chain after this many bytes of the content were written."""
        written = self.content[:size].splitlines(keepends=True)
        if written and not written[-1].endswith(b"\n"):
            written.pop()
        if not written:
            return self.chain.head
        last = written[-1].removesuffix(b"\n")
        return Head(self.chain.id, self.chain.number + len(written), sha256(last).hexdigest())

    def _append(self, line: bytes) -> None:
        self.number += 1
        self.previous = sha256(line).hexdigest().encode()
        self._lines.append(line)

    @property
    def content(self) -> bytes:
        """Return the bytes to write."""
        return b"\n".join((*self._lines, b""))
