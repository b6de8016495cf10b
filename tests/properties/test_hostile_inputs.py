"""Hostile inputs: none costs a decoder much more than an ordinary input of the same size.

What counts is CPU, as a ratio within one run: how fast the machine is, and what else it does, plays no part.
"""

from __future__ import annotations

import gc
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
import pytest
from attrs import frozen

from cloudid_core.auth_method import claims, jws
from cloudid_core.caches import Bounded, Caches
from cloudid_core.effects import HttpResponse
from cloudid_core.errors import ProviderProblem, Refused
from cloudid_core.forms.fields import IDENTIFIERS, NETWORKS, SCHEDULE, SECONDS, FieldType
from cloudid_core.messages.request import parse_body
from cloudid_core.policies import document
from cloudid_core.provider import responses
from cloudid_core.secrets_engine.grants import GROUP_GRANTS, ROLE_GRANTS
from cloudid_core.settings import Settings
from cloudid_core.values.json_text import MOST_CONTAINERS, MOST_VALUES, decode_own
from cloudid_core.values.secret import Secret
from cloudid_servers.http1.heads import Heads
from cloudid_servers.http1.reader import Reader

KIB: Final = 1024
MIB: Final = KIB * KIB
MOST: Final = 20
"""So many times the CPU of an ordinary input is too much."""

ROUNDS: Final = 2
"""Of which the quickest counts."""

TRIES: Final = 100
"""On a busy machine not each of them shows what an input costs."""


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


def json_field(field: FieldType[Any], element: dict[str, str], size: int) -> Decoder:
    """A field that takes JSON as a text."""
    unit = msgspec.json.encode(element) + b","
    hostile = {name: raw.decode() for name, raw in hostile_json(size).items()}
    inner = {name: raw.removeprefix('{"a":').removesuffix("}") for name, raw in hostile.items()}
    return Decoder(field.parse, filled(size, unit, b"[", b"]").decode(), hostile | inner)


def policy(ordinary: str, hostile: Mapping[str, str]) -> Decoder:
    return Decoder(lambda text: document.parse("p", text).rules, ordinary, hostile)


def json_policy(size: int) -> Decoder:
    rule = b'{"secret/data/team/application/*":{"capabilities":["create","read","update","list"]}},'
    ordinary = filled(size, rule, b'{"path":[', b"]}").decode()
    return policy(ordinary, {name: raw.decode() for name, raw in hostile_json(size).items()})


def hcl_policy(size: int) -> Decoder:
    rule = 'path "secret/data/team/application/*" {\n  capabilities = ["create", "read", "update", "list"]\n}\n'
    units = {
        "small numbers": "1,",
        "nested lists": "[",
        "blocks": "a{}",
        "nested blocks": "a {",
        "labels": 'a ""',
        "names": "a ",
        "assignments": "a=1 ",
        "line ends": "\n",
        "comments": "#\n",
        "comments in lines": "/**/",
        "open comments": "/*",
        "quotes": '"',
        "backslashes": "\\",
        "dollars": "$",
        "dashes": "-",
        "digits": "1",
    }
    starts = {
        "": "",
        " in a list": "a = [",
        " in a text": 'a = "',
        " in a heredoc": "a = <<E\n",
        " in a block": "path x {",
    }
    hostile = {
        f"{kind}{where}": start + unit * ((size - 9) // len(unit))
        for kind, unit in units.items()
        for where, start in starts.items()
    }
    return policy(rule * (size // len(rule)), hostile)


def head_of_token(size: int) -> Decoder:
    ordinary = msgspec.json.encode(
        {"alg": "RS256", "kid": "k"} | {f"{number:020}": "a" * 20 for number in range((size - 40) // 46)}
    )
    hostile = {name: b'{"alg":"RS256","kid":"k",' + raw[1:] for name, raw in hostile_json(size - 30).items()}

    def read(raw: bytes) -> object:
        return jws.decode(urlsafe_b64encode(raw).rstrip(b"=") + b".e30", b"e30", b"", Bounded(1))

    return Decoder(read, ordinary, hostile)


def claims_of_token(size: int) -> Decoder:
    usual = {"iss": "i", "aud": "a", "tid": "t", "oid": "o", "exp": 1.0, "groups": ["g" * 36] * ((size - 200) // 39)}
    start = msgspec.json.encode(usual | {"groups": []})[:-1] + b","
    hostile = {name: start + raw[1:] for name, raw in hostile_json(size - 64).items()}
    members = {
        f"{name} in {member}": start + b'"%s":' % member.encode() + raw.removeprefix(b'{"a":')
        for name, raw in hostile_json(size - 64).items()
        for member in ("groups", "_claim_names", "exp", "aud")
    }
    caches = Caches(Settings(master_key=Secret("00" * 32)))

    def read(raw: bytes) -> object:
        caches.groups.clear()
        return claims.read(raw, caches)

    return Decoder(read, msgspec.json.encode(usual), hostile | members)


def http_head(size: int) -> Decoder:
    start = b"POST /v1/auth/cloud/login HTTP/1.1\r\nhost: a\r\n"
    units = {
        "the same header again": b"a:b\r\n",
        "empty headers": b"a:\r\n",
        "blanks": b" ",
        "commas": b"connection:,\r\n",
        "line ends": b"\r\n",
        "bare line feeds": b"\n",
        "lengths": b"content-length:1\r\n",
        "tokens": b"authorization: a\r\n",
    }
    names = b"".join(b"%x:\r\n" % number for number in range((size - 100) // 8))
    hostile = {name: filled(size, unit, start, b"\r\n") for name, unit in units.items()}
    targets = {"a long target": filled(size, b"/", b"GET ", b" HTTP/1.1\r\nhost: a\r\n\r\n")}
    ordinary = filled(size, b"x-twenty-letters-name: twenty letters value\r\n", start, b"\r\n")
    return Decoder(request_in, ordinary, hostile | targets | {"short headers": start + names + b"\r\n"})


def request_in(raw: bytes) -> object:
    reader = Reader(Heads("https"), MIB)
    reader.feed(raw)
    return reader.next_request()


def chunked_body(size: int) -> Decoder:
    start = b"POST /v1/auth/cloud/login HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
    units = {
        "chunks of one byte": b"1\r\na\r\n",
        "chunks with an extension": b"1;a\r\na\r\n",
        "sizes with zeros": b"0000001\r\na\r\n",
        "line ends": b"\r\n",
    }
    ordinary = filled(size, b"200\r\n" + b"a" * 512 + b"\r\n", start, b"0\r\n\r\n")
    hostile = {name: filled(size, unit, start, b"0\r\n\r\n") for name, unit in units.items()}
    trailers = {"trailers": filled(size, b"a:b\r\n", start + b"0\r\n", b"\r\n")}
    digits = {"a size of many digits": filled(size, b"1", start)}
    return Decoder(request_in, ordinary, hostile | trailers | digits)


def form_value(field: FieldType[Any], ordinary: str, units: str, size: int) -> Decoder:
    """A field that takes a text; `units` are what hostile texts repeat, separated by blanks."""
    hostile = {unit: unit * (size // len(unit)) for unit in [*units.split(" "), " "]}
    return Decoder(field.parse, (ordinary * (size // len(ordinary))).removesuffix(","), hostile)


def wrapped_answer(size: int) -> Decoder:
    """What was wrapped is decoded for audit; it came as a body, so it is within the bounds."""
    allowed = {name: raw for name, raw in hostile_json(size).items() if "allowed" in name}
    return Decoder(decode_own, filled(size, ordinary_object() + b",", b'{"a":[', b"]}"), allowed)


class Definition(msgspec.Struct):
    id: str
    properties: dict[str, msgspec.Raw]


class Page(msgspec.Struct):
    value: list[Definition] | None = None


def provider_answer(size: int) -> Decoder:
    def read(raw: bytes) -> object:
        return responses.read(HttpResponse(200, {}, raw), Page)

    unit = b'{"id":"%s","properties":{"name":"%s"}},' % (b"a" * 36, b"a" * 20)
    hostile = hostile_json(size)
    inner = {f"{name} in the value": raw.replace(b'"a"', b'"value"', 1) for name, raw in hostile.items()}
    return Decoder(read, filled(size, unit, b'{"value":[', b"]}"), hostile | inner)


PRINCIPAL: Final = "0f8fad5b-d9cb-469f-a165-70867728950e"
ROLE: Final = {"role_name": "Reader", "scope": f"/subscriptions/{PRINCIPAL}"}
DECODERS: Final[Mapping[str, Decoder]] = {
    "a body of 64 KiB": body(64 * KIB),
    "a body of 1 MiB": body(MIB),
    "a policy in JSON": json_policy(128 * KIB),
    "a policy in HCL": hcl_policy(64 * KIB),
    "azure_roles": json_field(ROLE_GRANTS, ROLE, 8 * KIB),
    "azure_groups": json_field(GROUP_GRANTS, {"object_id": PRINCIPAL}, 4 * KIB),
    "the head of a token": head_of_token(8 * KIB),
    "the claims of a token": claims_of_token(8 * KIB),
    "the head of a request": http_head(15 * KIB),
    "a body in chunks": chunked_body(64 * KIB),
    "a list of identifiers": form_value(IDENTIFIERS, f"{PRINCIPAL},", ", a, a 1,", MIB),
    "as many identifiers as are allowed": Decoder(
        IDENTIFIERS.parse, ",".join([PRINCIPAL] * 7000), {"empty ones": "," * (MOST_VALUES - 1)}
    ),
    "a list of networks": form_value(NETWORKS, "192.0.2.0/24,2001:db8::/64,", ", a, 1.1.1.1, ::, ::/0, 1 / :", 8 * KIB),
    "a duration": form_value(SECONDS, "1h30m", "1h 1 1d 1.1s .1s + . \u0661", 95),
    "a schedule": Decoder(
        SCHEDULE.parse,
        "0,15,30,45 8-18 1-15 jan-jun mon-fri",
        {"lists": "0-59/1,0-59/1 * * * *", "commas": ",,,,,,,,,, * * * *"},
    ),
    "a wrapped answer, for audit": wrapped_answer(256 * KIB),
    "an answer of the provider": provider_answer(256 * KIB),
}


def cpu(decoder: Decoder, raw: bytes | str) -> float:
    """Seconds of CPU that reading an input takes, the quickest of some rounds. A refusal is an answer, too."""

    def once() -> float:
        begun = time.thread_time()
        with suppress(Refused, ProviderProblem, ValueError):
            decoder.read(raw)
        return time.thread_time() - begun

    return min(once() for _ in range(ROUNDS))


def costs_little(decoder: Decoder, raw: bytes | str) -> bool:
    """Whether an input costs less than `MOST` times the CPU of an ordinary one, as one of some tries shows."""
    return any(cpu(decoder, raw) < MOST * cpu(decoder, decoder.ordinary) for _ in range(TRIES))


@pytest.fixture(scope="module", autouse=True)
def _() -> Iterator[None]:
    """What other tests have left costs the collector of garbage nothing here."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize("name", DECODERS)
def test_no_input_costs_much_more_than_an_ordinary_one(name: str) -> None:
    decoder = DECODERS[name]
    assert decoder.read(decoder.ordinary), "an ordinary input is read"
    assert [kind for kind, raw in decoder.hostile.items() if not costs_little(decoder, raw)] == []


@pytest.mark.parametrize("name", DECODERS)
def test_hostile_inputs_are_as_long_as_the_ordinary_one(name: str) -> None:
    decoder = DECODERS[name]
    assert {kind: len(raw) for kind, raw in decoder.hostile.items() if len(raw) > 1.05 * len(decoder.ordinary)} == {}
