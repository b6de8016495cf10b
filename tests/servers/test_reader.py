"""The reader of requests: its memory and the pieces in which bytes arrive change nothing, and h11 agrees with it.

`tests/wire/raw_cases.py` says what both servers answer; here is what no case can show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cloudid_core.errors import Code, Refused
from cloudid_core.messages.request import TARGET_LIMIT
from cloudid_servers.http1.chunks import MOST_CHUNKS, PADDING_LIMIT, Chunks
from cloudid_servers.http1.heads import HEADS_KEPT, LONGEST_KEPT, Head, Heads, read_head
from cloudid_servers.http1.reader import HEAD_LIMIT, Reader, Stage
from tests.wire.raw_cases import CASES, Case

UNASKED: Final = 1000
BODY_LIMIT: Final = 4096


def read(reader: Reader, pieces: Iterable[bytes]) -> list[object]:
    """All that a server would learn: requests, go-aheads, questions. A refusal or a body cut off is the last."""
    learnt: list[object] = []
    for piece in pieces:
        reader.feed(piece)
        try:
            while (request := reader.next_request()) or reader.wants_continue or reader.asks_limit:
                if reader.asks_limit is not None:
                    learnt.append(("how long?", reader.asks_limit))
                    reader.allow(BODY_LIMIT)
                    continue
                learnt.append(request or "continue")
                if request is not None and request[1] is None:
                    return learnt
                reader.wants_continue = False
        except Refused as refusal:
            return [*learnt, refusal.code, reader.answers_head]
    return [*learnt, reader.stage]


def in_pieces(stream: bytes, cuts: Iterable[int]) -> Iterator[bytes]:
    places = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    return (stream[start:end] for start, end in pairwise(places))


def stream_of(case: Case) -> bytes:
    return b"".join(piece for piece in case.sent if isinstance(piece, bytes))


SHORT_STREAMS: Final = sorted({stream for case in CASES if len(stream := stream_of(case)) < 4096})
FRAGMENTS: Final = (
    *(b"GET /v1/a HTTP/1.1\r\n", b"HEAD /v1/a HTTP/1.1\r\n", b"POST /v1/a?b HTTP/1.1\r\n", b"GET * HTTP/1.0\r\n"),
    *(b"Host: a\r\n", b"Content-Length: 3\r\n", b"content-length:03\r\n", b"Content-Length: 3 \r\n", b"abc", b"\r\n"),
    *(b"X-Vault-Token: s.a\r\n", b"x-vault-token: b c\r\n", b"X-Vault-Token: \xe9\r\n", b"Authorization: Bearer x\r\n"),
    *(b"X-Request-Id: 1\r\n", b"X-Request-Id: 22\r\n", b"Connection: close\r\n", b"Expect: 100-continue\r\n"),
    *(b"Transfer-Encoding: chunked\r\n", b"3\r\nabc\r\n", b"0\r\n\r\n", b"\n", b" ", b"\t", b"\0", b"\r", b":"),
)

streams = st.one_of(
    st.lists(st.sampled_from(SHORT_STREAMS), min_size=1, max_size=3).map(b"".join),
    st.lists(st.sampled_from(FRAGMENTS), max_size=20).map(b"".join),
)


@given(before=streams, stream=streams, cuts=st.lists(st.integers(0, 10**6), max_size=8))
@example(b"", b"\r\n" * 3 + b"GET / HTTP/1.1\r\nhost: a\r\n\r\n", [1, 2, 3])
def test_neither_pieces_nor_memory_change_what_is_read(before: bytes, stream: bytes, cuts: list[int]) -> None:
    """`before` is what another connection has sent, and so what the memory holds."""
    heads = Heads("http")
    read(Reader(heads, UNASKED), [before])
    plain = read(Reader(Heads("http", kept=0), UNASKED), [stream])
    for _ in range(2):
        assert read(Reader(heads, UNASKED), [stream]) == plain
        assert read(Reader(heads, UNASKED), in_pieces(stream, cuts)) == plain
    assert read(Reader(heads, UNASKED), in_pieces(stream, range(len(stream)))) == plain


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_raw_case_is_read_alike_in_any_pieces(case: Case) -> None:
    stream = stream_of(case)
    plain = read(Reader(Heads("http", kept=0), UNASKED), [stream])
    for size in (1, 7, 1000) if len(stream) < 10_000 else (1000, 4093):
        pieces = (stream[start : start + size] for start in range(0, len(stream), size))
        assert read(Reader(Heads("http"), UNASKED), pieces) == plain


def request(*lines: bytes, start: bytes = b"POST /v1/a HTTP/1.1") -> bytes:
    return b"\r\n".join((start, b"Host: a", *lines, b"", b""))


def test_heads_that_differ_in_tokens_lengths_and_ids_share_one_verdict() -> None:
    heads = Heads("http")
    for number in range(1, 50):
        lines = (b"X-Vault-Token: s.%d" % number, b"Content-Length: %d" % number, b"X-Request-Id: %d" % number)
        assert heads.read(request(*lines)) == read_head(request(*lines), "http")
    assert len(heads) == 1


@pytest.mark.parametrize(
    "line",
    [
        *(b"X-Service-Token: hunter2", b"x-vault-token:hunter2", b"Authorization: Bearer hunter2"),
        *(b"X-Vault-Token: hunter2\xe9", b"X-Vault-Token:  hunter2", b"Cookie: a=hunter2", b"X-Vault-Token: hunter2 "),
    ],
)
def test_no_token_is_kept(line: bytes) -> None:
    heads = Heads("http")
    for _ in range(2):
        heads.read(request(line))
    verdicts = [(key, heads._verdicts.get(key).head.headers) for key in heads._verdicts]  # type: ignore[union-attr]
    assert "hunter2" not in str(verdicts)
    assert len(heads._whole) == 0


def test_a_head_that_comes_again_byte_for_byte_is_read_once() -> None:
    heads = Heads("http")
    for length in (b"1", b"2"):
        head = request(b"Content-Length: %s" % length)
        assert heads.read(head) is heads.read(head)
        assert heads.read(head) == read_head(head, "http")


@pytest.mark.parametrize(
    "head",
    [
        request(start=b"POST /v1/a?b=c HTTP/1.1"),
        request(b"Transfer-Encoding: chunked"),
        request(b"Expect: 100-continue", b"Content-Length: 1"),
        request(b"Upgrade: websocket"),
        request(b"X-Request-Id: 1", b"X-Request-Id: 2"),
        request(b"X-Pad: " + b"a" * LONGEST_KEPT),
    ],
)
def test_what_is_not_usual_is_judged_each_time(head: bytes) -> None:
    heads = Heads("http")
    assert heads.read(head) == heads.read(head) == read_head(head, "http")
    assert len(heads) == 0


def test_the_memory_is_bounded() -> None:
    heads = Heads("http")
    for number in range(HEADS_KEPT + 10):
        heads.read(request(b"X-One: %d" % number))
    assert len(heads) == len(heads._whole) == HEADS_KEPT


def refusal(stream: bytes) -> Code:
    reader = Reader(Heads("http"), UNASKED)
    reader.feed(stream)
    with pytest.raises(Refused) as refused:
        reader.next_request()
    return refused.value.code


def head_of(stream: bytes) -> Head:
    reader = Reader(Heads("http"), UNASKED)
    reader.feed(stream)
    found = reader.next_request()
    assert found is not None
    return found[0]


def test_the_bounds_of_a_head_are_exact() -> None:
    smallest = len(request(b"x: "))
    assert head_of(request(b"x: " + b"a" * (HEAD_LIMIT - smallest))).method == "POST"
    assert refusal(request(b"x: " + b"a" * (HEAD_LIMIT - smallest + 1))) is Code.HEAD_TOO_LARGE
    target = b"/" + b"a" * (TARGET_LIMIT - 1)
    assert head_of(request(start=b"GET %s HTTP/1.1" % target)).target == target.decode()
    assert refusal(request(start=b"GET %sa HTTP/1.1" % target)) is Code.TARGET_TOO_LONG


@pytest.mark.parametrize("first", "!#$%&'*+-.^_`|~A")
def test_a_method_may_begin_with_each_mark_of_a_token(first: str) -> None:
    """Others are refused by their names, and what no method begins with as malformed (RFC 9110, section 5.6.2)."""
    assert head_of(request(start=f"{first}X /v1/a HTTP/1.1".encode())).method == f"{first}X"
    assert refusal(request(start=b" X /v1/a HTTP/1.1")) is Code.MALFORMED_REQUEST


def test_names_are_folded_and_lines_of_one_name_joined() -> None:
    headers = head_of(request(b"X-A: 1", b"x-b:", b"x-a: \xe9")).headers
    assert headers == {"host": "a", "x-a": "1, \xe9", "x-b": ""}


def test_a_head_prints_no_field_and_no_query() -> None:
    shown = repr(head_of(request(b"X-Vault-Token: hunter2", start=b"GET /v1/a?b=hunter3 HTTP/1.1")))
    assert "hunter" not in shown
    assert "/v1/a" in shown


def test_a_target_of_the_other_scheme_is_refused() -> None:
    secure = request(start=b"GET https://a/v1/b HTTP/1.1")
    assert Heads("https").read(secure).target == "/v1/b"
    assert refusal(secure) is Code.MALFORMED_REQUEST


def test_the_stage_says_what_is_missing() -> None:
    reader = Reader(Heads("http"), UNASKED)
    stages = []
    for piece in (b"", b"POST / HTTP/1.1\r\n", b"host: a\r\ncontent-length: 2\r\n\r\n", b"a"):
        reader.feed(piece)
        assert reader.next_request() is None
        stages.append(reader.stage)
    assert stages == [Stage.IDLE, Stage.HEAD, Stage.BODY, Stage.BODY]


def chunks_of(stream: bytes) -> bytes | Code | None:
    buffer = bytearray(stream)
    try:
        return Chunks(BODY_LIMIT).take(buffer)
    except Refused as refusal:
        return refusal.code


CHUNKED: Final = b"Transfer-Encoding: chunked"


@pytest.mark.parametrize(
    "stream, learnt",
    [
        (request(b"Content-Length: 1000") + bytes(1000), [1000]),
        (request(b"Content-Length: 1001") + bytes(1001), ["how long?", 1001]),
        (request(b"Content-Length: 4096") + bytes(4096), ["how long?", 4096]),
        (request(b"Content-Length: 4097") + bytes(4097), ["how long?", "cut"]),
        (request(b"Content-Length: 4097"), ["how long?", "cut"]),
        (request(b"Content-Length: 1001", b"Expect: 100-continue") + bytes(1001), ["how long?", "continue", 1001]),
        (request(b"Content-Length: 4097", b"Expect: 100-continue"), ["how long?", "cut"]),
        (request(CHUNKED) + b"3e8\r\n" + bytes(1000) + b"\r\n0\r\n\r\n", [1000]),
        (request(CHUNKED) + b"3e8\r\n" + bytes(1000) + b"\r\n1\r\na\r\n0\r\n\r\n", ["how long?", 1001]),
        (request(CHUNKED) + b"fff\r\n" + bytes(4095) + b"\r\n2\r\n", ["how long?", "cut"]),
        (request(CHUNKED, b"Expect: 100-continue") + b"1001\r\n", ["continue", "how long?", "cut"]),
    ],
)
def test_a_long_body_is_read_once_its_limit_is_known(stream: bytes, learnt: list[object]) -> None:
    """A number: the length of a body; cut: it is longer than it may be."""
    shown: list[object] = []
    for each in read(Reader(Heads("http"), UNASKED), [stream]):
        match each:
            case (Head(), None):
                shown.append("cut")
            case (Head(), bytes(body)):
                shown.append(len(body))
            case (str(question), Head()):
                shown.append(question)
            case "continue":
                shown.append(each)
    assert shown == learnt


chunk_parts = st.lists(
    st.sampled_from(
        (
            b"0",
            b"1",
            b"3",
            b"a",
            b"\r\n",
            b"abc",
            b"x",
            b";",
            b"n=v",
            b" ",
            b"\n",
            b"\r",
            b":",
            b"0\r\n\r\n",
            b"3\r\nabc\r\n",
        )
    ),
    max_size=12,
)


@given(chunk_parts.map(b"".join))
@example(b"3;a=b\r\nabc\r\n0\r\nx: 1\r\n\r\n")
@example(b"%s3\r\nabc\r\n0\r\n\r\n" % (b"0" * 20))
@example(b"0\r\nContent-Length: -5\r\n\r\n")
@example(b"0\r\nx: 1\r\ntransfer-encoding: gzip\r\n\r\n")
def test_what_is_accepted_in_chunks_h11_accepts_too(stream: bytes) -> None:
    """With the same body."""
    found = chunks_of(stream)
    if isinstance(found, bytes):
        parser = h11.Connection(h11.SERVER)
        parser.receive_data(b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n" + stream)
        body = b""
        while not isinstance(event := parser.next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Data):
                body += event.data
        assert body == found


@pytest.mark.parametrize("name", [b"Content-Length", b"content-length", b"Transfer-Encoding"])
def test_a_trailer_that_would_frame_the_body_is_refused(name: bytes) -> None:
    """Its value does not matter: another reader may believe it."""
    assert chunks_of(b"0\r\n%s-Note: 0\r\n\r\n" % name) == b""
    assert chunks_of(b"0\r\n%s: 0\r\n\r\n" % name) is Code.MALFORMED_REQUEST
    assert chunks_of(b"0\r\nx: 1\r\n%s:chunked\r\n\r\n" % name) is Code.MALFORMED_REQUEST


def test_the_padding_of_chunks_is_bounded() -> None:
    """However many chunks share it."""
    padded = b"1;" + b"a" * 100 + b"\r\nb\r\n"
    allowed = PADDING_LIMIT // 101
    assert chunks_of(padded * allowed + b"0\r\n\r\n") == b"b" * allowed
    assert chunks_of(padded * (allowed + 1) + b"0\r\n\r\n") is Code.MALFORMED_REQUEST


def test_the_number_of_chunks_is_bounded() -> None:
    allowed = MOST_CHUNKS - 1
    assert chunks_of(b"1\r\na\r\n" * allowed + b"0\r\n\r\n") == b"a" * allowed
    assert chunks_of(b"1\r\na\r\n" * (allowed + 1) + b"0\r\n\r\n") is Code.MALFORMED_REQUEST


def test_a_body_of_chunks_is_bounded() -> None:
    assert chunks_of(b"1000\r\n" + b"a" * 4096 + b"\r\n0\r\n\r\n") == b"a" * 4096
    assert chunks_of(b"1001\r\n") is Code.BODY_TOO_LARGE
    assert chunks_of(b"1000\r\n" + b"a" * 4096 + b"\r\n1\r\n") is Code.BODY_TOO_LARGE
