"""The wire: heads that are acceptable, answers as bytes, and who sent a request."""

from __future__ import annotations

import socket

import pytest

from cloudid_core.api.request import TARGET_LIMIT
from cloudid_core.api.response import Response
from cloudid_core.errors import Code, Refused
from servers.common import wire


def head(
    *fields: tuple[bytes, bytes], method: bytes = b"GET", target: bytes = b"/", version: bytes = b"1.1"
) -> wire.Head:
    return wire.read_head(method, target, version, fields)


def refusal(*fields: tuple[bytes, bytes], target: bytes = b"/") -> Code:
    with pytest.raises(Refused) as refused:
        head(*fields, target=target)
    return refused.value.code


def test_names_are_folded_and_lines_of_one_name_joined() -> None:
    assert head((b"X-A", b"1"), (b"x-b", b""), (b"x-a", b"\xe9")).headers == {"x-a": "1, \xe9", "x-b": ""}


def test_the_bounds_of_a_head_are_exact() -> None:
    smallest = len(b"GET / HTTP/1.1\r\nx: \r\n\r\n")
    head((b"x", b"a" * (wire.HEAD_LIMIT - smallest)))
    assert refusal((b"x", b"a" * (wire.HEAD_LIMIT - smallest + 1))) is Code.HEAD_TOO_LARGE
    head(target=b"a" * TARGET_LIMIT)
    assert refusal(target=b"a" * (TARGET_LIMIT + 1)) is Code.TARGET_TOO_LONG


@pytest.mark.parametrize(
    "connection, version, closes",
    [
        (b"", b"1.1", False),
        (b"keep-alive", b"1.1", False),
        (b"Upgrade , CLOSE", b"1.1", True),
        (b"closed", b"1.1", False),
        (b"keep-alive", b"1.0", True),
    ],
)
def test_a_connection_stays_open_unless_somebody_says_otherwise(
    connection: bytes, version: bytes, closes: bool
) -> None:
    assert head((b"connection", connection), version=version).closes is closes


@pytest.mark.parametrize(
    "fields, waits",
    [
        ([(b"expect", b"100-Continue"), (b"content-length", b"1")], True),
        ([(b"expect", b"100-continue"), (b"transfer-encoding", b"chunked")], True),
        ([(b"expect", b"100-continue"), (b"content-length", b"0")], False),
        ([(b"expect", b"100-continue")], False),
        ([(b"expect", b"miracles"), (b"content-length", b"1")], False),
    ],
)
def test_only_a_client_with_a_body_waits_for_a_go_ahead(fields: list[tuple[bytes, bytes]], waits: bool) -> None:
    assert head(*fields).expects_continue is waits


def test_a_head_prints_no_field() -> None:
    assert "hunter2" not in repr(head((b"x-service-token", b"hunter2")))


def test_an_announced_length_is_checked() -> None:
    wire.check_length(head((b"content-length", b"10")), 10)
    with pytest.raises(Refused):
        wire.check_length(head((b"content-length", b"11")), 10)


def test_an_answer_is_written_as_it_is() -> None:
    response = Response(200, b"{}\n", {"content-type": "application/json", "x-a": "1"})
    written = wire.write(response, is_head=False, closes=False)
    lines = written.split(b"\r\n")
    assert lines[:4] == [b"HTTP/1.1 200 OK", b"content-type: application/json", b"x-a: 1", b"content-length: 3"]
    assert lines[4].startswith(b"date: ")
    assert lines[5:] == [b"", b"{}\n"]
    assert wire.write(response, is_head=True, closes=False) == written[: -len(b"{}\n")]
    assert b"\r\nconnection: close\r\n\r\n" in wire.write(response, is_head=False, closes=True)


def test_who_hangs_up_is_noticed() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert not wire.has_hung_up(ours.fileno())
        theirs.send(b"more")
        assert not wire.has_hung_up(ours.fileno())
        theirs.shutdown(socket.SHUT_WR)
        assert wire.has_hung_up(ours.fileno())


PROXIES = ("10.0.0.0/8", "fd00::/8")


@pytest.mark.parametrize(
    "peer, forwarded, address",
    [
        ("192.0.2.1", "203.0.113.9", "192.0.2.1"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("10.0.0.1", "198.51.100.7, 203.0.113.9 , 10.1.1.1", "203.0.113.9"),
        ("::ffff:10.0.0.1", "203.0.113.9:8080", "203.0.113.9"),
        ("fd00::1", "[2001:db8::1]:8080", "2001:db8::1"),
        ("fd00::1", "2001:db8::1", "2001:db8::1"),
        ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("10.0.0.1", "203.0.113.9, garbage", "10.0.0.1"),
        ("10.0.0.1", "203.0.113.9, garbage, 10.0.0.2", "10.0.0.2"),
    ],
)
def test_an_address_is_believed_as_far_as_proxies_are_trusted(peer: str, forwarded: str, address: str) -> None:
    assert wire.remote_address(peer, {"x-forwarded-for": forwarded}, PROXIES) == address
    assert wire.remote_address(peer, {"x-forwarded-for": forwarded}, ()) == peer
