"""Chains: numbered lines, each with the hash of the line before it, and signed checkpoints among them.

A line is a JSON object that ends in its place in the chain, `"chain":{"id":…,"number":…,"previous":…}}` and a newline.
`previous` is the SHA-256 of the line before, without its newline; the first line of a chain has number 1 and none.
A checkpoint's `signature` comes last and is made over the line without it. An attacker who changes, leaves out
or reorders a line has to sign all later checkpoints again. The first one has the installation's `origin`: no other line
may begin a file that a device appends to.
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
"""How many lines, and how long, may go by without a checkpoint."""

MOST_SECONDS: Final = 60.0
"""Most seconds from the first to the last line between two checkpoints. A verifier reports more; see `Chain.lines`."""

OPENED: Final = "opened"
RUNNING: Final = "running"
CLOSED: Final = "closed"
"""States of a chain, as its checkpoints tell them."""

SIGNATURE: Final = b',"signature":"'
_encode: Final = msgspec.json.Encoder().encode


class _Place(msgspec.Struct):
    id: str


class _First(msgspec.Struct):
    """What is read of the first line of a file."""

    chain: _Place
    key: str
    origin: str = ""

    def __repr__(self) -> str:
        return f"<_First of {self.chain.id}>"


_decode_first: Final = msgspec.json.Decoder(_First).decode


def is_signed(line: bytes, key: str) -> bool:
    """Whether a line without its newline ends in the signature of this public key over what comes before it."""
    unsigned, found, rest = line.rpartition(SIGNATURE)
    try:
        public_key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
        public_key.verify(bytes.fromhex(rest.removesuffix(b'"}').decode()), unsigned + b"}")
    except (InvalidSignature, ValueError):
        return False
    return bool(found)


def is_ours(device: Device, first_line: bytes) -> bool:
    """Whether the first line of a file was signed by this device, or by another one of its installation."""
    try:
        first = _decode_first(first_line)
    except (ValueError, RecursionError):
        return False
    origin = device.origin_of(first.chain.id, first.key)
    is_known = first.key == device.public_key or (origin and hmac.compare_digest(origin, first.origin))
    return bool(is_known) and is_signed(first_line, first.key)


class Head(msgspec.Struct, frozen=True):
    """The newest line of a chain at some time."""

    id: str
    number: int
    hash: str


def _is_due(lines: int, now: float, signed_at: float) -> bool:
    """Whether so many lines since the last checkpoint need one."""
    return lines >= EVERY_LINES or (lines > 0 and abs(now - signed_at) >= EVERY_SECONDS)


class Chain:
    """The chain of one device in one process. Its state goes on by `keep`, when lines have been written."""

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
        """What tells a line's place, once the line's number and the hash of the line before are put in."""
        self._device = device
        self._process = process
        self.follows = follows
        """The last line that was there when the chain began, of whatever chain."""
        self.saw = saw
        """The newest lines of the other chains without an end that were there. `None`: no file was looked at."""
        self.unsure = unsure
        """How many more lines of the chain that it follows were sent, and may have arrived or not."""
        self.ends = ends
        """The chain that its process wrote before; no line of that follows."""
        self.signed_number = 0
        self.signed_at: float = 0.0
        self.is_closed = False

    @property
    def is_open(self) -> bool:
        """Whether its first line has been written and its last has not."""
        return self.number > 0 and not self.is_closed

    def is_unsigned(self, now: float) -> bool:
        """Whether a checkpoint is due."""
        return _is_due(self.number - self.signed_number, now, self.signed_at)

    def lines(self, texts: Sequence[bytes], now: float) -> Lines:
        """Entries as the next lines, with the chain's first checkpoint before them and each one that is due.

        Lines that have waited too long for a checkpoint get it before the new ones, as after the clock leapt or the
        machine slept. So a verifier can report a longer stretch of lines without one: no server writes it.
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
        """A checkpoint alone. The state `closed` says that no line follows."""
        made = Lines(self)
        made.sign(state, now)
        return made

    def keep(self, lines: Lines) -> None:
        """Go on behind these lines: they have been written. Raises `ValueError` for lines of another chain."""
        if lines.chain is not self:
            raise ValueError("the lines belong to another chain")
        self.number, self._previous = lines.number, lines.previous
        self.signed_number, self.signed_at = lines.signed_number, lines.signed_at
        self.is_closed = lines.is_last

    @property
    def head(self) -> Head | None:
        """Its newest line, or what it follows while it has none."""
        return Head(self.id, self.number, self._previous.decode()) if self.number else self.follows

    def facts(self, state: str, now: float) -> dict[str, object]:
        """What a checkpoint tells beside its place."""
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
    """Lines that a chain may go on with, once they are written."""

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
        """The newest line of the chain once so many bytes of the content are written."""
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
        """What is to be written."""
        return b"\n".join((*self._lines, b""))
