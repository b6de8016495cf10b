"""Hostile inputs: none costs a decoder much more than an ordinary input of the same size.

What counts is CPU, as a ratio within one run: how fast the machine is, and what else it does, plays no part.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
import pytest
from attrs import frozen

from cloudid_core.api.request import parse_body
from cloudid_core.errors import Refused
from cloudid_core.values.json_text import MOST_CONTAINERS, MOST_VALUES

KIB: Final = 1024
MOST: Final = 20
"""So many times the CPU of an ordinary input is too much."""

ROUNDS: Final = 5
"""Of which the quickest counts."""


@frozen
class Decoder:
    """What reads an input, and inputs for it. Each is as long as the ordinary one, or a little shorter."""

    read: Callable[[Any], object]
    ordinary: bytes | str
    hostile: Mapping[str, bytes | str]


def filled(size: int, unit: bytes, start: bytes = b"", end: bytes = b"") -> bytes:
    """As many units as there is room for, between start and end; the last comma goes."""
    return start + (unit * ((size - len(start) - len(end)) // len(unit))).removesuffix(b",") + end


def ordinary_object(letter: str = "a") -> bytes:
    """Ten members of twenty letters."""
    return msgspec.json.encode({f"{letter * 19}{number}": letter * 20 for number in range(10)})


def up_to_the_bound(size: int, unit: bytes) -> bytes:
    """An array of as many units as `json_text` reads, and a long text."""
    containers = unit.count(b"[") + unit.count(b"{")
    most = (MOST_CONTAINERS - 2) // containers if containers else MOST_VALUES - 3
    units = unit * min(most, (size - 16) // len(unit))
    return b'{"a":[' + units + b'"' + b"a" * (size - len(units) - 10) + b'"]}'


def hostile_json(size: int) -> dict[str, bytes]:
    """Objects with one member whose value takes the decoder's slowest ways."""
    elements = {
        "floats of the slow path": b"1e308,",
        "floats below the normal ones": b"2.2250738585072011e-308,",
        "floats of many digits": b"0." + b"1" * 300 + b",",
        "long integers": b"1" * 4000 + b",",
        "integers of 65 bits": b"18446744073709551616,",
        "small integers": b"1,",
        "empty arrays": b"[],",
        "empty objects": b"{},",
        "empty texts": b'"",',
        "short texts": b'"a",',
        "nested arrays": b"[" * 30 + b"]" * 30 + b",",
        "nested objects": b'{"":' * 30 + b"0" + b"}" * 30 + b",",
        "nulls": b"null,",
        "objects of one member": b'{"":0},',
    }
    texts = {
        "escaped characters": b"\\u0041",
        "surrogate pairs": b"\\ud83d\\ude00",
        "line ends": b"\\n",
        "backslashes": b"\\\\",
        "escaped quotes and commas": b'\\",',
        "commas": b",",
        "characters of four bytes": "😀".encode(),
    }
    numbers = (size - 16) // 12
    return {
        **{name: filled(size, unit, b'{"a":[', b"]}") for name, unit in elements.items()},
        **{f"as many {name} as are allowed": up_to_the_bound(size, unit) for name, unit in elements.items()},
        **{name: filled(size, unit, b'{"a":"', b'"}') for name, unit in texts.items()},
        "the same member again": filled(size, b'"a":0,', b"{", b"}"),
        "many members": b"{" + b",".join(b'"%07d":0' % number for number in range(numbers)) + b"}",
        "one long number": filled(size, b"1", b'{"a":0.', b"}"),
        "one long integer": filled(size, b"1", b'{"a":', b"}"),
        "deep arrays": filled(size, b"["),
        "deep objects": filled(size, b'{"":'),
        "blanks": filled(size, b" ", b'{"a":', b"0}"),
        "quotes": filled(size, b'"'),
        "a text without an end": filled(size, b"\\", b'{"a":"'),
    }


def body(size: int) -> Decoder:
    ordinary = filled(size, ordinary_object() + b",", b'{"a":[', b"]}")
    return Decoder(lambda raw: parse_body(raw, size), ordinary, hostile_json(size))


DECODERS: Final[Mapping[str, Decoder]] = {
    "a body of 64 KiB": body(64 * KIB),
    "a body of 1 MiB": body(KIB * KIB),
}


def cpu(decoder: Decoder, raw: bytes | str) -> float:
    """Seconds of CPU that reading an input takes, the quickest of some rounds. A refusal is an answer, too."""

    def once() -> float:
        begun = time.thread_time()
        with suppress(Refused, ValueError):
            decoder.read(raw)
        return time.thread_time() - begun

    gc.collect()
    gc.freeze()  # what other tests have left costs nothing here
    try:
        return min(once() for _ in range(ROUNDS))
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("name", DECODERS)
def test_no_input_costs_much_more_than_an_ordinary_one(name: str) -> None:
    decoder = DECODERS[name]
    assert decoder.read(decoder.ordinary), "an ordinary input is read"
    usual = cpu(decoder, decoder.ordinary)
    ratios = {kind: round(cpu(decoder, raw) / usual, 1) for kind, raw in decoder.hostile.items()}
    assert {kind: ratio for kind, ratio in ratios.items() if ratio >= MOST} == {}


@pytest.mark.parametrize("name", DECODERS)
def test_hostile_inputs_are_as_long_as_the_ordinary_one(name: str) -> None:
    decoder = DECODERS[name]
    assert {kind: len(raw) for kind, raw in decoder.hostile.items() if len(raw) > 1.05 * len(decoder.ordinary)} == {}
