"""Entries over UDP: one that is too long is sent shorter, and is no failure of the device."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from cloudid_core.audit.device import Device, Entries
from cloudid_core.effects import Record, gather
from cloudid_core.errors import RecordFailed
from cloudid_core.events import DeviceChanged
from cloudid_core.run import run
from cloudid_servers.audit.datagrams import shortened
from cloudid_servers.audit.streams import Stream
from cloudid_servers.audit.verify import verify
from cloudid_servers.host.host import Host
from tests.hosts.opened import RUNTIMES, on

ENTRY: dict[str, Any] = {
    "type": "response",
    "auth": {"client_token": "hmac-sha256:1", "policies": ["default"] * 50, "metadata": {"role": "web"}},
    "request": {"id": "r1", "operation": "update", "path": "auth/cloud/login", "data": {"role": "hmac-sha256:2"}},
    "decision": {"verdict": "admitted", "jwt_type": "app", "checks": [{"check": "location"}]},
    "error": "x" * 1000,
}


def test_an_entry_that_fits_stays_as_it_is() -> None:
    text = json.dumps(ENTRY).encode()
    assert shortened(text, len(text)) is text


def test_a_shorter_entry_has_all_members_but_lists_and_long_texts() -> None:
    text = json.dumps(ENTRY).encode()
    assert json.loads(shortened(text, len(text) - 1)) == {
        "type": "response",
        "auth": {"client_token": "hmac-sha256:1", "metadata": {"role": "web"}},
        "request": ENTRY["request"],
        "decision": {"verdict": "admitted", "jwt_type": "app"},
        "truncated": True,
    }


def test_an_entry_whose_objects_are_long_loses_them_before_its_id() -> None:
    data = {f"hmac-sha256:{number}": "hmac-sha256:" + "0" * 64 for number in range(256)}
    long = {**ENTRY, "request": {**ENTRY["request"], "data": data}}
    short = json.loads(shortened(json.dumps(long).encode(), 1000))
    assert short["request"] == {"id": "r1", "operation": "update", "path": "auth/cloud/login"}
    crowded = {**ENTRY, "request": {"id": "r1", "operation": "update", **{f"m{n}": "x" * 200 for n in range(99)}}}
    assert json.loads(shortened(json.dumps(crowded).encode(), 1000)) == {
        "type": "response",
        "request": {"id": "r1", "operation": "update"},
        "truncated": True,
    }


def record_of(device: Device, *, size: int = 0) -> Any:
    text = json.dumps({**ENTRY, "padding": ["x" * size]}).encode()
    return recorded(Entries((device,), (text,)))


async def recorded(entries: Entries) -> str:
    try:
        await Record(DeviceChanged(device="x", state="y", audit=entries))
    except RecordFailed:
        return "refused"
    return "recorded"


@pytest.mark.parametrize("takes", [65_507, 9_216])
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_an_entry_that_no_datagram_takes_is_sent_shorter_and_fails_nobody(
    runtime: str, takes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the network takes less than UDP allows, and with entries of other requests in the same turn."""
    write, failures = Stream._write, []

    def bounded(stream: Stream, content: bytes) -> int:
        if len(content) > takes:
            failures.append(len(content))
        return write(stream, b"x" * 70_000 if len(content) > takes else content)

    monkeypatch.setattr(Stream, "_write", bounded)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as collector:
        collector.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**21)
        collector.bind(("127.0.0.1", 0))
        collector.settimeout(60.0)
        options = {"address": f"127.0.0.1:{collector.getsockname()[1]}", "socket_type": "udp"}
        device = Device(name="udp", type="socket", key="5a" * 32, options=options)
        told: list[str] = []

        async def scenario(host: Host) -> None:
            host.audit.report = lambda event, **facts: told.append(f"{event} {facts}")
            sizes = (0, 100_000, 0, 30_000, 0)
            assert await run(gather([record_of(device, size=size) for size in sizes]), host) == ["recorded"] * 5

        on(runtime, scenario)
        lines: list[bytes] = []
        while not lines or b'"closed"' not in lines[-1]:
            lines.append(collector.recv(2**16))
    assert told == []
    assert verify([("udp", lines)]).problems == []
    shorter = [line.get("truncated", False) for line in map(json.loads, lines) if line["type"] == "response"]
    assert sorted(shorter) == [False] * (5 - sum(shorter)) + [True] * (2 if takes < 30_000 else 1)
    assert (failures != []) == (takes < 30_000)
