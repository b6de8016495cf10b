"""Chains of numbered lines with signed checkpoints."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from cloudid_core.audit.chain import CLOSED, EVERY_LINES, EVERY_SECONDS, SIGNATURE, Chain, Lines
from cloudid_core.audit.device import Device

DEVICE = Device(name="file", type="file", key="5a" * 32)


def chain(**options: Any) -> Chain:
    return Chain(DEVICE, "c1", "host:1", **options)


def lines_of(made: Lines) -> list[bytes]:
    return made.content.splitlines()


def parsed(line: bytes) -> Any:
    return msgspec.json.decode(line)


def test_every_line_has_a_number_and_the_hash_of_the_line_before() -> None:
    opened, first, second = lines_of(chain().lines((b'{"a":1}', b'{"b":2}'), 0.0))
    assert parsed(opened)["chain"] == {"id": "c1", "number": 1, "previous": ""}
    place = {"id": "c1", "number": 2, "previous": sha256(opened).hexdigest()}
    assert parsed(first) == {"time": "1970-01-01T00:00:00.000Z", "a": 1, "chain": place}
    assert parsed(second)["chain"] == {"id": "c1", "number": 3, "previous": sha256(first).hexdigest()}


def test_a_checkpoint_is_signed() -> None:
    (line,) = lines_of(chain().checkpoint(0.0))
    unsigned, _, signature = line.removesuffix(b'"}').rpartition(SIGNATURE)
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(parsed(line)["key"]))
    key.verify(bytes.fromhex(signature.decode()), unsigned + b"}")
    assert parsed(line)["key"] == DEVICE.public_key


def test_lines_that_were_not_written_leave_the_chain_as_it_was() -> None:
    tried = chain()
    before = tried.lines((b'{"a":1}',), 0.0).content
    assert tried.lines((b'{"a":1}',), 0.0).content == before
    assert not tried.is_open


def test_a_checkpoint_follows_after_some_time_or_many_lines() -> None:
    kept = chain()
    kept.keep(kept.lines((b'{"a":1}',), 0.0))
    assert kept.lines((b'{"a":1}',), 1.0).checkpoints == []
    assert len(kept.lines((b'{"a":1}',), EVERY_SECONDS).checkpoints) == 1
    assert len(kept.lines((b'{"a":1}',) * EVERY_LINES, 1.0).checkpoints) == 1


@pytest.mark.parametrize("before", [0, 1, 999, 1000])
@pytest.mark.parametrize("count", [1, 999, 1000, 1001, 4096])
def test_no_turn_writes_more_lines_without_a_checkpoint_than_a_verifier_accepts(before: int, count: int) -> None:
    kept = chain()
    made = []
    for size in (before, count):
        made.append(kept.lines((b'{"a":1}',) * size, 0.0))
        kept.keep(made[-1])
    stretches, stretch = [], 0
    for line in [line for lines in made for line in lines_of(lines)]:
        stretch = 0 if b'"checkpoint"' in line else stretch + 1
        stretches.append(stretch)
    assert max(stretches) <= EVERY_LINES
    assert stretches[-1] < EVERY_LINES


@pytest.mark.parametrize("leap", [3600.0, -3600.0])
def test_lines_that_waited_while_the_clock_leapt_are_signed_before_the_next_ones(leap: float) -> None:
    kept = chain()
    kept.keep(kept.lines((b'{"a":1}',), 7200.0))
    types = [parsed(line).get("state", "entry") for line in lines_of(kept.lines((b'{"b":1}',), 7200.0 + leap))]
    assert types == ["running", "entry"]


def test_a_failed_write_leaves_the_last_line_that_is_whole() -> None:
    tried = chain()
    made = tried.lines((b'{"a":1}',), 0.0)
    opened, entry = lines_of(made)
    assert made.head_within(len(opened)) is None
    head = made.head_within(len(opened) + len(entry))
    assert head is not None
    assert (head.number, head.hash) == (1, sha256(opened).hexdigest())


def test_a_checkpoint_follows_though_the_clock_was_set_back() -> None:
    kept = chain()
    kept.keep(kept.lines((b'{"a":1}',), 3600.0))
    assert kept.lines((b'{"a":1}',), 1.0).checkpoints
    kept.keep(kept.lines((b'{"a":1}',), 3601.0))
    assert kept.is_unsigned(1.0)


def test_nothing_is_signed_twice() -> None:
    kept = chain()
    kept.keep(kept.lines((b'{"a":1}',), 0.0))
    kept.keep(kept.checkpoint(1.0))
    assert not kept.is_unsigned(1.0 + 10 * EVERY_SECONDS)


def test_the_end_of_a_chain_is_signed() -> None:
    kept = chain()
    kept.keep(kept.lines((b'{"a":1}',), 0.0))
    end = kept.checkpoint(1.0, CLOSED)
    assert parsed(end.content)["state"] == "closed"
    kept.keep(end)
    assert not kept.is_open


def test_a_chain_tells_what_it_follows() -> None:
    old = chain()
    old.keep(old.lines((b'{"a":1}',), 0.0))
    (line,) = lines_of(chain(follows=old.head).checkpoint(0.0, "opened"))
    assert parsed(line)["follows"] == {"id": "c1", "number": 2, "hash": old.hash.decode()}


def test_a_chain_without_a_line_hands_on_what_it_follows() -> None:
    old = chain()
    old.keep(old.lines((b'{"a":1}',), 0.0))
    assert chain(follows=old.head).head == old.head
