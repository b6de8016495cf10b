"""The wire: answers as bytes, and who sent a request."""

from __future__ import annotations

import socket

import pytest

from cloudid_core.messages.response import HEADERS, Response
from cloudid_servers.http1 import wire
from cloudid_servers.machine import streams


def test_an_answer_is_written_as_it_is() -> None:
    response = Response(200, b"{}\n", {"content-type": "application/json", "x-a": "1"})
    written = wire.write(response, is_head=False, closes=False)
    lines = written.split(b"\r\n")
    assert lines[:4] == [b"HTTP/1.1 200 OK", b"content-type: application/json", b"x-a: 1", b"content-length: 3"]
    assert lines[4].startswith(b"date: ")
    assert lines[5:] == [b"", b"{}\n"]
    assert wire.write(response, is_head=True, closes=False) == written[: -len(b"{}\n")]
    assert b"\r\nconnection: close\r\n\r\n" in wire.write(response, is_head=False, closes=True)


@pytest.mark.parametrize(
    "status, length", [(200, b"content-length: 2"), (204, b""), (205, b"content-length: 0"), (304, b"")]
)
def test_a_status_without_content_has_none(status: int, length: bytes) -> None:
    """Otherwise the client takes the content for the beginning of its next answer (RFC 9110, section 6.4.1)."""
    for headers in (HEADERS, {"x-a": "1"}):
        head, _, body = wire.write(Response(status, b"{}", headers), is_head=False, closes=False).partition(b"\r\n\r\n")
        assert [line for line in head.split(b"\r\n") if line.startswith(b"content-length")] == [length] * bool(length)
        assert body == (b"{}" if status == 200 else b"")


def test_who_hangs_up_is_noticed() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert not streams.has_hung_up(ours.fileno())
        theirs.send(b"more")
        assert not streams.has_hung_up(ours.fileno())
        theirs.shutdown(socket.SHUT_WR)
        assert streams.has_hung_up(ours.fileno())


def test_unread_bytes_are_noticed_and_so_is_their_end() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert not streams.has_unread(ours.fileno())
        theirs.send(b"more")
        assert streams.has_unread(ours.fileno())
        assert ours.recv(4) == b"more"
        assert not streams.has_unread(ours.fileno())
        theirs.close()
        assert streams.has_unread(ours.fileno())


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
        ("10.0.0.1", 'fe80::1%any "text", 10.0.0.2', "10.0.0.2"),
        ("fd00::1", "[fe80::1%eth0]:8080", "fd00::1"),
    ],
)
def test_an_address_is_believed_as_far_as_proxies_are_trusted(peer: str, forwarded: str, address: str) -> None:
    assert wire.remote_address(peer, {"x-forwarded-for": forwarded}, PROXIES) == address
    assert wire.remote_address(peer, {"x-forwarded-for": forwarded}, ()) == peer


@pytest.mark.parametrize(
    "forwarded, address, port",
    [
        ("192.0.2.7:40123", "192.0.2.7", 40123),
        ("192.0.2.7", "192.0.2.7", 0),
        ("[2001:db8::7]:40123", "2001:db8::7", 40123),
        ("2001:db8::7", "2001:db8::7", 0),
        ("192.0.2.7:no", "192.0.2.7", 0),
        ("192.0.2.7:" + "9" * 5000, "192.0.2.7", 0),
        ("", "192.0.2.7", 0),
        ("192.0.2.7:1, 192.0.2.8:2", "192.0.2.7", 1),
    ],
)
def test_the_port_of_a_client_is_the_one_beside_its_address(forwarded: str, address: str, port: int) -> None:
    assert wire.forwarded_port(address, {"x-forwarded-for": forwarded}) == port
